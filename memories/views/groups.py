"""Groups of messages, which are never split.

An assistant message with tool calls and all their results are one group; any other message is a
group of its own. Results are shown right behind their call: what arrives in between (somebody
writes while a tool runs) is shown after the group.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from operator import attrgetter

from agent_brain.memories.errors import MemoryUseError
from agent_brain.memories.message import Message, Role

TOOL, ASSISTANT = Role.TOOL, Role.ASSISTANT  # looking up an enum member is slow


def group(messages: Iterable[Message]) -> list[list[Message]]:
    """Return ``messages`` as groups, each at the place of its first message.

    A result belongs to the last message before it with a call of its ID. A result whose call is not
    among ``messages`` is a group of its own.
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
    """Return whether a group has its calls and all their results."""
    first = messages[0]
    answered = {message.tool_call_id for message in messages[1:]}
    return first.role is not Role.TOOL and all(call.id in answered for call in first.tool_calls)


def with_partners(ids: Collection[str], messages: Iterable[Message]) -> list[str]:
    """Return the IDs of all messages in the groups of ``ids``, in the order of the groups.

    Removing these leaves no result without its call and no call without its result.
    """
    groups: dict[str, int] = {}  # by ID, the place of the first message; no object for each
    asked: dict[str, int] = {}
    for at, message in enumerate(messages):
        call_id = message.tool_call_id or ""
        groups[message.id] = asked.get(call_id, at) if message.role is TOOL else at
        for call in message.tool_calls:
            asked[call.id] = at
    wanted = {groups[message_id] for message_id in ids if message_id in groups}
    return sorted((i for i, place in groups.items() if place in wanted), key=groups.__getitem__)


def arranged(messages: Iterable[Message]) -> list[Message]:
    """Return ``messages`` with each result right behind its call."""
    return [message for members in group(messages) for message in members]


def newest(messages: Sequence[Message], last: int | None) -> list[Message]:
    """Return the newest ``last`` of ``messages`` in whole groups, at least the newest group.

    The newest group is the one that began last. A window also shows an older group that has got a
    result since; see :class:`~agent_brain.memories.views.recent.Recent`.

    Args:
        messages: In order, each result behind its call.
        last: At most this many, unless the newest group alone has more; 0 and less is none, None
            is all.

    Raises:
        MemoryUseError: ``last`` is not a whole number.
    """
    if last is None:
        return list(messages)
    if isinstance(last, bool) or not isinstance(last, int):
        raise MemoryUseError(f"last= must be a whole number or None, not {last!r}")
    if last <= 0:
        return []
    if last >= len(messages):
        return list(messages)
    found: list[Message] = []
    for members in reversed(group(_behind_a_whole_group(messages, last))):
        if found and len(found) + len(members) > last:
            break
        found = members + found
    return found


def _behind_a_whole_group(messages: Sequence[Message], last: int) -> Sequence[Message]:
    """Return an end of ``messages`` with the newest ``last``, starting with a group."""
    start = len(messages) - last
    while start and messages[start].role is Role.TOOL:
        start -= 1
    return messages[start:]


def whole_groups(messages: Iterable[Message]) -> list[Message]:
    """Return ``messages`` without results whose call is missing and calls without all results."""
    everything = list(messages)
    whole = {m.id for members in group(everything) if is_whole(members) for m in members}
    return [message for message in everything if message.id in whole]


_id = attrgetter("id")
FEW = 8  # items that are found in a list as fast as in a set, which is larger


class Answered:
    """Finds results whose call is missing, and calls that have no result.

    The last message with calls counts as answered while results are missing, until the model speaks
    again.

    Attributes:
        hidden: IDs of what a model must not be shown.
    """

    __slots__ = ("_answered", "_calls", "_members", "hidden")

    def __init__(self) -> None:
        self.hidden: Collection[str] = ()
        self._members: list[str] = []  # of the last group with calls
        self._calls: Collection[str] = ()
        self._answered: list[str] = []  # those of the calls that have results

    def read(self, messages: Iterable[Message]) -> None:
        """Read what follows: in order, each result behind its call."""
        for message in messages:
            fields = message.__dict__  # attributes of pydantic models are slow, and this is often
            role = fields["role"]
            if role is TOOL:
                call_id = fields["tool_call_id"]
                if call_id not in self._calls:
                    self._hide([message.id])
                    continue
                self._members.append(message.id)
                self._answered.append(call_id)
            elif role is ASSISTANT:
                if len({*self._answered}) < len(self._calls):
                    self._hide(self._members)
                self._members, self._answered = [message.id], []
                calls = {*map(_id, fields["tool_calls"])}
                self._calls = calls if len(calls) > FEW else [*calls]

    def _hide(self, ids: Iterable[str]) -> None:
        if not isinstance(self.hidden, set):
            self.hidden = set()
        self.hidden.update(ids)


def behind_rules(block: Sequence[Message], messages: Sequence[Message]) -> list[Message]:
    """Return ``messages`` with ``block`` behind the system messages that they begin with."""
    lead = 0
    while lead < len(messages) and messages[lead].role is Role.SYSTEM:
        lead += 1
    return [*messages[:lead], *block, *messages[lead:]]
