"""The request of a model call as it is recorded and compared: without secrets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from agent_brain.memories.message import Message
from agent_brain.memories.trace.model_calls import ModelCallRecord, without_bytes
from agent_brain.states.models.call_data import hash_of, request_to_data, schema_of, tool_to_data
from agent_brain.states.models.llm import LLM
from agent_brain.tools.base import BaseTool
from agent_brain.tools.scrubber import Scrubber
from agent_brain.tools.text import clean_json

MOST = 20_000  # messages whose hidden form is kept


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request without secrets.

    Attributes:
        model: The name of the model.
        params: Its parameters.
        messages: The messages, without the bytes of attachments.
        tools: What the model was told of the tools.
        output_schema: The JSON Schema of the requested data.
        data: All of it in the form in which requests are compared.
        hash: The hash of that.
    """

    model: str
    params: Mapping[str, Any]
    messages: tuple[Message, ...]
    tools: tuple[Mapping[str, Any], ...]
    output_schema: Mapping[str, Any] | None
    data: Mapping[str, Any]
    hash: str


class RequestReader:
    """Hides the secrets in requests, once in each message."""

    def __init__(self) -> None:
        self._hidden: dict[str, tuple[Message, Message]] = {}  # by ID: as it is, as it is recorded
        self._scrubbers: dict[int, tuple[LLM | None, Scrubber]] = {}

    def scrubber_of(self, llm: LLM | None) -> Scrubber:
        """Return what hides the secrets of a model."""
        known = self._scrubbers.get(id(llm))
        if known is None:
            known = self._scrubbers[id(llm)] = llm, Scrubber(params=_params_of(llm))
        return known[1]

    def read(
        self,
        llm: LLM,
        messages: Sequence[Message],
        tools: Sequence[BaseTool],
        output_type: type[BaseModel] | None,
    ) -> SentRequest:
        """Return a request without secrets."""
        scrubber = self.scrubber_of(llm)
        hidden = tuple(self._message(message, scrubber) for message in messages)
        told = tuple(scrubber.data(clean_json(tool_to_data(tool))) for tool in tools)
        schema = scrubber.data(schema_of(output_type))
        data = request_to_data(llm.model, hidden, told, schema)
        params = scrubber.data(clean_json(_plain(_params_of(llm))))
        return SentRequest(llm.model, params, hidden, told, schema, data, hash_of(data))

    def _message(self, message: Message, scrubber: Scrubber) -> Message:
        known = self._hidden.get(message.id)
        if known is not None and known[0] is message:
            return known[1]
        if len(self._hidden) >= MOST:
            self._hidden.clear()
        hidden = hide_secrets(message, scrubber)
        self._hidden[message.id] = message, hidden
        return hidden


def data_of(call: ModelCallRecord) -> dict[str, Any]:
    """Return the request of a recorded call in the form in which requests are compared."""
    return request_to_data(call.model, call.messages, call.tools, call.output_schema)


def hide_secrets(message: Message, scrubber: Scrubber) -> Message:
    """Return ``message`` as it is recorded: what a model sees of it, without secrets."""
    message = without_bytes(message)
    changed: dict[str, Any] = {}
    if (content := scrubber.text(message.content)) != message.content:
        changed["content"] = content
    if message.tool_calls:
        calls = tuple(
            call.model_copy(
                update={
                    "args": scrubber.data(dict(call.args)),
                    "unparsed": scrubber.data(call.unparsed),
                }
            )
            for call in message.tool_calls
        )
        if calls != message.tool_calls:
            changed["tool_calls"] = calls
    if message.metadata:
        sent = {k: v for k, v in message.metadata.items() if k == "provider_data"}
        changed["metadata"] = scrubber.data(sent)
    return message.model_copy(update=changed) if changed else message


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
