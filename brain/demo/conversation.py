"""The messages, read as turns: what was asked, what tools were called, what they answered."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_brain.demo.schema import Card, read_card
from agent_brain.memories.message import Message, Role
from agent_brain.states.prompts import CLOSING_CAUSE, HINT_CAUSE
from agent_brain.tools import BaseTool


@dataclass(frozen=True, slots=True)
class Called:
    """A tool call with its result."""

    name: str
    args: Mapping[str, Any]
    content: str
    is_error: bool


@dataclass(slots=True)
class Turn:
    """A question, and what came after it."""

    question: str
    called: list[Called] = field(default_factory=list)
    answer: str = ""


_RESULT = re.compile(r"(Result of|Error from) ([\w-]+|the tool): <data>(.*)</data>", re.S)
_GOAL = re.compile(r"^Goal: (.+)", re.M)
_JSON = json.JSONDecoder()


def read_turns(messages: Sequence[Message]) -> list[Turn]:
    """The turns of a conversation, oldest first; at least one."""
    turns: list[Turn] = []
    waiting: dict[str, tuple[str, Mapping[str, Any]]] = {}
    for message in messages:
        if message.role is Role.USER and message.cause_by not in (CLOSING_CAUSE, HINT_CAUSE):
            written = _RESULT.fullmatch(message.content)
            if turns and waiting and written:
                turns[-1].called.append(_written_result(written, waiting))
            else:
                turns.append(Turn(message.content))
                waiting = {}
        elif message.role is Role.ASSISTANT and turns:
            waiting |= dict(_calls(message))
            if not message.tool_calls:
                turns[-1].answer = message.content
        elif message.role is Role.TOOL and turns:
            default: tuple[str, Mapping[str, Any]] = (message.name or "the tool", {})
            name, args = waiting.pop(message.tool_call_id or "", default)
            turns[-1].called.append(Called(name, args, message.content, message.is_error))
    return turns or [Turn(_goal_of(messages))]


def _goal_of(messages: Sequence[Message]) -> str:
    """The goal that a prompt quotes, where no user message is left."""
    goals = [match[1] for message in messages if (match := _GOAL.search(message.content))]
    return goals[-1] if goals else ""


def _calls(message: Message) -> Iterator[tuple[str, tuple[str, Mapping[str, Any]]]]:
    for action in message.tool_calls:
        yield action.id, (action.name, action.args)
    if not message.tool_calls:
        for index, value in enumerate(_objects(message.content)):
            if isinstance(value.get("name"), str) and isinstance(value.get("args"), dict):
                yield f"{message.id}/{index}", (value["name"], value["args"])


def _written_result(
    match: re.Match[str], waiting: dict[str, tuple[str, Mapping[str, Any]]]
) -> Called:
    fitting = (key for key, (name, _) in waiting.items() if name == match[2])
    key = next(fitting, next(iter(waiting)))
    name, args = waiting.pop(key)
    return Called(name, args, match[3], match[1] == "Error from")


def read_cards(
    messages: Sequence[Message], tools: Sequence[BaseTool], *, native: bool
) -> list[Card]:
    """The tools: those given and, for a model that has no native calls, those told in a prompt."""
    cards = [read_card(one.name, one.description, one.input_schema) for one in tools]
    if native or cards:
        return cards
    for message in messages:
        if message.role is Role.SYSTEM:
            for value in _objects(message.content):
                cards.extend(_described(value))
    return cards


def _described(value: Mapping[str, Any]) -> Iterator[Card]:
    for name, part in value.items():
        if isinstance(part, dict) and isinstance(part.get("input_schema"), dict):
            yield read_card(name, str(part.get("description", "")), part["input_schema"])


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Every JSON object at the top level of ``text``."""
    position = text.find("{")
    tries = 0
    while position >= 0 and tries < 100:
        tries += 1
        try:
            value, end = _JSON.raw_decode(text, position)
            yield value
        except (ValueError, RecursionError):
            end = position + 1
        position = text.find("{", end)
