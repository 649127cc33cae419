"""Groups: what belongs together and is never split.

An assistant message that asks for calls and all the results that answer them are one group; any
other message is a group of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from agent_brain.memories.message import Message, Role


def group(messages: Iterable[Message]) -> list[list[Message]]:
    """``messages`` as groups, each where its first message stands.

    A result belongs to the last message before it that asked for a call of its id. A result whose
    call is not among ``messages`` is a group of its own.
    """
    groups: list[list[Message]] = []
    asked: dict[str, list[Message]] = {}
    for message in messages:
        if message.role is Role.TOOL and (found := asked.get(message.tool_call_id or "")):
            found.append(message)
            continue
        groups.append([message])
        for call in message.tool_calls:
            asked[call.id] = groups[-1]
    return groups


def is_whole(messages: list[Message]) -> bool:
    """Whether a group has its call and the results of all its calls."""
    first = messages[0]
    answered = {message.tool_call_id for message in messages[1:]}
    return first.role is not Role.TOOL and all(call.id in answered for call in first.tool_calls)


def with_partners(ids: Collection[str], messages: Iterable[Message]) -> list[str]:
    """The ids of all messages in groups that one of ``ids`` belongs to, in the order of the groups.

    Taking these out leaves no result without its call and no call without its result.
    """
    wanted = frozenset(ids)
    return [
        message.id
        for members in group(messages)
        if any(message.id in wanted for message in members)
        for message in members
    ]


def whole_groups(messages: Iterable[Message]) -> list[Message]:
    """``messages`` without results whose call is missing and calls whose results are missing."""
    whole = {m.id for members in group(messages) if is_whole(members) for m in members}
    return [message for message in messages if message.id in whole]
