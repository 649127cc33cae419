"""From the chunks of a litellm stream to text, thoughts and whole actions. Pure: no I/O."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from agent_brain.states.models.litellm.messages import CALLS, MESSAGE, ORIGIN
from agent_brain.states.models.llm import Finish, FinishReason, Thought
from agent_brain.tools.action import Action
from agent_brain.tools.text import clean

_REASONS: Mapping[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
}
_REFUSING = ("anthropic claude", "azure_ai claude", "vertex_ai claude")
"""Claude says "refusal", which litellm translates to "content_filter"."""

_WANT_REASONING = ("deepseek", "moonshot")
"""Providers that refuse a conversation with tool calls unless the reasoning comes back with it."""


class ChunkReader:
    """Reads the chunks of one answer.

    Args:
        family: The :func:`~agent_brain.states.models.litellm.messages.origin` of the model.

    Attributes:
        usage: What the provider reported last, as litellm gives it; None before that.
        written: What the model has written so far, calls included.
    """

    def __init__(self, family: str) -> None:
        self.usage: Any = None
        self.written: list[str] = []
        self._family = family
        self._message: dict[str, JsonValue] = {}
        self._signatures: dict[str, JsonValue] = {}
        self._reasoning: list[str] = []
        self._text = _Text()
        self._thought = _Text()
        self._thinking = _Thinking()
        self._calls: list[_Call] = []
        self._open: dict[int, _Call] = {}

    def read(self, chunk: Any) -> Iterator[str]:
        """The text and the thoughts in a chunk; fragments of calls are kept."""
        self.usage = getattr(chunk, "usage", None) or self.usage
        for choice in chunk.choices[:1]:
            delta = choice.delta
            if thought := self._thought.add(getattr(delta, "reasoning_content", None) or ""):
                self.written.append(thought)
                self._reasoning.append(thought)
                yield Thought(thought)
            if text := self._text.add(delta.content or ""):
                self.written.append(text)
                yield text
            for call in delta.tool_calls or ():
                self._add(call)
            self._thinking.add(getattr(delta, "thinking_blocks", None) or ())
            self._keep_signatures(getattr(delta, "provider_specific_fields", None))

    def finish(self) -> Iterator[str | Action]:
        """What was kept: at the end of the answer, every call is complete."""
        if thought := self._thought.flush():
            yield Thought(thought)
        if text := self._text.flush():
            yield text
        taken: set[str] = set()
        for call in self._calls:
            action = _action(call, taken)
            taken.add(action.id)
            if call.signature:
                self._signatures[action.id] = {_SIGNATURE: call.signature}
            yield action

    def end(self, reported: str) -> Finish:
        """Why the response ended, and what goes back to the provider with it; after the rest.

        Args:
            reported: What litellm calls the reason.
        """
        reason = _REASONS.get(reported, "unknown")
        if reason == "content_filter" and self._family in _REFUSING:
            reason = "refusal"
        if reason == "stop" and self._calls:  # some servers say so
            reason = "tool_calls"
        return Finish(reason, self._provider_data())

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
            call = self._open[delta.index] = _Call(call_id)
            self._calls.append(call)
        # a name comes whole, once or with each fragment, or in fragments of its own
        call.name = name if name.startswith(call.name) else call.name + name
        call.arguments.append(arguments)
        call.signature = call.signature or signature
        self.written += [name, arguments]

    def _keep_signatures(self, fields: Any) -> None:
        signatures = fields.get("thought_signatures") if isinstance(fields, dict) else None
        if signatures:
            self._message["provider_specific_fields"] = {"thought_signatures": list(signatures)}


_SIGNATURE = "thought_signature"
_SIGNED = "__thought__"
"""litellm puts Gemini's signature of a call into its id, behind this."""


@dataclass(slots=True)
class _Call:
    id: str
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    signature: str = ""


class _Thinking:
    """Blocks of thinking that the provider signed, put together from their fragments."""

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


class RefusalWatch:
    """Passes an OpenAI stream on to litellm, and keeps the refusal in it, which litellm drops.

    Attributes:
        refusal: Why the model declines to answer, in its words.
    """

    def __init__(self, stream: Any) -> None:
        self.refusal = ""
        self._stream = stream

    def __aiter__(self) -> RefusalWatch:
        return self

    async def __anext__(self) -> Any:
        chunk = await anext(self._stream)
        for choice in getattr(chunk, "choices", None) or ():
            self.refusal += getattr(getattr(choice, "delta", None), "refusal", None) or ""
        return chunk

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Text:
    """Text in pieces, where a pair of surrogates may be split between two of them."""

    __slots__ = ("_half",)

    def __init__(self) -> None:
        self._half = ""

    def add(self, piece: str) -> str:
        if not piece:
            return ""
        piece, self._half = self._half + piece, ""
        if "\ud800" <= piece[-1] <= "\udbff":
            piece, self._half = piece[:-1], piece[-1]
        return clean(piece)

    def flush(self) -> str:
        half, self._half = self._half, ""
        return clean(half)


def _action(call: _Call, taken: set[str]) -> Action:
    raw = "".join(call.arguments)
    fields: dict[str, Any] = {"name": call.name}
    call_id = clean(call.id)
    if call_id and call_id not in taken:
        fields["id"] = call_id
    try:
        return Action(args=_arguments(raw), **fields)
    except (ValueError, RecursionError):
        return Action(unparsed=raw, **fields)


def _arguments(raw: str) -> dict[str, Any]:
    """The arguments that ``raw`` holds.

    Raises:
        ValueError: It is not a JSON object, or one with ``NaN`` or ``Infinity`` in it.
        RecursionError: It is nested too deeply.
    """
    if not raw.strip():
        return {}
    value = json.loads(raw, parse_constant=_refuse)
    if not isinstance(value, dict):
        raise ValueError(f"not a JSON object but {type(value).__name__}")
    return value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
