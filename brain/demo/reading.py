"""The messages as the demo model reads them: what was asked, and what tools have answered."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_brain.memories.message import Message, Role

_SCHEMA = re.compile(r"\s*[^\n]*JSON Schema.*", re.DOTALL)  # how to answer, not what was asked
_STOP = frozenset(
    "a an and are as at be by call can could did do does for from get give has have how i in into "
    "is it its make many me much my of on or please tell that the then there this to tool use was "
    "we were what when where which who will with would you your".split()
)


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call, and what the tool answered once it has."""

    name: str
    args: Mapping[str, Any]
    content: str = ""
    is_error: bool = False


@dataclass(slots=True)
class Turn:
    """What a user said, the calls that were answered since, and what the model said.

    ``request`` tells that a state said it, about what the user had asked.
    """

    question: str
    request: bool = False
    calls: list[Call] = field(default_factory=list)
    answer: str = ""


def words(text: str) -> frozenset[str]:
    """The words of a text or of an identifier that mean something, without a plural's s."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])|[\W_]+", " ", text).lower()
    singular = (re.sub(r"(?<=\w\w)(?<![siu])s$", "", word) for word in spaced.split())
    return frozenset(singular) - _STOP


def read_turns(messages: Sequence[Message]) -> list[Turn]:
    """The turns of a conversation, oldest first; at least one."""
    turns = [Turn("")]
    begun: dict[str | None, Call] = {}
    for message in messages:
        match message.role:
            case Role.USER:
                turns.append(Turn(_SCHEMA.sub("", message.content), message.cause_by is not None))
            case Role.ASSISTANT if message.tool_calls:
                begun |= {call.id: Call(call.name, call.args) for call in message.tool_calls}
            case Role.ASSISTANT:
                turns[-1].answer = message.content
            case Role.TOOL:
                call = begun.get(message.tool_call_id, Call(message.name or "tool", {}))
                answered = Call(call.name, call.args, message.content, message.is_error)
                turns[-1].calls.append(answered)
    return turns[1:] or turns
