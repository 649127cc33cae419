"""One attempt at a model call: a request through litellm, its response and what it used."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import anyio

from agent_brain.common.aio import CLEANUP_SECONDS
from agent_brain.common.litellm import connections, load_litellm, model_entry
from agent_brain.common.text import count_tokens
from agent_brain.memories.message import Message
from agent_brain.memories.views.tokens import request_tokens
from agent_brain.states.errors import LLMError, LLMTimeoutError
from agent_brain.states.hooks import ModelRequest
from agent_brain.states.models.litellm.chunks import ChunkReader, StreamWatch
from agent_brain.states.models.litellm.errors import malformed_call, no_stream, to_llm_error
from agent_brain.states.models.llm import Finish, Piece, Thought
from agent_brain.states.usage import Usage
from agent_brain.states.work import closing

if TYPE_CHECKING:
    from agent_brain.states.models.litellm.adapter import LiteLLM


T = TypeVar("T")
PRICES = _IN, _OUT = "input_cost_per_token", "output_cost_per_token"
"""Prices given by the user. litellm would apply them to all calls of the model in the process."""

_TOKENS = ("prompt_tokens", "completion_tokens")
_MALFORMED = ("MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL")
"""Reasons of Gemini that litellm calls "stop"."""


class Attempt:
    """One HTTP request and its response.

    Args:
        llm: The model.
        wire: The arguments of ``litellm.acompletion``.
        request: The request, whose usage may have to be estimated.
    """

    def __init__(self, llm: LiteLLM, wire: Mapping[str, Any], request: ModelRequest) -> None:
        self._llm = llm
        self._wire = wire
        self._request = request
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
                stream = await self._in_time(load_litellm().acompletion(**self._wire))
                watch = StreamWatch.on(stream, self._reader)
                while (chunk := await self._in_time(anext(stream, None))) is not None:
                    for said in self._reader.read(chunk):
                        yield said
                chunks = getattr(stream, "chunks", None)
                answered = chunks or _finish_reason(stream) or self._reader.written
                if chunks is not None and not answered:  # litellm makes an empty response
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
        usage: Any = self._reader.usage
        chunks = getattr(stream, "chunks", None)
        if chunks is not None and not any(getattr(chunk, "usage", None) for chunk in chunks):
            usage = None
        read, wrote = (getattr(usage, name, None) or 0 for name in _TOKENS)
        if not (read or wrote) or min(read, wrote) < 0:
            return self._estimated()
        guess = not wrote and bool(self._reader.written)
        if guess:
            wrote = usage.completion_tokens = sum(map(count_tokens, self._reader.written))
        return Usage(
            read,
            wrote,
            self._cost(usage),
            model=self._llm.model,
            cached_tokens=_detail(usage, "prompt_tokens_details", "cached_tokens"),
            reasoning_tokens=_detail(usage, "completion_tokens_details", "reasoning_tokens"),
            estimated=guess,
        )

    def _estimated(self) -> Usage:
        read = request_tokens(self._request.messages, self._request.tools)
        wrote = sum(map(count_tokens, self._reader.written))
        tokens = dict(zip(_TOKENS, (read, wrote), strict=True))
        cost = self._cost(load_litellm().Usage(**tokens, total_tokens=read + wrote))
        return Usage(read, wrote, cost, model=self._llm.model, estimated=True)

    def _cost(self, usage: Any) -> float | None:
        """Return US dollars: by the given prices, as reported, or by litellm's table."""
        params = self._llm.params
        model = params.get("base_model") or self._llm.model
        entry = model_entry(model)
        if _IN in params or _OUT in params:
            prices = {**(entry or {}), **params}
            if prices.get(_IN) is None or prices.get(_OUT) is None:
                return None  # one price is not enough
            read, wrote = usage.prompt_tokens or 0, usage.completion_tokens or 0
            return float(read * prices[_IN] + wrote * prices[_OUT])
        stated = getattr(usage, "cost", None)
        if isinstance(stated, int | float) and 0 <= stated < math.inf:
            return float(stated)
        if entry is None:
            return None
        try:
            cost = float(sum(load_litellm().cost_per_token(model=model, usage_object=usage)))
        except Exception:  # a model without prices: litellm raises anything
            return None
        return cost if cost or _IN in entry else None  # 0 for lack of a price is not a price

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


def _detail(usage: Any, group: str, name: str) -> int:
    return max(0, getattr(getattr(usage, group, None), name, None) or 0)


Ask: TypeAlias = Callable[[Sequence[Message]], AsyncIterator[Piece]]
MOST_PAUSES = 10


async def through_pauses(ask: Ask, messages: Sequence[Message]) -> AsyncIterator[Piece]:
    """Yield the pieces of a response; each time it is paused, send it back and continue it.

    Claude pauses a long turn in which it uses the tools of its servers (``pause_turn``); see
    https://docs.anthropic.com/en/api/handling-stop-reasons.

    Args:
        ask: Makes a request with messages.
        messages: Those of the first one.
    """
    said: list[str] = []
    whole = Finish()
    sent = messages
    for pauses in range(MOST_PAUSES + 1):
        finish: Finish | None = None
        async with closing(ask(sent)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Finish):
                    finish = piece
                    continue
                if isinstance(piece, str) and not isinstance(piece, Thought):
                    said.append(piece)
                yield piece
        if finish is None:
            return
        whole = Finish(
            finish.reason,
            _joined(whole.provider_data, finish.provider_data),
            _joined(whole.metadata, finish.metadata),
        )
        if finish.reason != "pause":
            yield whole
            return
        if pauses == MOST_PAUSES:
            yield replace(whole, reason="length")
            return
        metadata = {"provider_data": dict(whole.provider_data)}
        sent = [*messages, Message.assistant("".join(said), metadata=metadata)]


def _joined(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Return both, with their lists one behind the other."""
    joined = dict(first)
    for name, value in second.items():
        before = joined.get(name)
        if isinstance(before, list) and isinstance(value, list):
            joined[name] = [*before, *value]
        elif isinstance(before, Mapping) and isinstance(value, Mapping):
            joined[name] = _joined(before, value)
        else:
            joined[name] = value
    return joined
