"""The operations of a graph of thoughts, declared as data, and what can be wrong with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from agent_brain.memories.base import Memory
from agent_brain.nets.errors import NetDefinitionError, Problem
from agent_brain.tools.values import error_lines


class _Operation(BaseModel):
    """What all operations have.

    Attributes:
        name: What others call it in their ``inputs``.
        inputs: Names of the operations whose thoughts it works on, in this order.
        prompt: What the model is asked to do; each kind has a default.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1)
    inputs: tuple[str, ...] = ()
    prompt: str = ""


class Generate(_Operation):
    """New thoughts from each thought, or from the goal alone if there are no inputs.

    Attributes:
        count: How many from each; a function decides that itself.
        by: Instead of the model, a function of the memory and the thought that returns thoughts.
    """

    kind: Literal["generate"] = "generate"
    count: int = Field(default=1, ge=1)
    by: Callable[[Memory, str], Sequence[str] | Awaitable[Sequence[str]]] | None = None


class Aggregate(_Operation):
    """One thought out of all the thoughts.

    Attributes:
        by: Instead of the model, a function of the memory and the thoughts that returns one.
    """

    kind: Literal["aggregate"] = "aggregate"
    by: Callable[[Memory, Sequence[str]], str | Awaitable[str]] | None = None


class Refine(_Operation):
    """A better thought in place of each.

    Attributes:
        by: Instead of the model, a function of the memory and the thought that returns a thought.
    """

    kind: Literal["refine"] = "refine"
    by: Callable[[Memory, str], str | Awaitable[str]] | None = None


class Score(_Operation):
    """The same thoughts, each with a score.

    Attributes:
        by: Instead of the model, a function of the memory and the thought that returns a number;
            more is better.
    """

    kind: Literal["score"] = "score"
    by: Callable[[Memory, str], float | Awaitable[float]] | None = None


class KeepBest(_Operation):
    """The thoughts with the highest scores, best first; those that have none come last.

    Attributes:
        count: How many.
    """

    kind: Literal["keep_best"] = "keep_best"
    count: int = Field(default=1, ge=1)


Operation: TypeAlias = Annotated[
    Generate | Aggregate | Refine | Score | KeepBest, Field(discriminator="kind")
]
_operations: TypeAdapter[tuple[Operation, ...]] = TypeAdapter(tuple[Operation, ...])


def read_operations(given: Sequence[Operation | Mapping[str, Any]]) -> tuple[Operation, ...]:
    """The operations that ``given`` describes, as objects or as plain data.

    Raises:
        NetDefinitionError: All that is wrong with them.
    """
    try:
        operations = _operations.validate_python(list(given))
    except ValidationError as error:
        problems = [Problem("bad_operation", line, "Correct it") for line in error_lines(error)]
        raise NetDefinitionError(problems, name="graph_of_thoughts") from error
    problems = list(_check(operations))
    if problems:
        raise NetDefinitionError(problems, name="graph_of_thoughts")
    return operations


def _check(operations: Sequence[Operation]) -> Iterator[Problem]:
    names = [operation.name for operation in operations]
    if not names:
        yield Problem("empty", "There are no operations", "Declare at least one")
    for name, count in Counter(names).items():
        if count > 1:
            text = f"{count} operations are named {name!r}"
            yield Problem("duplicate_operation", text, "Give each a name of its own", (name,))
    for operation in operations:
        for name in operation.inputs:
            if name not in names:
                yield Problem(
                    "unknown_input",
                    f"Operation {operation.name!r} takes {name!r}, which is no operation",
                    f"Take some of: {', '.join(names)}",
                    (operation.name,),
                )
        if not operation.inputs and operation.kind != "generate":
            yield Problem(
                "no_input",
                f"Operation {operation.name!r} has nothing to work on",
                "Name its inputs; only generate can begin with the goal",
                (operation.name,),
            )
    circle = _in_circles(operations)
    if circle:
        text = f"These operations wait for each other: {', '.join(circle)}"
        yield Problem("cycle", text, "Take an input away", tuple(circle))


def _in_circles(operations: Sequence[Operation]) -> list[str]:
    """The operations that never get all of their inputs, as far as these exist."""
    known = {operation.name for operation in operations}
    left = {o.name: set(o.inputs) & known for o in operations}
    while ready := [name for name, inputs in left.items() if not inputs & left.keys()]:
        for name in ready:
            del left[name]
    return list(left)


def results_of(operations: Sequence[Operation]) -> list[str]:
    """The operations whose thoughts no other takes: what the graph comes to."""
    taken = {name for operation in operations for name in operation.inputs}
    return [operation.name for operation in operations if operation.name not in taken]
