"""The operations of a graph of thoughts, as data, and their checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from agent_brain.common.values import error_lines
from agent_brain.memories.base import Memory
from agent_brain.nets.errors import NetDefinitionError, Problem


class _Operation(BaseModel):
    """Base class for operations.

    Attributes:
        name: Its name in the ``inputs`` of others.
        inputs: Names of the operations whose thoughts it takes, in this order.
        prompt: The request to the model. Each kind has a default.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1)
    inputs: tuple[str, ...] = ()
    prompt: str = ""


class Generate(_Operation):
    """Make new thoughts from each thought, or from the goal if there are no inputs.

    Attributes:
        count: The number of thoughts from each; ignored with a function.
        by: A function of the memory and the thought that returns thoughts, instead of the model.
    """

    kind: Literal["generate"] = "generate"
    count: int = Field(default=1, ge=1)
    by: Callable[[Memory, str], Sequence[str] | Awaitable[Sequence[str]]] | None = None


class Aggregate(_Operation):
    """Combine all thoughts into one.

    Attributes:
        by: A function of the memory and the thoughts that returns one, instead of the model.
    """

    kind: Literal["aggregate"] = "aggregate"
    by: Callable[[Memory, Sequence[str]], str | Awaitable[str]] | None = None


class Refine(_Operation):
    """Improve each thought.

    Attributes:
        by: A function of the memory and the thought that returns a thought, instead of the model.
    """

    kind: Literal["refine"] = "refine"
    by: Callable[[Memory, str], str | Awaitable[str]] | None = None


class Score(_Operation):
    """Give each thought a score.

    Attributes:
        by: A function of the memory and the thought that returns a number (higher is better),
            instead of the model.
    """

    kind: Literal["score"] = "score"
    by: Callable[[Memory, str], float | Awaitable[float]] | None = None


class KeepBest(_Operation):
    """Keep the thoughts with the highest scores, best first; those without a score come last.

    Attributes:
        count: The number of thoughts to keep.
    """

    kind: Literal["keep_best"] = "keep_best"
    count: int = Field(default=1, ge=1)


Operation: TypeAlias = Annotated[
    Generate | Aggregate | Refine | Score | KeepBest, Field(discriminator="kind")
]
_operations: TypeAdapter[tuple[Operation, ...]] = TypeAdapter(tuple[Operation, ...])


def read_operations(given: Sequence[Operation | Mapping[str, Any]]) -> tuple[Operation, ...]:
    """Return validated operations, from objects or plain data."""
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
            yield Problem("duplicate_operation", text, "Give each its own name", (name,))
    for operation in operations:
        for name in operation.inputs:
            if name not in names:
                yield Problem(
                    "unknown_input",
                    f"Operation {operation.name!r} takes {name!r}, which is not an operation",
                    f"Use some of: {', '.join(names)}",
                    (operation.name,),
                )
        if not operation.inputs and operation.kind != "generate":
            yield Problem(
                "no_input",
                f"Operation {operation.name!r} has no inputs",
                "Add inputs; only generate can do without",
                (operation.name,),
            )
    cycle = _in_cycles(operations)
    if cycle:
        text = f"These operations wait for each other: {', '.join(cycle)}"
        yield Problem("cycle", text, "Remove an input", tuple(cycle))


def _in_cycles(operations: Sequence[Operation]) -> list[str]:
    """Return the operations that never get all of their known inputs."""
    known = {operation.name for operation in operations}
    left = {o.name: set(o.inputs) & known for o in operations}
    while ready := [name for name, inputs in left.items() if not inputs & left.keys()]:
        for name in ready:
            del left[name]
    return list(left)


def results_of(operations: Sequence[Operation]) -> list[str]:
    """Return the operations whose thoughts no other takes: the results of the graph."""
    taken = {name for operation in operations for name in operation.inputs}
    return [operation.name for operation in operations if operation.name not in taken]
