"""Tool calls that have begun, and what a model reads of those that were cut off."""

from __future__ import annotations

from dataclasses import dataclass

from agent_brain.memories.message import Message
from agent_brain.tools.action import Action


@dataclass(slots=True)
class Call:
    """A tool call that has begun, recorded so that a crash can neither lose nor repeat it unseen.

    Attributes:
        action: The call.
        result: Its result, once it has finished.
        reported: Whether the event of its end has been streamed.
        continues: Whether it runs on a memory that is kept, and continues there.
        uncounted: Whether it has finished and is not counted yet: the event of its end is not read.
    """

    action: Action
    result: Message | None = None
    reported: bool = False
    continues: bool = False
    uncounted: bool = False


def uncertain(call: Action) -> str:
    """Return what the model reads about a call that had begun and has no result."""
    return (
        f"{call.name!r} was interrupted while it was running. It may or may not have taken effect, "
        "and was not run again"
    )


def forgotten(call: Action) -> str:
    """Return what the model reads about a call whose run ended as something was forgotten."""
    return (
        f"What became of {call.name!r} was forgotten. It may or may not have taken effect, and was "
        "not run again"
    )
