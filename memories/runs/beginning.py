"""Beginning a turn and a run by the methods that a subclass has replaced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from agent_brain.memories.message import Message

if TYPE_CHECKING:
    from agent_brain.memories.base import Memory


@dataclass(frozen=True, slots=True)
class Beginning:
    """A run that begins with the next goal, in the same write.

    Attributes:
        run_id: The ID of the run.
        state: The name of the state that it begins in.
        before: Messages to record ahead of the goal.
    """

    run_id: str
    state: str
    before: Sequence[Message] = ()


@lru_cache(maxsize=256)
def is_replaced(memory: type[Memory], method: str, now: object, by: str = "begin") -> bool:
    """Return whether a subclass has replaced ``method``, which ``by`` stands in for.

    That is a subclass of the class whose ``by`` the memory has.

    Args:
        memory: The class of the memory.
        method: The name of the method.
        now: The method, as a class may be changed after it was looked at.
        by: The name of the method that stands in for it.
    """
    for kind in memory.__mro__:
        if by in vars(kind):
            return False
        if method in vars(kind):
            return True
    return False


async def begin_by_set_goal(memory: Memory, goal: Message, beginning: Beginning) -> None:
    """Begin a turn and a run with ``set_goal``, and ``update`` for the messages before the goal.

    A ``set_goal`` that calls that of a built-in memory records the run in the same write.
    """
    inner = memory
    while inner.wrapped:
        inner = inner.wrapped[0]
    before = beginning.before
    if before and (
        is_replaced(type(memory), "update", type(memory).update) or not inner.begins_with_goal
    ):
        await memory.update([*before])
        before = ()
    earlier = await inner._before_turn()
    inner._beginning = replace(beginning, before=before)
    try:
        await memory.set_goal(goal)
    finally:
        left = take_beginning(inner)
    if left is not None:  # no built-in memory has set the goal
        await inner._note_new_turn(earlier)
        memory.control.begin(left.run_id, left.state)
        await memory.checkpoint()


def take_beginning(memory: Memory) -> Beginning | None:
    """Return the run that begins with the next goal of a memory, if one does; it is taken once."""
    beginning, memory._beginning = memory._beginning, None
    return beginning
