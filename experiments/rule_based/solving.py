"""Solve what a user asks, from what is shown and with the tools that are offered."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from agent_brain.experiments.expressions import (
    Expression,
    ExpressionError,
    apply,
    expressions_in,
    make_number,
    operations_of,
    write,
)
from agent_brain.experiments.rule_based.sight import Sight, key, questions_in, shorter, words_of
from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool

UNKNOWN = "I do not know"


@dataclass(frozen=True, slots=True)
class Answer:
    """Say something.

    Attributes:
        text: What is said.
        value: What of it answers the question; empty if nothing does.
    """

    text: str
    value: str = ""


@dataclass(frozen=True, slots=True)
class Data:
    """Return data of the form that is asked for.

    Attributes:
        value: The data.
        others: Other data that could have been chosen.
    """

    value: Any
    others: tuple[Any, ...] = ()


Move = Action | Answer | Data


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


def next_try(sight: Sight, wanted: Iterable[Action]) -> Action | None:
    """Return the first call to be made: one after the other while they fail; None if all have.

    A call is tried again before another tool is, as an error may pass.
    """
    for action in wanted:
        tried = [m for call, m in sight.results if _same(call, action)]
        if any(not message.is_error for message in tried):
            return None  # it has told what it knows
        if len(tried) < _TRIES:
            return action
    return None


def failures(sight: Sight) -> list[str]:
    """Return the names of the tools whose last call has failed."""
    last = {call.name: message.is_error for call, message in sight.results}
    return [name for name, failed in last.items() if failed]


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


Solved = Action | Answer
Computed = Fraction | Action | None  # None if a tool has failed too often
Solver = Callable[[Sight, str], "Solved | None"]

_ASKS = re.compile(r"\b(?:what is|calculate|compute|work out|how much is)\b", re.I)
_FORGET = re.compile(r"\bplease forget the ([^.?!]+)", re.I)
_PUZZLE = re.compile(r"numbers ([\d, and]+?)(?: and the operations[^.]*?)? to make (\d+)", re.I)


def solve(sight: Sight, question: str | None = None) -> Solved:
    """Return the next call, or the answer, to a question; by default the one that is shown."""
    asked = sight.question if question is None else question
    for solver in SOLVERS:
        solved = solver(sight, asked)
        if solved is not None:
            return solved
    return Answer("Noted.")


def known_answer(sight: Sight, question: str | None = None) -> Answer:
    """Return the answer as far as it is known without any further call."""
    solved = solve(Sight(sight.messages, (), sight.output_type), question)
    return solved if isinstance(solved, Answer) else Answer(f"{UNKNOWN}.")


def steps_to(question: str) -> list[str]:
    """Return the steps that lead to an answer, each a question by itself; none if none is asked."""
    if read_puzzle(question):
        return [question.strip()]
    expression = _sum_in(question)
    if expression is not None:
        return [f"Calculate {write(operation)}." for operation in operations_of(expression)]
    chains = [part for asked in questions_in(question) for part in shorter(asked)]
    return [f"Find {words_of(parts)}." for parts in chains]


def read_puzzle(question: str) -> tuple[list[int], int] | None:
    """Return the numbers and the target of "use the numbers 4, 9 and 13 to make 24"."""
    match = _PUZZLE.search(question)
    return None if match is None else ([*map(int, re.findall(r"\d+", match[1]))], int(match[2]))


def _puzzle(sight: Sight, question: str) -> Solved | None:
    puzzle = read_puzzle(question)
    if puzzle is None:
        return None
    numbers, target = puzzle
    for text, value in sight.facts.items():  # what thoughts have led to
        if value == str(target) and sorted(re.findall(r"\d+", text)) == sorted(map(str, numbers)):
            return Answer(f"{text} = {target}", value=text)
    found = make_number(numbers, target)
    if found is None:
        return Answer(f"{UNKNOWN} how to make {target}.")
    return Answer(f"{write(found)} = {target}", value=write(found))


def _arithmetic(sight: Sight, question: str) -> Solved | None:
    expression = _sum_in(question)
    if expression is None:
        return None
    try:
        solved = _calculate(sight, expression)
    except ExpressionError:
        return Answer(f"{UNKNOWN}: {write(expression)} divides by zero.")
    if isinstance(solved, Action):
        return solved
    if solved is None:
        names = " and ".join(failures(sight))
        return Answer(f"{UNKNOWN}: the tool {names} failed.")
    number = str(solved)
    return Answer(f"{write(expression)} = {number}", value=number)


def _sum_in(question: str) -> Expression | None:
    """Return the longest expression in a question that asks for one."""
    found = expressions_in(question) if _ASKS.search(question) else []
    return max(found, key=lambda one: len(write(one)), default=None)


def _calculate(sight: Sight, expression: Expression) -> Computed:
    """Return the value, the next call, or None if a tool has failed too often.

    Raises:
        ExpressionError: It divides by zero.
    """
    if isinstance(expression, int):
        return Fraction(expression)
    known = sight.facts.get(write(expression))
    if known is not None:
        return Fraction(known)
    left = _calculate(sight, expression.left)
    if not isinstance(left, Fraction):
        return left
    right = _calculate(sight, expression.right)
    if not isinstance(right, Fraction):
        return right
    return _operate(sight, expression.symbol, left, right)


def _operate(sight: Sight, symbol: str, left: Fraction, right: Fraction) -> Computed:
    """Do an operation with a tool; in the head if no tool for it is offered."""
    wanted = [*calls_for_operation(sight.tools, symbol, left, right)]
    if not wanted:
        return apply(symbol, left, right)
    for action in wanted:
        for call, message in sight.results:
            if _same(call, action) and not message.is_error:
                try:
                    return Fraction(message.content.strip())
                except ValueError:
                    return None
    return next_try(sight, wanted)


def _facts(sight: Sight, question: str) -> Solved | None:
    chains = questions_in(question)
    if not chains:
        return None
    failed = f" The tool {' and '.join(failures(sight))} failed." if failures(sight) else ""
    said, last = [], ""
    for parts in chains:
        value = _find(sight, parts)
        if isinstance(value, Action):
            return value
        words, last = words_of(parts), value or ""
        told = f"{words[0].upper()}{words[1:]} is {value}."
        said.append(f"{UNKNOWN} {words}.{failed}" if value is None else told)
    return Answer(" ".join(said), last)


def _find(sight: Sight, parts: list[str]) -> str | Action | None:
    """Return the value that a chain leads to, or the next call; None if it is not known."""
    if (known := sight.facts.get(key(parts))) is not None:
        return known
    name, *rest = parts
    subject = rest[0] if len(rest) == 1 else _find(sight, rest)
    if not isinstance(subject, str):
        return subject
    if (known := sight.facts.get(key([name, subject]))) is not None:
        return known
    return next_try(sight, calls_for_subject(sight.tools, subject))


def _forget(sight: Sight, question: str) -> Solved | None:
    """Forget what the user asks to forget, if there is a tool for it."""
    asked = _FORGET.search(question)
    tools = {tool.name for tool in sight.tools}
    if asked is None or not {"forget", "recall_user"} <= tools:
        return None
    done = {call.name: message for call, message in sight.results if not message.is_error}
    if "forget" in done:
        return Answer("It is forgotten.")
    shown = "\n".join(message.content for message in sight.messages)
    line = rf"^- .*\b{re.escape(asked[1])}\b.*; (fact_\w+)\]$"
    if (found := re.search(line, shown, re.I | re.MULTILINE)) is not None:
        return Action(name="forget", args={"fact_id": found[1]})
    if "recall_user" in done:
        return Answer(f"{UNKNOWN} the {asked[1]}.")
    return Action(name="recall_user", args={"query": asked[1]})


SOLVERS: tuple[Solver, ...] = (_forget, _puzzle, _arithmetic, _facts)
"""The rules, in order; the first that fits a question solves it."""
