"""Leaves out messages that repeat what was just said, where a memory is asked to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import TypeAlias

from agent_brain.common.values import is_count
from agent_brain.memories.errors import MemoryDefinitionError
from agent_brain.memories.message import Message, Role
from agent_brain.memories.store.log import MessageLog

Window: TypeAlias = timedelta | int
_SAME = ("role", "name", "sent_from", "send_to", "content", "attachments")


def checked_window(window: Window | None) -> Window | None:
    """Return ``window`` if it is a duration or a number of turns, or None.

    Raises:
        MemoryDefinitionError: It is something else.
    """
    long = window > timedelta(0) if isinstance(window, timedelta) else is_count(window)
    if window is not None and not long:
        raise MemoryDefinitionError(
            f"dedupe={window!r}: use a timedelta, or a number of turns from 1 on"
        )
    return window


def unrepeated(messages: Sequence[Message], log: MessageLog, window: Window) -> Sequence[Message]:
    """Return ``messages`` without those that repeat one of ``log``, or an earlier one of them.

    A repetition has the same text, attachments, role, sender and receivers, within a duration or a
    number of turns. A turn begins with a message of a user after one of somebody else. Calls of
    tools and their results are never repetitions.

    Args:
        messages: What is to be added.
        log: What was said before; it costs as much as there is within the window.
        window: The duration, by ``created_at``, or the number of turns.
    """
    if not messages:
        return messages
    fresh: list[Message] = []
    known: dict[tuple[object, ...], tuple[Message, int]] = {}
    turn, before = 0, None
    earlier = [*_within(window, messages, log)][::-1]
    for place, message in enumerate([*earlier, *messages], -len(earlier)):
        begins = message.role is Role.USER and before not in (None, Role.USER)
        if not message.tool_calls and message.role is not Role.TOOL:
            said = tuple(getattr(message, name) for name in _SAME)
            same, at = known.get(said, (message, 0))
            if isinstance(window, int):
                near = turn + begins - at < window
            else:
                near = abs(message.created_at - same.created_at) <= window
            if place >= 0 and near and same.id != message.id:
                continue
            known[said] = message, turn + begins
        turn, before = turn + begins, message.role
        if place >= 0:
            fresh.append(message)
    return fresh


def _within(window: Window, messages: Iterable[Message], log: MessageLog) -> Iterator[Message]:
    """Yield the messages of the log that may be repeated, the newest first."""
    first, turns, later = min(message.created_at for message in messages), 0, None
    for message in reversed(log):
        if isinstance(window, int):
            turns += later is Role.USER and message.role is not Role.USER
            if turns == window:
                return
        elif first - message.created_at > window:
            return
        later = message.role
        yield message
