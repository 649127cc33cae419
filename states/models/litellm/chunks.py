"""Read the chunks of a litellm stream into text, thoughts and complete actions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, JsonValue

from agent_brain.common.text import clean
from agent_brain.states.models.litellm.messages import CALLS, MESSAGE, ORIGIN
from agent_brain.states.models.llm import Finish, FinishReason, Thought
from agent_brain.tools.action import Action

_REASONS: Mapping[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
}
_REFUSING = ("anthropic claude", "azure_ai claude", "vertex_ai claude")
"""Families that report "refusal", which litellm translates to "content_filter"."""

_WANT_REASONING = ("deepseek", "moonshot")
"""Providers that reject a conversation with tool calls unless the reasoning is sent back."""

_BOM = "\ufeff"
_SIGNATURE = "thought_signature"
_SIGNED = "__thought__"
"""litellm appends Gemini's signature of a call to its id, after this marker."""


class ChunkReader:
    """Reads the chunks of one response.

    Args:
        family: The :func:`~agent_brain.states.models.litellm.messages.origin` of the model.

    Attributes:
        usage: The usage that the provider reported last, in litellm's form; None before that.
        written: All that the model has written so far, including calls.
    """

    def __init__(self, family: str) -> None:
        self.usage: Any = None
        self.written: list[str] = []
        self._family = family
        self._message: dict[str, JsonValue] = {}
        self._signatures: dict[str, JsonValue] = {}
        self._metadata: dict[str, list[JsonValue]] = {}
        self._reasoning: list[str] = []
        self._half_text = self._half_thought = ""
        self._thinking = _Thinking()
        self._calls: list[_CallParts] = []
        self._open: dict[int, _CallParts] = {}

    def read(self, chunk: Any) -> list[str]:
        """Return the text and thoughts in a chunk; fragments of calls are kept."""
        self.usage = _get(chunk, "usage") or self.usage
        if not chunk.choices:
            return []
        delta = chunk.choices[0].delta
        pieces: list[str] = []
        if piece := _get(delta, "reasoning_content"):
            thought, self._half_thought = _whole(self._half_thought + piece)
            if thought:
                self._reasoning.append(thought)
                pieces.append(Thought(thought))
        if piece := delta.content:
            if not self.written:
                piece = piece.removeprefix(_BOM)
            text, self._half_text = _whole(self._half_text + piece)
            if text:
                pieces.append(text)
        self.written += pieces
        for call in delta.tool_calls or ():
            self._add(call)
        if blocks := _get(delta, "thinking_blocks"):
            self._thinking.add(blocks)
        fields = _get(delta, "provider_specific_fields")
        signatures = fields.get("thought_signatures") if isinstance(fields, dict) else None
        if signatures:
            self._message["provider_specific_fields"] = {"thought_signatures": list(signatures)}
        for name, given in (
            ("citations", _get(chunk, "citations")),
            ("citations", _get(delta, "annotations")),
            ("images", _get(delta, "images")),
        ):
            if isinstance(given, list):
                self._keep(name, given)
        return pieces

    def _keep(self, name: str, given: list[Any]) -> None:
        """Keep citations or images: providers send each once, or all of them in each chunk."""
        kept = self._metadata.setdefault(name, [])
        kept += [item for item in map(_as_json, given) if item not in kept]

    def finish(self, *, complete: bool) -> Iterator[str | Action]:
        """Yield what was kept, at the end of the response.

        Args:
            complete: The provider said that it has ended, so that a call without arguments has
                none; if not, they have not arrived.
        """
        if self._half_thought:
            yield Thought(clean(self._half_thought))
        if self._half_text:
            yield clean(self._half_text)
        taken: set[str] = set()
        for call in self._calls:
            action = _action(call, taken, complete=complete)
            taken.add(action.id)
            if call.signature:
                self._signatures[action.id] = {_SIGNATURE: call.signature}
            yield action

    def end(self, reported: str) -> Finish:
        """Return why the response ended, and the data for the provider; call it last.

        Args:
            reported: litellm's name of the reason.
        """
        reason = _REASONS.get(reported, "unknown")
        if reason == "content_filter" and self._family in _REFUSING:
            reason = "refusal"
        if reason == "stop" and self._calls:  # as some servers report
            reason = "tool_calls"
        return Finish(reason, self._provider_data(), {**self._metadata})

    def _provider_data(self) -> dict[str, JsonValue]:
        message = dict(self._message)
        if self._thinking.blocks:
            message["thinking_blocks"] = self._thinking.blocks
        if self._reasoning and self._family.partition(" ")[0] in _WANT_REASONING:
            message["reasoning_content"] = "".join(self._reasoning)
        data: dict[str, JsonValue] = {MESSAGE: message, CALLS: self._signatures}
        data = {name: value for name, value in data.items() if value}
        return {ORIGIN: self._family, **data} if data else {}

    def _add(self, delta: Any) -> None:
        function = getattr(delta, "function", None)
        name = getattr(function, "name", None) or ""
        arguments = getattr(function, "arguments", None) or ""
        call_id, _, signature = (delta.id or "").partition(_SIGNED)
        call = self._open.get(delta.index)
        # some providers number all their calls 0: another id with a name is another call
        if call is None or (name and call_id and call_id != call.id):
            call = self._open[delta.index] = _CallParts(call_id)
            self._calls.append(call)
        # a name comes whole, in one fragment or in each, or in fragments
        call.name = name if name.startswith(call.name) else call.name + name
        call.arguments.append(arguments)
        call.signature = call.signature or signature
        self.written += [name, arguments]


@dataclass(slots=True)
class _CallParts:
    id: str
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    signature: str = ""


class _Thinking:
    """Assembles blocks of thinking that the provider signed."""

    __slots__ = ("_parts", "blocks")

    def __init__(self) -> None:
        self.blocks: list[JsonValue] = []
        self._parts: list[str] = []

    def add(self, fragments: Iterable[Mapping[str, Any]]) -> None:
        for fragment in fragments:
            if fragment.get("type") == "redacted_thinking":
                self.blocks.append({"type": "redacted_thinking", "data": fragment.get("data")})
                continue
            text, signature = fragment.get("thinking") or "", fragment.get("signature")
            if not signature:
                self._parts.append(text)
                continue
            before = "".join(self._parts)  # a signature ends a block, and may repeat all of it
            self._parts = []
            thinking = text if text.startswith(before) else before + text
            self.blocks.append({"type": "thinking", "thinking": thinking, "signature": signature})


def _get(model: Any, name: str) -> Any:
    """Return an optional attribute of a pydantic model, faster than ``getattr``."""
    found = vars(model).get(name)
    if found is None and (extra := getattr(model, "__pydantic_extra__", None)):
        found = extra.get(name)
    return found


def _whole(text: str) -> tuple[str, str]:
    """Return ``text`` without half a surrogate pair at its end, and that half."""
    if text.isascii():
        return text, ""
    if "\ud800" <= text[-1] <= "\udbff":
        return clean(text[:-1]), text[-1]
    return clean(text), ""


def _action(call: _CallParts, taken: set[str], *, complete: bool) -> Action:
    raw = "".join(call.arguments).removeprefix(_BOM)
    fields: dict[str, Any] = {"name": call.name}
    call_id = clean(call.id)
    if call_id and call_id not in taken:
        fields["id"] = call_id
    try:
        empty = complete and not raw.strip()
        return Action(args={} if empty else _arguments(raw), **fields)
    except (ValueError, RecursionError):
        return Action(unparsed=raw, **fields)


def _arguments(raw: str) -> dict[str, Any]:
    """Parse a JSON object without ``NaN`` and ``Infinity``; raises ValueError, RecursionError."""
    value = json.loads(raw, parse_constant=_refuse)
    if not isinstance(value, dict):
        raise ValueError(f"not a JSON object but {type(value).__name__}")
    return value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _as_json(item: Any) -> Any:
    return item.model_dump(mode="json") if isinstance(item, BaseModel) else item
