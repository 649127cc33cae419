"""Choose the tool for a purpose by its name, description and parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from agent_brain.experiments.rule_based.moves import Call
from agent_brain.experiments.rule_based.sight import Sight
from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool

_TRIES = 2  # of the same call, while it fails
_READS = frozenset("look lookup find search record return tell archive read directory".split())
_WRITES = frozenset("add complete revise remove write save delete send todo remember".split())
_OPERATIONS: Mapping[str, frozenset[str]] = {
    "+": frozenset({"add", "sum", "plus"}),
    "-": frozenset({"subtract", "minus", "difference"}),
    "*": frozenset({"multiply", "times", "product"}),
    "/": frozenset({"divide", "quotient"}),
}


def calls_for_operation(
    tools: Sequence[BaseTool], symbol: str, left: Fraction, right: Fraction
) -> Iterator[Action]:
    """Yield the calls that do an operation on two whole numbers."""
    if not left.denominator == right.denominator == 1:
        return
    for tool in tools:
        names = _required(tool, ("integer", "number"))
        if len(names) == 2 and _words(tool) & _OPERATIONS[symbol]:
            yield Action(name=tool.name, args={names[0]: int(left), names[1]: int(right)})


def calls_for_subject(tools: Sequence[BaseTool], subject: str) -> Iterator[Action]:
    """Yield the calls that look something up."""
    for tool in tools:
        names = _required(tool, ("string",))
        words = _words(tool)
        if len(names) == 1 and words & _READS and not words & _WRITES:
            yield Action(name=tool.name, args={names[0]: subject})


def next_try(sight: Sight, wanted: Iterable[Action]) -> Call | None:
    """Return the first call to be made: one after the other while they fail; None if all have.

    A call is tried again before another tool is, as an error may pass.
    """
    for action in wanted:
        tried = [m for call, m in sight.results if _same(call, action)]
        if any(not message.is_error for message in tried):
            return None  # it has told what it knows
        if len(tried) < _TRIES:
            return Call(action)
    return None


def failures(sight: Sight) -> list[str]:
    """Return the names of the tools whose last call has failed."""
    last = {call.name: message.is_error for call, message in sight.results}
    return [name for name, failed in last.items() if failed]


def result_of(sight: Sight, wanted: Iterable[Action]) -> str | None:
    """Return the result of one of the calls, if one has succeeded."""
    for action in wanted:
        for call, message in sight.results:
            if _same(call, action) and not message.is_error:
                return message.content
    return None


def _same(one: Action, other: Action) -> bool:
    return (one.name, one.args) == (other.name, other.args)


def _required(tool: BaseTool, types: Sequence[str]) -> list[str]:
    """Return the names of the required parameters if all are of these types."""
    schema: Mapping[str, Any] = tool.input_schema
    parts = schema.get("properties", {})
    names = list(schema.get("required", ()))
    return names if all(parts.get(name, {}).get("type") in types for name in names) else []


def _words(tool: BaseTool) -> set[str]:
    first = tool.description.partition(".")[0]
    found = re.findall(r"[a-z]+", f"{tool.name} {first}".replace("_", " ").casefold())
    return set(found) | {word.removesuffix("s") for word in found}
