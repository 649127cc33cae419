"""One attempt at a model call: a request through litellm and its response."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from agent_brain.common.aio import CLEANUP_SECONDS
from agent_brain.common.litellm.connections import connections
from agent_brain.common.litellm.setup import load_litellm
from agent_brain.common.text import count_tokens
from agent_brain.memories.message import Message
from agent_brain.states.errors import LLMError, LLMTimeoutError
from agent_brain.states.models.litellm.chunks import ChunkReader
from agent_brain.states.models.litellm.errors import malformed_call, no_stream, to_llm_error
from agent_brain.states.models.litellm.usage import estimated_usage, is_plausible, reported_usage
from agent_brain.states.models.litellm.watch import StreamWatch
from agent_brain.states.models.llm import Finish, Piece
from agent_brain.states.usage import Usage
from agent_brain.tools.base import BaseTool

if TYPE_CHECKING:
    from agent_brain.states.models.litellm.adapter import LiteLLM

T = TypeVar("T")
_MALFORMED = ("MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL")
"""Reasons of Gemini that litellm calls "stop"."""


class Attempt:
    """One HTTP request and its response.

    Args:
        llm: The model.
        request: The arguments of ``litellm.acompletion``.
        messages: The messages in the request, to estimate its usage.
        tools: The tools in the request, to estimate its usage.
    """

    def __init__(
        self,
        llm: LiteLLM,
        request: Mapping[str, Any],
        messages: Sequence[Message],
        tools: Sequence[BaseTool],
    ) -> None:
        self._llm = llm
        self._request = request
        self._sent = (messages, tools)
        self._reader = ChunkReader(llm.family)

    async def stream(self) -> AsyncIterator[Piece]:
        """Yield the pieces of the response; its connection is released however this ends.

        An attempt that fails yields the usage up to the failure.

        Raises:
            LLMError: The attempt failed.
        """
        try:
            stream: Any = None
            connections.acquire()
            try:
                stream = await self._in_time(load_litellm().acompletion(**self._request))
                watch = StreamWatch.on(stream, self._reader)
                while (chunk := await self._in_time(anext(stream, None))) is not None:
                    for said in self._reader.read(chunk):
                        yield said
                if not self._answered(stream):
                    raise self._located(no_stream(stream))
                if watch.reason in _MALFORMED and not self._reader.written:
                    raise self._located(malformed_call(watch.reason))
                for piece in self._end(stream, watch):
                    yield piece
            finally:
                with anyio.move_on_after(CLEANUP_SECONDS, shield=True):
                    if stream is not None:
                        await stream.aclose()
                    await connections.release()
        except LLMError:
            written = self._reader.written
            # providers do not charge for a request without a response
            yield self._estimated() if written else Usage(cost=0.0, model=self._llm.model)
            raise

    def _answered(self, stream: Any) -> bool:
        """Return whether there was a response; litellm makes an empty one if there was none."""
        chunks = getattr(stream, "chunks", None)
        return chunks is None or bool(chunks or _finish_reason(stream) or self._reader.written)

    def _end(self, stream: Any, watch: StreamWatch) -> list[Piece]:
        reason = _finish_reason(stream)
        if reason is not None and watch.reason in _MALFORMED:
            reason = watch.reason
        pieces: list[Piece] = [*self._reader.finish(complete=reason is not None)]
        finish = self._reader.end(reason or "")
        if watch.refusal:
            pieces += [watch.refusal, Finish("refusal")]
        elif reason or finish.provider_data or finish.metadata:
            pieces.append(finish)
        return [*pieces, self._usage(stream)]

    def _usage(self, stream: Any) -> Usage:
        """Return the reported usage; if there is none, litellm makes up numbers, so estimate."""
        chunks = getattr(stream, "chunks", None)
        usage = self._reader.usage
        if chunks is not None and not any(getattr(chunk, "usage", None) for chunk in chunks):
            usage = None
        if usage is None or not is_plausible(usage):
            return self._estimated()
        guess = not usage.completion_tokens and bool(self._reader.written)
        if guess:
            usage.completion_tokens = sum(map(count_tokens, self._reader.written))
        reported = reported_usage(self._llm.model, self._llm.params, usage)
        return replace(reported, estimated=guess)

    def _estimated(self) -> Usage:
        llm, written = self._llm, self._reader.written
        return estimated_usage(llm.model, llm.params, *self._sent, written)

    async def _in_time(self, awaitable: Awaitable[T]) -> T:
        """Wait for litellm within the timeout, which litellm applies to some waits only."""
        llm = self._llm
        try:
            async with asyncio.timeout(llm.timeout):
                return await awaitable
        except TimeoutError as error:
            message = f"The model sent nothing for {llm.timeout:g} s"
            raise self._located(LLMTimeoutError(message)) from error
        except Exception as error:
            failure = to_llm_error(error, model=llm.model, params=llm.params)
            raise self._located(failure) from error

    def _located(self, error: LLMError) -> LLMError:
        error.model = self._llm.model
        error.provider = error.provider or self._llm.provider
        return error


def _finish_reason(stream: Any) -> str | None:
    """Return the reason that the provider reported; the chunks say "stop" in any case."""
    for name in ("received_finish_reason", "intermittent_finish_reason"):
        if reason := getattr(stream, name, None):
            return str(reason)
    return None
