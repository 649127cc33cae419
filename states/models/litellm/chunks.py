"""Read a litellm stream into text, thoughts and actions, with what litellm drops or cannot read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from operator import add
from typing import Any, Self

from pydantic import BaseModel, JsonValue

from agent_brain.common.ids import new_id
from agent_brain.common.text import clean
from agent_brain.states.models.litellm.messages import CALLS, MESSAGE, ORIGIN, SERVED
from agent_brain.states.models.litellm.provider_tools import (
    IMAGE,
    claude_calls,
    gemini_calls,
    placed,
    response_call,
)
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
        self._thoughts: list[str] = []  # of the block of thinking that has no signature yet
        self._blocks: list[JsonValue] = []  # that the provider has signed
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
            self._add_thinking(blocks)
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
        sent = (g.model_dump(mode="json") if isinstance(g, BaseModel) else g for g in given)
        kept += [item for item in sent if item not in kept]

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
            action = call.action(complete=complete)
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
            written = said.encode()  # Gemini counts bytes
            metadata["citations"] = [
                placed(cited, lambda place: len(written[:place].decode(errors="ignore")))
                for cited in self._metadata["citations"]
            ]
        return Finish(reason, self._provider_data(), metadata)

    def _provider_data(self) -> dict[str, JsonValue]:
        message = dict(self._message)
        if self._blocks:
            message["thinking_blocks"] = self._blocks
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

    def _add_thinking(self, fragments: Iterable[Mapping[str, Any]]) -> None:
        """Assemble blocks of thinking that the provider signed."""
        for fragment in fragments:
            if fragment.get("type") == "redacted_thinking":
                self._blocks.append({"type": "redacted_thinking", "data": fragment.get("data")})
                continue
            text, signature = fragment.get("thinking") or "", fragment.get("signature")
            if not signature:
                self._thoughts.append(text)
                continue
            before = "".join(self._thoughts)  # a signature ends a block, and may repeat all of it
            self._thoughts.clear()
            thinking = text if text.startswith(before) else before + text
            self._blocks.append({"type": "thinking", "thinking": thinking, "signature": signature})

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

    def action(self, *, complete: bool) -> Action:
        """Return the call, with its arguments as text if they are not whole."""
        raw = self.text
        try:
            args = {} if complete and not raw.strip() else _arguments(raw)
            return Action(name=self.name, id=self.action_id, args=args)
        except (ValueError, RecursionError):
            return Action(name=self.name, id=self.action_id, unparsed=raw)

    def parsed(self) -> dict[str, Any]:
        """Return the arguments; those of a call that was run without any are empty."""
        try:
            return _arguments(self.text)
        except (ValueError, RecursionError):
            return {}


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


def _arguments(raw: str) -> dict[str, Any]:
    """Parse a JSON object without ``NaN`` and ``Infinity``; raises ValueError, RecursionError."""
    value = json.loads(raw, parse_constant=_refuse)
    if not isinstance(value, dict):
        raise ValueError(f"not a JSON object but {type(value).__name__}")
    return value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


_COUNTS = (
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "cached_tokens",
    "audio_tokens",
    "reasoning_tokens",
)
_DETAILS = ("prompt_tokens_details", "completion_tokens_details")


class StreamWatch:
    """Stands between a provider's stream and litellm.

    The chunks of OpenAI's client, which also speaks to many other servers, are brought into the
    form that OpenAI documents: text is one string, calls are tool calls, tokens are whole numbers,
    and there is one choice.

    Args:
        stream: The stream of the provider.
        reader: Is told what litellm drops: calls of the provider's tools, citations, pictures.
        outer: The stream of litellm.

    Attributes:
        refusal: Why the model declined to answer, in its own words.
        reason: Why the response ended, as the provider named it.
    """

    def __init__(self, stream: Any, reader: ChunkReader, outer: Any) -> None:
        self._reader, self._outer = reader, outer
        self._code: dict[str, Any] = {}  # of Gemini, that runs
        self._written = 0  # characters in complete items of a response of OpenAI
        self.refusal = ""
        self.reason = ""
        self._stream = stream
        self._choice: int | None = None

    @classmethod
    def on(cls, stream: Any, reader: ChunkReader) -> Self:
        """Watch the inner stream of a litellm stream, if it is of a known kind."""
        inner: Any = getattr(stream, "completion_stream", None)
        watch = cls(inner, reader, stream)
        if type(inner).__module__.partition(".")[0] == "openai":
            stream.completion_stream = watch
        elif callable(parse := getattr(inner, "chunk_parser", None)):
            inner.chunk_parser = watch._parsing(parse)
        elif (make_call := getattr(stream, "make_call", None)) is not None:

            async def make_watched_call(**options: Any) -> Any:
                made = await make_call(**options)
                if callable(parse := getattr(made, "chunk_parser", None)):
                    made.chunk_parser = watch._parsing(parse)
                return made

            stream.make_call = make_watched_call
        return watch

    def __aiter__(self) -> StreamWatch:
        return self

    async def __anext__(self) -> Any:
        try:
            chunk = await anext(self._stream)
        except StopAsyncIteration:
            # Servers that give no reason are known: litellm is not to take that for an error.
            self._outer.received_any_finish_reason = True
            raise
        choices = getattr(chunk, "choices", None) or []
        if choices and self._choice is None:
            self._choice = min(choice.index or 0 for choice in choices)
        if any((choice.index or 0) != self._choice for choice in choices):  # of another answer
            choices = chunk.choices = [c for c in choices if (c.index or 0) == self._choice]
        for choice in choices:
            self.reason = getattr(choice, "finish_reason", None) or self.reason
            delta = getattr(choice, "delta", None)
            if delta is not None:
                self.refusal += getattr(delta, "refusal", None) or ""
                if type(getattr(delta, "content", None)) is not str:
                    _mend(delta)
        if (usage := getattr(chunk, "usage", None)) is not None:
            for counted in (usage, *(getattr(usage, name, None) for name in _DETAILS)):
                for name in _COUNTS:
                    if isinstance(count := getattr(counted, name, None), float):
                        setattr(counted, name, round(count))
        return chunk

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _parsing(self, parse: Any) -> Any:
        """Return ``parse``, of Gemini or of OpenAI's responses, with an eye on what it is given."""

        def parse_watched(chunk: Any) -> Any:
            if isinstance(chunk, dict):
                for candidate in chunk.get("candidates") or ():
                    self.reason = candidate.get("finishReason") or self.reason
                    for part in (candidate.get("content") or {}).get("parts") or ():
                        if "functionCall" in part:  # which may leave out that it has no arguments
                            part["functionCall"]["args"] = part["functionCall"].get("args") or {}
                    self._reader.note(gemini_calls(candidate, self._code))
                if chunk.get("type") == "response.output_item.done":
                    self._read_item(chunk.get("item") or {})
            return parse(chunk)

        return parse_watched

    def _read_item(self, item: dict[str, Any]) -> None:
        """Read an item of a response of OpenAI that is complete."""
        if (call := response_call(item)) is not None:
            self._reader.note([call])
        if item.get("type") == IMAGE and item.get("result"):
            kind = item.get("output_format") or "png"
            url = f"data:image/{kind};base64,{item['result']}"
            self._reader.keep("images", [{"type": "image_url", "image_url": {"url": url}}])
        for part in item.get("content") or ():
            notes = part.get("annotations") or []
            cited = [placed(each, partial(add, self._written)) for each in notes]
            self._reader.keep("citations", cited)
            self._written += len(part.get("text") or "")


def _mend(delta: Any) -> None:
    """Bring a delta into the form that OpenAI documents."""
    for name in ("content", "reasoning_content", "reasoning"):
        written = getattr(delta, name, None)
        if written is not None and not isinstance(written, str):
            setattr(delta, name, "".join(_texts(written)))
    old = getattr(delta, "function_call", None)
    if old is not None and not getattr(delta, "tool_calls", None):
        from openai.types.chat.chat_completion_chunk import ChoiceDeltaToolCall

        function = {"name": old.name, "arguments": old.arguments}
        delta.tool_calls = [ChoiceDeltaToolCall.model_validate({"index": 0, "function": function})]
        delta.function_call = None


def _texts(written: Any) -> Iterator[str]:
    """Yield the texts in content that may be a list of parts."""
    if isinstance(written, list | tuple):
        for part in written:
            yield from _texts(part)
    elif isinstance(written, dict):
        text = written.get("text")
        yield from () if text is None else _texts(text)
    else:
        yield str(written)
