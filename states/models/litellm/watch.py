"""Read what litellm drops or cannot read in the stream of a provider."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

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

    Attributes:
        refusal: Why the model declined to answer, in its own words.
        reason: Why the response ended, as the provider named it.
    """

    def __init__(self, stream: Any) -> None:
        self.refusal = ""
        self.reason = ""
        self._stream = stream
        self._choice: int | None = None

    @classmethod
    def on(cls, stream: Any) -> Self:
        """Watch the inner stream of a litellm stream, if it is of a known kind."""
        inner = getattr(stream, "completion_stream", None)
        watch = cls(inner)
        if type(inner).__module__.partition(".")[0] == "openai":
            stream.completion_stream = watch
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
        chunk = await anext(self._stream)
        choices = getattr(chunk, "choices", None) or []
        if choices and self._choice is None:
            self._choice = choices[0].index or 0
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
        """Return ``parse``, of a Gemini stream, with an eye on the reason in what it parses."""

        def parse_watched(chunk: Any) -> Any:
            candidates = chunk.get("candidates") if isinstance(chunk, dict) else None
            for candidate in candidates or ():
                self.reason = candidate.get("finishReason") or self.reason
            return parse(chunk)

        return parse_watched


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
