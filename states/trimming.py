"""Shorten a request that exceeds a model's context window."""

from __future__ import annotations

from collections.abc import Sequence

from agent_brain.common.text import count_tokens
from agent_brain.memories.message import Message, Role
from agent_brain.memories.views.groups import group
from agent_brain.memories.views.tokens import message_tokens
from agent_brain.states.prompts import RESULT_AS_TEXT


def without_oldest(messages: Sequence[Message]) -> list[Message] | None:
    """Return ``messages`` without the oldest groups, about half as long as before.

    System messages, pinned messages, the current goal (the last user message that no state wrote)
    and the last group are always kept, and a call stays with its results.

    Returns:
        None if nothing may be left out.
    """
    groups = _groups(messages)
    goal = next((m for m in reversed(messages) if _is_asked_by_user(m)), None)
    sizes = [sum(message_tokens(m, count_tokens) for m in members) for members in groups]
    left, most = sum(sizes), sum(sizes) // 2
    kept: list[Message] = []
    for members, size in zip(groups, sizes, strict=True):
        if left > most and members is not groups[-1] and not _must_stay(members, goal):
            left -= size
        else:
            kept += members
    return kept if len(kept) < len(messages) else None


def _groups(messages: Sequence[Message]) -> list[list[Message]]:
    """Return groups; results that are written as text belong to the message that asked for them."""
    groups: list[list[Message]] = []
    for members in group(messages):
        if groups and members[0].cause_by == RESULT_AS_TEXT:
            groups[-1] += members
        else:
            groups.append(members)
    return groups


def _is_asked_by_user(message: Message) -> bool:
    return message.role is Role.USER and message.cause_by is None


def _must_stay(members: Sequence[Message], goal: Message | None) -> bool:
    return any(m.role is Role.SYSTEM or m.pinned or m is goal for m in members)
