"""The request of a model call as it is recorded and compared: without secrets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from re import Pattern
from typing import Any

from pydantic import BaseModel

from agent_brain.common.scrubber import Scrubber
from agent_brain.common.text import clean_json
from agent_brain.memories.message import Message
from agent_brain.memories.runs.human_requests import EDITED
from agent_brain.memories.trace.recorded_call import RecordedCall, without_bytes
from agent_brain.memories.views.truncated_results import FULL_RESULT
from agent_brain.states.models.call_data import hash_of, request_to_data, schema_of, tool_to_data
from agent_brain.states.models.llm import LLM
from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool

MOST = 20_000  # messages whose hidden form is kept


class RequestReader:
    """Hides the secrets in requests, once in each message.

    Args:
        patterns: Regular expressions of further secrets.
    """

    def __init__(self, patterns: Iterable[str | Pattern[str]] = ()) -> None:
        self._patterns = tuple(patterns)
        self._hidden: dict[str, tuple[Message, Message]] = {}  # by ID: as it is, as it is recorded
        self._scrubbers: dict[int, tuple[LLM | None, Scrubber]] = {}

    def scrubber_of(self, llm: LLM | None) -> Scrubber:
        """Return what hides the secrets of a model."""
        known = self._scrubbers.get(id(llm))
        if known is None:
            known = self._scrubbers[id(llm)] = llm, Scrubber(self._patterns, _params_of(llm))
        return known[1]

    def read(
        self,
        llm: LLM,
        messages: Sequence[Message],
        tools: Sequence[BaseTool],
        output_type: type[BaseModel] | None,
    ) -> RecordedCall:
        """Return a request without secrets, as a call that has no response yet."""
        scrubber = self.scrubber_of(llm)
        call = RecordedCall(
            model=llm.model,
            params=scrubber.data(clean_json(_plain(_params_of(llm)))),
            messages=tuple(self._message(message, scrubber) for message in messages),
            tools=tuple(scrubber.data(clean_json(tool_to_data(tool))) for tool in tools),
            output_schema=scrubber.data(schema_of(output_type)),
        )
        return with_hash(call)

    def _message(self, message: Message, scrubber: Scrubber) -> Message:
        known = self._hidden.get(message.id)
        if known is not None and known[0] is message:
            return known[1]
        if len(self._hidden) >= MOST:
            self._hidden.clear()
        hidden = hide_secrets(message, scrubber)
        self._hidden[message.id] = message, hidden
        return hidden


def with_hash(call: RecordedCall) -> RecordedCall:
    """Return ``call`` with the hash of its request."""
    return call.model_copy(update={"request_hash": hash_of(request_to_data(call))})


def hide_secrets(message: Message, scrubber: Scrubber) -> Message:
    """Return ``message`` as it is recorded: what a model sees of it, without secrets."""
    message = without_bytes(message)
    changed: dict[str, Any] = {}
    if (content := scrubber.text(message.content)) != message.content:
        changed["content"] = content
    if message.tool_calls:
        calls = tuple(hide_in_action(call, scrubber) for call in message.tool_calls)
        if calls != message.tool_calls:
            changed["tool_calls"] = calls
    if message.attachments:
        changed["attachments"] = tuple(
            a.model_copy(update={"url": scrubber.data(a.url)}) for a in message.attachments
        )
    if message.metadata:
        sent = {k: v for k, v in message.metadata.items() if k == "provider_data"}
        changed["metadata"] = scrubber.data(sent)
    return message.model_copy(update=changed) if changed else message


def tool_result(message: Message) -> Message:
    """Return the result of a call as the tool returned it, with what a person decided."""
    full = message.metadata.get(FULL_RESULT)
    content = full if isinstance(full, str) else message.content.removeprefix(EDITED)
    decided = {name: value for name, value in message.metadata.items() if name == "decision"}
    return message.model_copy(update={"content": content, "metadata": decided})


def hide_in_action(action: Action, scrubber: Scrubber) -> Action:
    """Return a call of a tool without secrets in its arguments."""
    hidden = {"args": scrubber.data(dict(action.args)), "unparsed": scrubber.data(action.unparsed)}
    return action.model_copy(update=hidden)


def _params_of(llm: LLM | None) -> dict[str, Any]:
    params: Any = getattr(llm, "params", None)
    return params if isinstance(params, dict) else {}


def _plain(value: Any) -> Any:
    """Return ``value`` with text in place of what JSON does not have."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, str | int | float) else repr(value)
