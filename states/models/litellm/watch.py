"""Read what litellm drops or cannot read in the stream of a provider."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

from agent_brain.states.models.litellm.chunks import ChunkReader
from agent_brain.states.models.litellm.provider_tools import (
    IMAGE,
    gemini_calls,
    moved,
    response_call,
)

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
        for counted in _counted(getattr(chunk, "usage", None)):
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
            cited = [moved(each, self._written) for each in part.get("annotations") or []]
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


def _counted(usage: Any) -> Iterator[Any]:
    """Yield the objects with counts of tokens in a usage."""
    if usage is not None:
        yield usage
        yield from filter(None, (getattr(usage, name, None) for name in _DETAILS))
