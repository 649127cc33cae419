"""Text and thoughts as messages of AG-UI. Private."""

from __future__ import annotations

from collections.abc import Iterable

from ag_ui.core import (
    BaseEvent,
    ReasoningEndEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
)

from agent_brain.memories.message import Message
from agent_brain.serving.web.ag_ui.owned_ids import OwnedIds
from agent_brain.serving.web.ag_ui.subagents import Subagents
from agent_brain.serving.web.chat.parts import OpenParts, Part, Path
from agent_brain.states.events import Event, TextDelta
from agent_brain.tools.ids import new_id
from agent_brain.tools.text import clean


class Texts:
    """The messages of a run that are being streamed.

    Attributes:
        said: Whether there was text, other than thoughts, at the outermost path.
    """

    def __init__(self, subagents: Subagents) -> None:
        self.said = False
        self._subagents = subagents
        self._parts = OpenParts()
        self._ids = OwnedIds()

    def message_id(self, response_id: str, subagent: str | None) -> str:
        """Return the ID of the message for a response; its calls join it."""
        return self._ids.get(response_id, subagent)

    def add(self, event: TextDelta) -> list[BaseEvent]:
        """Return the events for a piece of text."""
        if not event.text:
            return []
        events: list[BaseEvent] = []
        part = self._parts.get(event)
        if part is not None and part.thought != event.thought:
            events += self.close_response(event, event.response_id)
            part = None
        subagent, text = self._subagents.id_of(event.path), clean(event.text)
        if part is None:
            part = self._parts.add(event, self._part_id(event, subagent))
            events += _start(part, subagent)
        if part.thought:
            content: BaseEvent = ReasoningMessageContentEvent(
                message_id=part.id, delta=text, subagent_run_id=subagent
            )
        else:
            self.said = self.said or not event.path
            content = TextMessageContentEvent(
                message_id=part.id, delta=text, subagent_run_id=subagent
            )
        return [*events, content]

    def _part_id(self, event: TextDelta, subagent: str | None) -> str:
        if event.thought or event.response_id is None:
            return new_id("reasoning" if event.thought else "msg")
        return self.message_id(event.response_id, subagent)

    def close_response(self, event: Event, response_id: str | None) -> list[BaseEvent]:
        """Return the events that end the text of a response."""
        return self._close(self._parts.close_response(event, response_id))

    def close_state(self, path: Path, state: str) -> list[BaseEvent]:
        """Return the events that end the texts of a state, and of everything inside it."""
        return self._close(self._parts.close_state(path, state))

    def close_path(self, path: Path) -> list[BaseEvent]:
        """Return the events that end the texts at a path and inside it."""
        return self._close(self._parts.close_path(path))

    def _close(self, parts: Iterable[Part]) -> list[BaseEvent]:
        return [event for part in parts for event in _end(part, self._subagents.id_of(part.path))]


def whole_text(message_id: str, text: str) -> list[BaseEvent]:
    """Return the events for a message of the assistant that is complete."""
    return [
        TextMessageStartEvent(message_id=message_id, role="assistant"),
        TextMessageContentEvent(message_id=message_id, delta=clean(text)),
        TextMessageEndEvent(message_id=message_id),
    ]


def user_message(message: Message) -> list[BaseEvent]:
    """Return the events for a message of the user."""
    return [
        TextMessageStartEvent(message_id=message.id, role="user"),
        TextMessageContentEvent(message_id=message.id, delta=message.content),
        TextMessageEndEvent(message_id=message.id),
    ]


def _start(part: Part, subagent: str | None) -> list[BaseEvent]:
    if not part.thought:
        return [
            TextMessageStartEvent(message_id=part.id, role="assistant", subagent_run_id=subagent)
        ]
    return [
        ReasoningStartEvent(message_id=part.id, subagent_run_id=subagent),
        ReasoningMessageStartEvent(message_id=part.id, subagent_run_id=subagent),
    ]


def _end(part: Part, subagent: str | None) -> list[BaseEvent]:
    if not part.thought:
        return [TextMessageEndEvent(message_id=part.id, subagent_run_id=subagent)]
    return [
        ReasoningMessageEndEvent(message_id=part.id, subagent_run_id=subagent),
        ReasoningEndEvent(message_id=part.id, subagent_run_id=subagent),
    ]
