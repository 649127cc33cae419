"""The conformance suite for tools: can it be offered to a model, and be called by one?"""

from __future__ import annotations

import copy
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import anyio

from agent_brain.testing.conformance.check import Check, expect
from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool
from agent_brain.tools.calling import call_tool
from agent_brain.tools.errors import ToolArgumentsError
from agent_brain.tools.function import as_tool

Make = Callable[..., Awaitable[Any]]


def tool_conformance(
    tool: BaseTool | Callable[..., Any],
    good_args: Mapping[str, Any],
    *,
    bad_args: Mapping[str, Any] | None = None,
) -> list[Check]:
    """The behaviours that a tool must have, as async checks.

    The tool is really run, with ``good_args``, once or twice a check.

    Args:
        tool: The tool, or a function.
        good_args: Arguments with which it does its work.
        bad_args: Arguments that it must refuse; default: ``good_args`` less one that is required,
            if there is any.

    Returns:
        One check a behaviour; to be used as those of :func:`memory_conformance`.

    Raises:
        ToolDefinitionError: It is no tool at all.
    """
    case = _Case(as_tool(tool), dict(good_args), None if bad_args is None else dict(bad_args))
    return [Check(behaviour, lambda: case) for behaviour in TOOL]


@dataclass(frozen=True, slots=True)
class _Case:
    tool: BaseTool
    good: dict[str, Any]
    bad: dict[str, Any] | None

    async def call(self) -> str:
        """The result, as a model reads it; what the tool raises is raised here too."""
        action = Action(name=self.tool.name, args=copy.deepcopy(self.good))
        outcome = await call_tool(action, {self.tool.name: self.tool})
        if outcome.exception is not None:
            raise outcome.exception
        if outcome.is_error:
            raise AssertionError(outcome.content)
        return outcome.content


async def it_tells_a_model_what_it_is_for(make: Make) -> None:
    tool = (await make()).tool
    expect(bool(tool.description.strip()), True, "it has a description")


async def its_schema_knows_its_arguments(make: Make) -> None:
    case = await make()
    properties = case.tool.input_schema.get("properties", {})
    required = set(case.tool.input_schema.get("required", ()))
    expect(sorted(required - properties.keys()), [], "required, and not described in properties")
    if properties:
        expect(sorted(case.good.keys() - properties.keys()), [], "good, and not in properties")


async def its_description_is_plain_data(make: Make) -> None:
    tool = (await make()).tool
    described = tool.to_dict()
    expect(list(described), [tool.name], "names in to_dict()")
    expect(sorted(described[tool.name]), ["description", "input_schema"], "to_dict()[name]")
    expect(json.loads(json.dumps(described)), described, "to_dict() as JSON")


async def good_arguments_stay_as_they_are(make: Make) -> None:
    case = await make()
    args = copy.deepcopy(case.good)
    case.tool.validate(args)
    expect(args, case.good, "the arguments after validate()")


async def bad_arguments_are_refused_with_reasons(make: Make) -> None:
    case = await make()
    required = [name for name in case.tool.input_schema.get("required", ()) if name in case.good]
    bad = case.bad
    if bad is None and required:
        bad = {name: value for name, value in case.good.items() if name != required[0]}
    if bad is None:
        return
    try:
        case.tool.validate(bad)
    except ToolArgumentsError as error:
        expect(bool(error.problems), True, "the error has problems")
    else:
        raise AssertionError(f"validate({bad!r}) accepted them")


async def a_call_gives_what_a_model_can_read(make: Make) -> None:
    expect(type(await (await make()).call()), str, "the result as text")


async def two_calls_at_once_both_end(make: Make) -> None:
    case = await make()
    results: list[str] = []

    async def call() -> None:
        results.append(await case.call())

    async with anyio.create_task_group() as group:
        group.start_soon(call)
        group.start_soon(call)
    expect(len(results), 2, "results")


async def one_object_serves_many_runs(make: Make) -> None:
    case = await make()
    expect(copy.deepcopy(case.tool) is case.tool, True, "forks of a memory share its tools")
    await case.call()  # what it makes once and keeps, such as a client, is there now
    before = dict(vars(case.tool))
    await case.call()
    after = vars(case.tool)
    changed = [name for name in after if after[name] is not before.get(name)]
    expect(changed, [], "attributes that a call leaves changed")


TOOL = (
    it_tells_a_model_what_it_is_for,
    its_schema_knows_its_arguments,
    its_description_is_plain_data,
    good_arguments_stay_as_they_are,
    bad_arguments_are_refused_with_reasons,
    a_call_gives_what_a_model_can_read,
    two_calls_at_once_both_end,
    one_object_serves_many_runs,
)
