"""Read the chunks of a litellm stream into text, thoughts and complete actions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, JsonValue

from agent_brain.common.ids import new_id
from agent_brain.common.text import clean
from agent_brain.states.models.litellm.messages import CALLS, MESSAGE, ORIGIN, SERVED
from agent_brain.states.models.litellm.provider_tools import claude_calls, in_characters
from agent_brain.states.models.llm import (
    ArgumentsDelta,
    Finish,
    FinishReason,
    ProviderCall,
    Thought,
)
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
_SERVED = "srvtoolu_"
"""Begins the ids of calls that Claude's servers have run; litellm streams them as tool calls, or
whole in a field of their own, depending on its version."""
_RESULTS = ("web_search_results", "tool_results")


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
        self._noted: list[ProviderCall] = []  # and not yielded yet
        self._called: set[str] = set()  # ids of all that were noted
        self._served: dict[str, _CallParts] = {}  # calls that Claude's servers run
        self._paused = False
        self._reasoning: list[str] = []
        self._half_text = self._half_thought = ""
        self._thinking = _Thinking()
        self._calls: list[_CallParts] = []
        self._open: dict[int, _CallParts] = {}

    def read(self, chunk: Any) -> list[str | ArgumentsDelta | ProviderCall]:
        """Return the text, thoughts and fragments of calls in a chunk.

        With them are the calls that the provider has made itself.
        """
        self.usage = _get(chunk, "usage") or self.usage
        if not chunk.choices:
            return []
        delta = chunk.choices[0].delta
        texts: list[str] = []
        if piece := _get(delta, "reasoning_content"):
            thought, self._half_thought = _whole(self._half_thought + piece)
            if thought:
                self._reasoning.append(thought)
                texts.append(Thought(thought))
        if piece := delta.content:
            if not self.written:
                piece = piece.removeprefix(_BOM)
            text, self._half_text = _whole(self._half_text + piece)
            if text:
                texts.append(text)
        self.written += texts
        pieces: list[str | ArgumentsDelta | ProviderCall] = [*texts]
        for call in delta.tool_calls or ():
            pieces += self._add(call)
        if blocks := _get(delta, "thinking_blocks"):
            self._thinking.add(blocks)
        fields = _get(delta, "provider_specific_fields")
        if isinstance(fields, dict):
            self._read_fields(fields)
        for name, given in (
            ("citations", _get(chunk, "citations")),
            ("citations", _get(delta, "annotations")),
            ("images", _get(delta, "images")),
        ):
            if isinstance(given, list):
                self.keep(name, given)
        pieces += self._noted
        self._noted.clear()
        return pieces

    def _read_fields(self, fields: dict[str, Any]) -> None:
        """Read what litellm passes on of Gemini's signatures, and of the tools of Claude."""
        sent = {k: fields[k] for k in ("thought_signatures", *_RESULTS) if fields.get(k)}
        if sent:
            kept = self._message.setdefault("provider_specific_fields", {})
            assert isinstance(kept, dict)
            kept |= {name: list(value) for name, value in sent.items()}
        self._paused = self._paused or fields.get("stop_reason") == "pause_turn"
        if "citation" in fields:
            self.keep("citations", [fields["citation"]])
        for call in fields.get("server_tool_calls") or ():
            name, arguments = call["function"]["name"], call["function"]["arguments"]
            self._served[call["id"]] = _CallParts(call["id"], call["id"], name, [arguments])
            self.written += [name, arguments]
        for name in _RESULTS:
            asked = {i: (call.name, call.parsed()) for i, call in self._served.items()}
            self.note(claude_calls(fields.get(name) or (), asked))

    def note(self, calls: Iterable[ProviderCall]) -> None:
        """Note calls that the provider has made; each is noted once."""
        for call in calls:
            if call.id not in self._called:
                self._called.add(call.id)
                self._noted.append(call)

    def keep(self, name: str, given: list[Any]) -> None:
        """Keep citations or images: providers send each once, or all of them in each chunk."""
        if not given:
            return
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
        for call in self._calls:
            action = _action(call, complete=complete)
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
        if self._paused:  # which litellm calls "length"
            reason = "pause"
        if reason == "stop" and self._calls:  # as some servers report
            reason = "tool_calls"
        metadata: dict[str, JsonValue] = {**self._metadata}
        if "gemini" in self._family and "citations" in metadata:
            said = "".join(text for text in self.written if not isinstance(text, Thought))
            metadata["citations"] = in_characters(self._metadata["citations"], said)
        return Finish(reason, self._provider_data(), metadata)

    def _provider_data(self) -> dict[str, JsonValue]:
        message = dict(self._message)
        if self._thinking.blocks:
            message["thinking_blocks"] = self._thinking.blocks
        if self._reasoning and self._family.partition(" ")[0] in _WANT_REASONING:
            message["reasoning_content"] = "".join(self._reasoning)
        served: list[JsonValue] = [
            {"id": i, "type": "function", "function": {"name": c.name, "arguments": c.text or "{}"}}
            for i, c in self._served.items()
            if i in self._called  # others have no result, and would be refused
        ]
        data: dict[str, JsonValue] = {MESSAGE: message, CALLS: self._signatures, SERVED: served}
        data = {name: value for name, value in data.items() if value}
        return {ORIGIN: self._family, **data} if data else {}

    def _add(self, delta: Any) -> Iterable[ArgumentsDelta]:
        """Keep a fragment of a call; return what has come of its arguments."""
        function = getattr(delta, "function", None)
        name = getattr(function, "name", None) or ""
        arguments = getattr(function, "arguments", None) or ""
        call_id, _, signature = (delta.id or "").partition(_SIGNED)
        call = self._open.get(delta.index)
        # some providers number all their calls 0: another id with a name is another call
        if call is None or (name and call_id and call_id != call.id):
            own = clean(call_id)
            if not own or own in {other.action_id for other in self._calls}:
                own = new_id("call")
            call = self._open[delta.index] = _CallParts(call_id, own)
            if call_id.startswith(_SERVED):
                self._served[call_id] = call
            else:
                self._calls.append(call)
        # a name comes whole, in one fragment or in each, or in fragments
        call.name = name if name.startswith(call.name) else call.name + name
        call.arguments.append(arguments)
        call.signature = call.signature or signature
        self.written += [name, arguments]
        if not arguments or call.id in self._served:
            return ()
        return (ArgumentsDelta(call.action_id, call.name, arguments),)


@dataclass(slots=True)
class _CallParts:
    id: str
    action_id: str  # the same, or another one where that is missing or taken
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    signature: str = ""

    @property
    def text(self) -> str:
        """The arguments as far as they have come."""
        return "".join(self.arguments).removeprefix(_BOM)

    def parsed(self) -> dict[str, Any]:
        """Return the arguments; those of a call that was run without any are empty."""
        try:
            return _arguments(self.text)
        except (ValueError, RecursionError):
            return {}


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


def _action(call: _CallParts, *, complete: bool) -> Action:
    raw = call.text
    fields: dict[str, Any] = {"name": call.name, "id": call.action_id}
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
