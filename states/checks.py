"""What a program checks of data that fits its type, and how often it goes back to the model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from agent_brain.common.values import check_count, takes
from agent_brain.memories.base import Memory
from agent_brain.states.errors import StateDefinitionError

Problem: TypeAlias = str | Awaitable[str | None] | None
Check: TypeAlias = Callable[[Memory, Any], Problem] | Callable[[Any], Problem]
"""A function of the data, or of the memory and the data, sync or async, that returns what is wrong
with it, for the model, or None. ``memory.deps`` is what the run was given."""


@dataclass(frozen=True, slots=True)
class Checks:
    """A check and how often data that is not valid goes back to the model.

    Attributes:
        check: The check, if there is one.
        corrections: How often the model may correct itself.
        takes_memory: Whether the check is a function of the memory, too.
    """

    check: Callable[..., Problem] | None
    corrections: int
    takes_memory: bool

    def of(self, memory: Memory) -> dict[str, Any]:
        """Return the arguments of a :class:`StructuredRequest`."""
        check = partial(self.check, memory) if self.check and self.takes_memory else self.check
        return {"check": check, "corrections": self.corrections}


def checks_of(check: Check | None, corrections: int, output_type: Any) -> Checks:
    """Return a check with its corrections.

    Raises:
        StateDefinitionError: ``check`` is not a function of one or two arguments, or there is no
            output type to check; or ``corrections`` is below 0.
    """
    check_count(StateDefinitionError, "corrections", corrections, least=0)
    if check is None:
        return Checks(None, corrections, takes_memory=False)
    if output_type is None:
        raise StateDefinitionError("check= looks at data: give output_type= too")
    return Checks(check, corrections, takes_memory=_takes_two(check))


def _takes_two(check: object) -> bool:
    if takes(check, "data"):
        return False
    if takes(check, "memory", "data"):
        return True
    raise StateDefinitionError(
        f"check={check!r:.200}: it must be a function that is called as check(data) or "
        "check(memory, data)"
    )


def checked_problem(problem: object) -> str | None:
    """Return what a check has returned.

    Raises:
        StateDefinitionError: It is not text.
    """
    if problem is None or isinstance(problem, str):
        return problem or None
    raise StateDefinitionError(
        f"check= returned {problem!r:.100}: it returns what is wrong, as text, or None"
    )
