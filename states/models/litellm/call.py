"""One request of a model through litellm, from its parameters to the pieces of the answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import anyio

from agent_brain.memories.message import Message
from agent_brain.states.errors import LLMError, LLMTimeoutError
from agent_brain.states.models.litellm.chunks import ChunkReader, RefusalWatch
from agent_brain.states.models.litellm.errors import no_stream, secrets_in, to_llm_error
from agent_brain.states.models.litellm.usage import Meter
from agent_brain.states.models.llm import Finish, Piece
from agent_brain.states.usage import Usage
from agent_brain.tools.base import BaseTool
from agent_brain.tools.litellm.connections import connections
from agent_brain.tools.litellm.setup import load_litellm

T = TypeVar("T")

_CLOSING = 5.0
"""Seconds that closing a stream may take; it is not cancelled before."""


@dataclass(frozen=True, slots=True)
class Target:
    """Who is called.

    Attributes:
        model: The name.
        provider: Who serves it, as far as known.
        family: The :func:`~agent_brain.states.models.litellm.messages.origin` of the model.
        timeout: Seconds to wait for each piece.
        params: The caller's parameters.
    """

    model: str
    provider: str | None
    family: str
    timeout: float
    params: Mapping[str, Any]


class Call:
    """One HTTP request and its response.

    Args:
        target: Who is called.
        request: The arguments of ``litellm.acompletion``.
        messages: What it is sent, for an estimate of its usage.
        tools: What it is offered, likewise.
    """

    def __init__(
        self,
        target: Target,
        request: Mapping[str, Any],
        messages: Sequence[Message],
        tools: Sequence[BaseTool],
    ) -> None:
        self._target = target
        self._request = request
        self._sent = (messages, tools)
        self._reader = ChunkReader(target.family)
        self._meter = Meter(target.model, target.params)

    async def stream(self) -> AsyncIterator[Piece]:
        """The pieces of the answer; its connection is given back or closed however this ends."""
        stream: Any = None
        connections.acquire()
        try:
            stream = await self._in_time(load_litellm().acompletion(**self._request))
            watch = _watch(stream)
            while (chunk := await self._in_time(anext(stream, None))) is not None:
                for text in self._reader.read(chunk):
                    yield text
            if not self._answered(stream):
                raise self._known(no_stream(_content_type(stream)))
            for piece in self._end(stream, watch):
                yield piece
        finally:
            with anyio.move_on_after(_CLOSING, shield=True):
                if stream is not None:
                    await stream.aclose()
                await connections.release()

    def usage_so_far(self) -> Usage:
        """What the call used up to its failure."""
        if not self._reader.written:
            return self._meter.failed()
        return self._meter.estimated(*self._sent, self._reader.written)

    def _answered(self, stream: Any) -> bool:
        """Whether anything came; litellm makes an empty answer of a response that was none."""
        chunks = getattr(stream, "chunks", None)
        return chunks is None or bool(chunks or _reported(stream) or self._reader.written)

    def _end(self, stream: Any, watch: RefusalWatch | None) -> list[Piece]:
        pieces: list[Piece] = [*self._reader.finish()]
        if watch is not None and watch.refusal:
            pieces.append(watch.refusal)
        finish = self._finish(stream)
        if watch is not None and watch.refusal:
            finish = Finish("refusal")
        if finish is not None:
            pieces.append(finish)
        return [*pieces, self._usage(stream)]

    def _finish(self, stream: Any) -> Finish | None:
        reported = _reported(stream)
        end = self._reader.end(reported or "")
        return end if reported or end.provider_data else None

    def _usage(self, stream: Any) -> Usage:
        """As the provider reports it. Where it does not, litellm makes up numbers of its own."""
        chunks = getattr(stream, "chunks", None)
        reported = chunks is None or any(getattr(chunk, "usage", None) for chunk in chunks)
        usage = self._reader.usage if reported else None
        if usage is None or not self._meter.is_plausible(usage):
            return self._meter.estimated(*self._sent, self._reader.written)
        return self._meter.reported(usage)

    async def _in_time(self, awaitable: Awaitable[T]) -> T:
        """Wait for litellm, but not longer than the timeout, which it applies to some waits only.

        Raises:
            LLMError: For anything that it raises.
        """
        target = self._target
        try:
            with anyio.fail_after(target.timeout):
                return await awaitable
        except TimeoutError as error:
            message = f"The model sent nothing for {target.timeout:g} s"
            raise self._known(LLMTimeoutError(message)) from error
        except Exception as error:
            secrets = secrets_in(target.params)
            failure = to_llm_error(error, model=target.model, secrets=secrets)
            raise self._known(failure) from error

    def _known(self, error: LLMError) -> LLMError:
        error.model = self._target.model
        error.provider = error.provider or self._target.provider
        return error


def _reported(stream: Any) -> str | None:
    """Why the response ended, if the provider said so. The chunks say "stop" in any case."""
    for name in ("received_finish_reason", "intermittent_finish_reason"):
        if reason := getattr(stream, name, None):
            return str(reason)
    return None


def _watch(stream: Any) -> RefusalWatch | None:
    inner = getattr(stream, "completion_stream", None)
    if type(inner).__module__.partition(".")[0] != "openai":
        return None
    stream.completion_stream = RefusalWatch(inner)
    return stream.completion_stream  # type: ignore[no-any-return]


def _content_type(stream: Any) -> str | None:
    headers = (getattr(stream, "_hidden_params", None) or {}).get("additional_headers") or {}
    found = headers.get("llm_provider-content-type")
    return str(found).partition(";")[0] if found else None
