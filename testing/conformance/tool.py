"""The conformance suite for tools."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agent_brain.testing.conformance.check import Check, behaviours, both, expect, expect_true
from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool
from agent_brain.tools.calling import call_tool
from agent_brain.tools.errors import ToolArgumentsError
from agent_brain.tools.function import as_tool


def tool_conformance(
    tool: BaseTool | Callable[..., Any],
    good_args: Mapping[str, Any],
    *,
    bad_args: Mapping[str, Any] | None = None,
) -> list[Check]:
    """Return the behaviours that a tool must have, as async checks.

    Use them like those of :func:`memory_conformance`. A check may run the tool with ``good_args``,
    once or twice.

    Args:
        tool: The tool, or a function.
        good_args: Arguments that it accepts.
        bad_args: Arguments that it must refuse. Default: ``good_args`` without a required one.

    Raises:
        ToolDefinitionError: It is not a tool.
    """
    case = _Case(as_tool(tool), dict(good_args), None if bad_args is None else dict(bad_args))
    return [Check(behaviour, lambda: case) for behaviour in TOOL]


@dataclass(frozen=True, slots=True)
class _Case:
    tool: BaseTool
    good: dict[str, Any]
    bad: dict[str, Any] | None

    async def call(self) -> str:
        """Return the result that a model gets; raise what the tool raises."""
        action = Action(name=self.tool.name, args=copy.deepcopy(self.good))
        outcome = await call_tool(action, {self.tool.name: self.tool})
        if outcome.exception is not None:
            raise outcome.exception
        if outcome.is_error:
            raise AssertionError(outcome.content)
        return outcome.content


async def it_has_a_description(case: _Case) -> None:
    """Describe the tool, in its docstring or description=: the model chooses by it."""
    expect_true(case.tool.description.strip(), "The tool has no description")


async def its_schema_lists_its_arguments(case: _Case) -> None:
    """List every argument in the ``properties`` of the schema."""
    properties = case.tool.input_schema.get("properties", {})
    required = set(case.tool.input_schema.get("required", ()))
    expect(sorted(required - properties.keys()), [], "required, but not in properties")
    if properties:
        expect(sorted(case.good.keys() - properties.keys()), [], "good, but not in properties")


async def its_description_is_json(case: _Case) -> None:
    """to_dict() returns {name: {description, input_schema}}, as JSON values."""
    described = case.tool.to_dict()
    expect(list(described), [case.tool.name], "names in to_dict()")
    expect(sorted(described[case.tool.name]), ["description", "input_schema"], "to_dict()[name]")
    expect(json.loads(json.dumps(described)), described, "to_dict() as JSON")


async def validation_does_not_modify_arguments(case: _Case) -> None:
    """validate() returns new arguments and leaves those that it got."""
    args = copy.deepcopy(case.good)
    case.tool.validate(args)
    expect(args, case.good, "the arguments after validate()")


async def bad_arguments_are_refused_with_problems(case: _Case) -> None:
    """validate() raises ToolArgumentsError with a list of problems, which the model reads."""
    required = [name for name in case.tool.input_schema.get("required", ()) if name in case.good]
    bad = case.bad
    if bad is None and required:
        bad = {name: value for name, value in case.good.items() if name != required[0]}
    if bad is None:
        return
    try:
        case.tool.validate(bad)
    except ToolArgumentsError as error:
        expect_true(error.problems, "The error lists no problems")
    else:
        raise AssertionError(f"validate({bad!r}) accepted them")


async def a_call_returns_text(case: _Case) -> None:
    """A call with good arguments succeeds."""
    expect(type(await case.call()), str, "the result as text")


async def concurrent_calls_both_finish(case: _Case) -> None:
    """Keep the data of a call in local variables: one tool serves many calls at once."""
    expect(len(await both(case.call)), 2, "results")


async def a_call_does_not_modify_the_tool(case: _Case) -> None:
    """A tool keeps no data of calls in its attributes, and is not copied with a memory."""
    expect_true(copy.deepcopy(case.tool) is case.tool, "Forks of a memory must share its tools")
    await case.call()  # makes what it keeps, such as a client
    before = dict(vars(case.tool))
    await case.call()
    after = vars(case.tool)
    changed = [name for name in after if after[name] is not before.get(name)]
    expect(changed, [], "attributes changed by a call")


TOOL = behaviours(globals())
