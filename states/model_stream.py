"""The pieces of a model call on their way through the hooks of a run."""

from __future__ import annotations

import re
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from agent_brain.states.errors import LLMError, Refused
from agent_brain.states.hooks import Hook, ModelRequest, ModelResponse
from agent_brain.states.models.llm import (
    LLM,
    ArgumentsDelta,
    Finish,
    Piece,
    ProviderCall,
    Thought,
    provider_calls_of,
    with_provider_calls,
)
from agent_brain.states.pipeline import ATTEMPT, MODEL, Kind, Passage, Pipeline, surrounded
from agent_brain.states.usage import NOTHING, Usage
from agent_brain.states.work import close_stream, closing
from agent_brain.tools.action import Action

if TYPE_CHECKING:
    from agent_brain.states.model_trace import CallTrace

Send = Callable[[ModelRequest], AsyncIterator[Any]]
_WORDS = re.compile(r"\s*\S+\s?|\s+")  # streamed one by one, as a model would


@dataclass(frozen=True, slots=True)
class Replaced:
    """A piece of a model's stream: ``response`` replaces what was streamed before.

    Attributes:
        response: The response.
        finish: How it ended.
        failed: Whether it replaces an error, so that the reader has seen nothing of it.
    """

    response: ModelResponse
    finish: Finish | None
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Begun:
    """The first piece of a model call: its hooks have let it begin.

    Attributes:
        llm: The model that is called.
    """

    llm: LLM


_calls: ContextVar[tuple[Pipeline, ModelRequest] | None] = ContextVar(
    "agent_brain_model_call", default=None
)
"""The model call that a model works on, for its attempts; not set while the consumer works."""


def model_call(
    hooks: Pipeline, request: ModelRequest, send: Send
) -> AsyncGenerator[Piece | Replaced | Begun, None]:
    """Return the pieces of a model call with hooks around it and around its attempts."""

    @contextmanager
    def at_work(request: ModelRequest) -> Iterator[None]:
        with hooks.at_work(request):
            token = _calls.set((hooks, request))
            try:
                yield
            finally:
                _calls.reset(token)

    def make(request: ModelRequest) -> AsyncIterator[Any]:
        pieces = send(request) if trace is None else trace.model_call(request, send)
        known = hooks.attempt or hooks.around or trace
        return surrounded(pieces, partial(at_work, request)) if known else pieces

    trace = hooks.trace
    return _pieces(_Streamed(MODEL, hooks.model, request), make, trace)


def model_attempt(request: ModelRequest, send: Send) -> AsyncIterator[Any]:
    """Return the pieces of one attempt of a model call, with the hooks of the run around it.

    Args:
        request: The request: its model may be a fallback, and its attempts count from 1.
        send: Makes the attempt.
    """
    if (known := _calls.get()) is None:
        return send(request)
    hooks, call = known

    def make(request: ModelRequest) -> AsyncIterator[Any]:
        pieces = send(request)
        if hooks.trace is not None:
            pieces = hooks.trace.attempt(request, pieces)
        return surrounded(pieces, partial(hooks.at_work, request)) if hooks.around else pieces

    where = {name: getattr(call, name) for name in ("at", "memory", "response_id", "purpose")}
    return _pieces(_Streamed(ATTEMPT, hooks.attempt, replace(request, **where)), make)


async def _pieces(  # noqa: C901 - one call
    passage: _Streamed, make: Send, trace: CallTrace | None = None
) -> AsyncGenerator[Any, None]:
    """Yield the pieces of a call, its response again if a hook has changed it, and its usage."""
    whole, held, failed = passage.whole, True, False
    try:
        try:
            response: ModelResponse | None = await passage.enter()
            if passage.kind is MODEL:
                try:
                    yield Begun(passage.request.llm)
                except GeneratorExit:
                    if trace is not None and response is None:
                        await trace.unsent(passage.request)
                    raise
            if response is not None:
                whole.usage = response.usage or NOTHING
                response = replace(response, usage=whole.usage)
                if trace is not None and passage.answered is not None:
                    said = *_pieces_of(response, whole.finish_of(response)), whole.usage
                    await trace.answered(passage.request, said, *passage.answered)
            else:
                held = any(hook.buffer for hook in passage.entered)
                pieces = passage.stream(make(passage.request))
                try:
                    async for piece in pieces:
                        whole.add(piece)
                        if not held and not isinstance(piece, Usage):
                            yield piece
                finally:
                    await close_stream(pieces)
                response = whole.response
        except Exception as error:
            answer = await passage.recover(error)
            if answer is None:
                raise
            response, failed = whole.instead(error, answer), True
        changed = await passage.leave(response)
    except Exception:
        if whole.usage is not None:
            yield whole.usage
        raise
    for left in whole.not_streamed(changed, held=held, failed=failed):
        yield left


class _Streamed(Passage):
    """A model call, or an attempt, on its way through the hooks.

    Each hook is given the response as it has streamed it, not as the hooks before it have, unless
    a hook after it has changed the response.

    Attributes:
        whole: What has come out of the first hook.
    """

    __slots__ = ("_views", "whole")

    def __init__(self, kind: Kind, hooks: Sequence[Hook], request: ModelRequest) -> None:
        super().__init__(kind, hooks, request)
        self.whole = _Whole()
        self._views: list[_Whole] = []  # what has come out of each hook that was entered

    def stream(self, pieces: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Return the pieces as the hooks stream them."""
        view = self.whole
        streaming: list[tuple[Hook, _Whole]] = []  # with what comes into each
        for hook in self.entered:
            self._views.append(view)
            changes = type(hook).stream_model_call is not Hook.stream_model_call
            if changes and self.kind is MODEL:
                view = _Whole()
                streaming.append((hook, view))
        for hook, view in reversed(streaming):
            pieces = hook.stream_model_call(self.request, view.noting(pieces))
        return pieces

    async def leave(self, response: ModelResponse) -> ModelResponse:
        """As :meth:`Passage.leave`."""
        while self.entered:
            hook, seen = self.entered.pop(), response
            if response is self.whole.response:
                seen = self._views[len(self.entered)].response
            given = await self._after(hook, seen)
            response = response if given is seen else given
        return response


class _Whole:
    """Collects the pieces of a response, apart from its usage."""

    def __init__(self) -> None:
        self.pieces: list[Piece | Replaced] = []
        self.said = False  # anything, also arguments of a call that has not come whole
        self.usage: Usage | None = None

    async def noting(self, pieces: AsyncIterator[Any]) -> AsyncGenerator[Any, None]:
        """Yield ``pieces``, and collect them."""
        async with closing(pieces):
            async for piece in pieces:
                self.add(piece)
                yield piece

    def add(self, piece: Piece | Replaced) -> None:
        if isinstance(piece, Replaced):
            finish = piece.finish or self.finish_of(piece.response)
            self.pieces = [*_pieces_of(piece.response, finish)]
        elif isinstance(piece, Usage):
            self.usage = piece if self.usage is None else self.usage.followed_by(piece)
        else:
            self.said = True
            if not isinstance(piece, ArgumentsDelta):
                self.pieces.append(piece)

    @property
    def finish(self) -> Finish | None:
        return next((piece for piece in self.pieces if isinstance(piece, Finish)), None)

    def finish_of(self, changed: ModelResponse) -> Finish | None:
        """Return how a changed response ended, without what belongs to the original response."""
        reason, was = changed.finish_reason, self.finish
        if reason is None or (was is not None and was.reason != reason):
            return None if reason is None else Finish(reason)
        return Finish(reason, changed.provider_data, changed.metadata)

    def instead(self, error: Exception, answer: ModelResponse) -> ModelResponse:
        """Return a hook's answer to an error, with what the failed call used."""
        used = failed_usage(self.usage, error, said=self.said)
        self.usage = used if answer.usage is None else used + answer.usage
        return replace(answer, usage=self.usage)

    def not_streamed(
        self, changed: ModelResponse, *, held: bool, failed: bool
    ) -> Iterator[Piece | Replaced]:
        """Yield what is left to stream once the hooks have made ``changed`` of the response."""
        if changed is self.response:
            yield from self.pieces if held or not self.pieces else ()
        elif held or not self.pieces:
            for piece in _pieces_of(changed, self.finish_of(changed)):
                said = type(piece) is str and not self.pieces  # and no model was called
                yield from _WORDS.findall(str(piece)) if said else (piece,)
        else:
            yield Replaced(changed, self.finish_of(changed), failed)
        usage = self.usage if changed.usage is None else changed.usage
        if usage is not None:
            yield usage

    @cached_property
    def response(self) -> ModelResponse:
        """The whole response, once all pieces have come."""
        texts = [piece for piece in self.pieces if isinstance(piece, str)]
        metadata: Mapping[str, JsonValue] = {} if self.finish is None else self.finish.metadata
        if served := [piece for piece in self.pieces if isinstance(piece, ProviderCall)]:
            metadata = with_provider_calls(metadata, served)
        return ModelResponse(
            text="".join(text for text in texts if not isinstance(text, Thought)),
            actions=tuple(piece for piece in self.pieces if isinstance(piece, Action)),
            thoughts="".join(text for text in texts if isinstance(text, Thought)),
            usage=self.usage,
            finish_reason=None if self.finish is None else self.finish.reason,
            provider_data={} if self.finish is None else self.finish.provider_data,
            metadata=metadata,
        )


def _pieces_of(response: ModelResponse, finish: Finish | None) -> Iterable[Piece]:
    """The pieces of a changed response, apart from its usage."""
    yield from () if finish is None else provider_calls_of(finish.metadata)
    if response.thoughts:
        yield Thought(response.thoughts)
    if response.text:
        yield response.text
    yield from response.actions
    if finish is not None:
        yield finish


def failed_usage(known: Usage | None, error: Exception, *, said: bool) -> Usage:
    """Return what a failed call used: its attempts count, their tokens are not known.

    Args:
        known: What the model has reported.
        error: Why it failed.
        said: Whether the model has said something, which costs.
    """
    if isinstance(error, Refused):  # no model was called
        return known or NOTHING
    tries = 1 + (error.retries if isinstance(error, LLMError) else 0)
    if known is None:
        return Usage(requests=tries, cost=None if said else 0.0)
    missing = tries - known.requests
    return known + Usage(requests=missing, model=known.model) if missing > 0 else known
