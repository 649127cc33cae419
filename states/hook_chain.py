"""The hooks of a run, called around all that happens in it. Private."""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from pydantic import BaseModel

from agent_brain.memories.message import Message
from agent_brain.states.aclosing import close_stream
from agent_brain.states.debugging import DebugStates
from agent_brain.states.errors import LLMError, Refused, StateDefinitionError
from agent_brain.states.hook_requests import (
    EmbeddingRequest,
    HookRequest,
    ModelRequest,
    ModelResponse,
    ToolRequest,
    ToolResponse,
)
from agent_brain.states.hooks import Hook, check_given
from agent_brain.states.models.llm import LLM, Finish, Piece, Thought
from agent_brain.states.observing import METHODS as OBSERVING
from agent_brain.states.surroundings import inside, surrounded
from agent_brain.states.usage import Usage
from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool
from agent_brain.tools.errors import FinalError

if TYPE_CHECKING:
    from agent_brain.states.model_trace import CallTrace, Embed

Kind: TypeAlias = Literal["model", "attempt", "embedding", "tool"]
RequestT = TypeVar("RequestT", bound="HookRequest")
ErrorT = TypeVar("ErrorT", bound=Exception)
ResponseT = TypeVar("ResponseT")

_METHODS: dict[Kind, tuple[str, str, str]] = {
    "model": ("before_model_call", "after_model_call", "on_model_error"),
    "attempt": ("before_attempt", "after_attempt", "on_attempt_error"),
    "embedding": ("before_embedding", "after_embedding", "on_embedding_error"),
    "tool": ("before_tool_call", "after_tool_call", "on_tool_error"),
}


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


class HookChain:
    """The hooks of a run, in order. Private.

    Attributes:
        model: Those around model calls.
        attempt: Those around attempts.
        embedding: Those around embeddings.
        tool: Those around tool calls.
        run: Those that observe the run.
        state: Those that observe states.
        around: Those that put a context manager around states, models and tools.
        debug: The first that looks at what states do; None if there is none.
        trace: Is told of every call, inside of the hooks; None if nothing is.
    """

    __slots__ = (
        *("_all", "around", "attempt", "debug", "embedding", "model", "run", "state", "tool"),
        "trace",
    )

    def __init__(self, hooks: Iterable[Hook], trace: CallTrace | None = None) -> None:
        self._all = tuple(hooks)
        self.trace = trace
        self.model = self._with(*_METHODS["model"])
        self.embedding = self._with(*_METHODS["embedding"])
        replays = trace is not None and trace.replays
        if replays:
            self._all = self._with(*_METHODS["model"], *_METHODS["embedding"])
        self.attempt = () if replays else self._with(*_METHODS["attempt"])
        self.tool = () if replays else self._with(*_METHODS["tool"])
        self.run = () if replays else self._with(*OBSERVING["run"])
        self.state = () if replays else self._with(*OBSERVING["state"])
        self.around = () if replays else self._with("around")
        self.debug = next((hook for hook in self._all if isinstance(hook, DebugStates)), None)

    def _with(self, *methods: str) -> tuple[Hook, ...]:
        def overrides(hook: Hook) -> bool:
            return any(getattr(type(hook), n) is not getattr(Hook, n) for n in methods)

        return tuple(hook for hook in self._all if overrides(hook))

    def __iter__(self) -> Iterator[Hook]:
        return iter(self._all)

    def then(self, hooks: Sequence[Hook]) -> HookChain:
        """Return these hooks with those of an inner net after them; equal ones count once."""
        more = [hook for hook in hooks if hook not in self._all]
        return HookChain((*self._all, *more), self.trace) if more else self

    async def model_call(
        self, request: ModelRequest, send: Callable[[ModelRequest], AsyncIterator[Piece]]
    ) -> AsyncGenerator[Piece | Replaced | Begun, None]:
        """Yield the pieces of a model call with hooks around it and around its attempts."""
        trace = self.trace
        token_of = _attempts if self.attempt or self.around or trace else None
        if trace is not None:
            send = partial(trace.model_call, send=send)
        pieces = _model_pieces(self, "model", request, send)
        try:
            while True:
                # set while the model works, not while the consumer does
                token = token_of and token_of.set((self, request))
                try:
                    piece = await anext(pieces, None)
                finally:
                    if token is not None:
                        _attempts.reset(token)
                if piece is None:
                    return
                yield piece
        finally:
            await pieces.aclose()

    async def embed(self, request: EmbeddingRequest, send: Embed) -> tuple[Any, Usage]:
        """Return the vectors of texts, and what they used, with hooks around it."""
        before, after, on_error = _METHODS["embedding"]
        entered: list[Hook] = []
        try:
            for hook in self.embedding:
                given = await _call(hook, before, (request,), EmbeddingRequest)
                request = request if given is None else _with_texts(hook, request, given)
                entered.append(hook)
            made = await (send(request) if self.trace is None else self.trace.embed(request, send))
        except Exception as error:
            for hook in reversed(entered):
                await _call(hook, on_error, (request, error))
            raise
        for hook in reversed(entered):
            await _call(hook, after, (request, made[1]))
        return made

    def around_tool(self, request: ToolRequest) -> AbstractContextManager[object]:
        """Return what the hooks put around the work of a tool."""
        return inside(self.around, request) if self.around else nullcontext()

    async def before_tool(
        self, request: ToolRequest
    ) -> tuple[Sequence[Hook], ToolRequest, ToolResponse | None]:
        """Call the hooks before a tool call; return those to call afterwards, and the result."""
        entered: list[Hook] = []
        try:
            request, response = await _enter(self.tool, "tool", request, ToolResponse, entered)
        except Refused as error:
            response = ToolResponse(str(error), is_error=True, exception=error)
        return entered, request, response

    async def after_tool(
        self, hook: Hook, request: ToolRequest, response: ToolResponse
    ) -> ToolResponse:
        """Call a hook after a tool call; return the result as it leaves it."""
        _, on_done, on_error = _METHODS["tool"]
        try:
            if (error := response.exception) is not None:
                instead = await _call(hook, on_error, (request, error), ToolResponse)
                if instead is not None:  # like an answer before the call
                    answer: ToolResponse = instead
                    return answer
            return await _call(hook, on_done, (request, response), ToolResponse) or response
        except Refused as refused:
            return ToolResponse(str(refused), is_error=True, exception=refused)


_attempts: ContextVar[tuple[HookChain, ModelRequest] | None] = ContextVar(
    "agent_brain_attempt_hooks", default=None
)


def model_attempt(
    llm: LLM,
    attempt: int,
    messages: Sequence[Message],
    tools: Sequence[BaseTool],
    output_type: type[BaseModel] | None,
    send: Callable[[ModelRequest], AsyncIterator[Piece]],
) -> AsyncIterator[Any]:
    """Return the pieces of one attempt of a model call, with the hooks of the run around it.

    Args:
        llm: The model, which may be a fallback.
        attempt: Number of the attempt, from 1.
        messages: What it sees.
        tools: What it may call.
        output_type: The shape of the data that it is asked for.
        send: Makes the attempt.
    """
    around = _attempts.get()
    request = ModelRequest(
        llm=llm, messages=messages, tools=tools, output_type=output_type, attempt=attempt
    )
    if around is None:
        return send(request)
    hooks, call = around
    known = replace(
        request,
        at=call.at,
        memory=call.memory,
        response_id=call.response_id,
        purpose=call.purpose,
    )
    if (trace := hooks.trace) is None:
        return _model_pieces(hooks, "attempt", known, send)

    def traced(request: ModelRequest) -> AsyncIterator[Any]:
        return trace.attempt(call.response_id, llm, attempt, send(request))

    return _model_pieces(hooks, "attempt", known, traced)


async def _model_pieces(
    chain: HookChain,
    kind: Literal["model", "attempt"],
    request: ModelRequest,
    send: Callable[[ModelRequest], AsyncIterator[Piece]],
) -> AsyncGenerator[Any, None]:
    """Yield the pieces of a call, its response again if a hook has changed it, and its usage."""
    entered: list[Hook] = []
    whole, held, failed = _Whole(), True, False
    hooks, around = chain.model if kind == "model" else chain.attempt, chain.around
    try:
        try:
            request, response = await _enter(hooks, kind, request, ModelResponse, entered)
            if kind == "model":
                yield Begun(request.llm)
            if response is not None:
                whole.usage = response.usage or Usage(cost=0.0, requests=0)
                response = replace(response, usage=whole.usage)
            else:
                held = any(hook.buffer for hook in entered)
                pieces = send(request)
                if around:
                    pieces = surrounded(pieces, around, request)
                try:
                    async for piece in pieces:
                        whole.add(piece)
                        if not held and not isinstance(piece, Usage):
                            yield piece
                finally:
                    await close_stream(pieces)
                response = whole.made = whole.response()
        except Exception as error:
            response = await _recover(entered, kind, request, error, whole)
            if response is None:
                raise
            failed = True
        changed = await _leave(entered, kind, request, response)
    except Exception:
        if whole.usage is not None:
            yield whole.usage
        raise
    for left in whole.not_streamed(changed, held=held, failed=failed):
        yield left


class _Whole:
    """Collects the pieces of a response, apart from its usage."""

    def __init__(self) -> None:
        self.pieces: list[Piece | Replaced] = []
        self.usage: Usage | None = None
        self.made: ModelResponse | None = None

    def add(self, piece: Piece | Replaced) -> None:
        if isinstance(piece, Replaced):
            self.pieces = [*_pieces_of(piece.response, self, piece.finish)]
        elif isinstance(piece, Usage):
            self.usage = piece if self.usage is None else self.usage.followed_by(piece)
        else:
            self.pieces.append(piece)

    @property
    def finish(self) -> Finish | None:
        return next((piece for piece in self.pieces if isinstance(piece, Finish)), None)

    def finish_of(self, changed: ModelResponse) -> Finish | None:
        """Return how a changed response ended, without what belongs to the original response."""
        reason, was = changed.finish_reason, self.finish
        if reason is None or (was is not None and was.reason == reason):
            return None if reason is None else was
        return Finish(reason)

    def not_streamed(
        self, changed: ModelResponse, *, held: bool, failed: bool
    ) -> Iterator[Piece | Replaced]:
        """Yield what is left to stream once the hooks have made ``changed`` of the response."""
        same = changed is self.made
        if held or not self.pieces:
            yield from self.pieces if same else _pieces_of(changed, self)
        elif not same:
            yield Replaced(changed, self.finish_of(changed), failed)
        usage = self.usage if changed.usage is None else changed.usage
        if usage is not None:
            yield usage

    def response(self) -> ModelResponse:
        texts = [piece for piece in self.pieces if isinstance(piece, str)]
        return ModelResponse(
            text="".join(text for text in texts if not isinstance(text, Thought)),
            actions=tuple(piece for piece in self.pieces if isinstance(piece, Action)),
            thoughts="".join(text for text in texts if isinstance(text, Thought)),
            usage=self.usage,
            finish_reason=None if self.finish is None else self.finish.reason,
        )


def _pieces_of(
    response: ModelResponse, whole: _Whole, finish: Finish | None = None
) -> Iterable[Piece]:
    """The pieces of a changed response, apart from its usage."""
    if response.thoughts:
        yield Thought(response.thoughts)
    if response.text:
        yield response.text
    yield from response.actions
    finish = finish or whole.finish_of(response)
    if finish is not None:
        yield finish


async def _enter(
    hooks: Sequence[Hook],
    kind: Kind,
    request: RequestT,
    response_type: type[ResponseT],
    entered: list[Hook],
) -> tuple[RequestT, ResponseT | None]:
    """Call the hooks before a call until one answers it; those before go to ``entered``."""
    name = _METHODS[kind][0]
    for hook in hooks:
        given = await _call(hook, name, (request,), type(request), response_type)
        if isinstance(given, response_type):
            return request, given
        if given is not None:
            request = _kept(hook, request, given)
        entered.append(hook)
    return request, None


def _kept(hook: Hook, request: RequestT, given: RequestT) -> RequestT:
    """Return ``given``, with the fields of ``request`` that a hook cannot change."""
    if isinstance(given, ToolRequest) and isinstance(request, ToolRequest):
        if given.action.id != request.action.id:  # the result belongs to the call of the model
            action = given.action.model_copy(update={"id": request.action.id})
            return replace(given, action=action)
    elif isinstance(given, ModelRequest) and isinstance(request, ModelRequest):
        if request.attempt and given.llm is not request.llm:
            error = StateDefinitionError(
                f"{type(hook).__name__}.before_attempt changed llm: an attempt is made by the "
                "model that was called. Change it in before_model_call"
            )
            raise _own(error)
        if given.response_id != request.response_id:
            return replace(given, response_id=request.response_id)
    return given


def _with_texts(hook: Hook, request: EmbeddingRequest, given: EmbeddingRequest) -> EmbeddingRequest:
    """Return the request with the texts that a hook gives."""
    if len(given.texts) != len(request.texts):
        raise _own(
            StateDefinitionError(
                f"{type(hook).__name__}.before_embedding returned {len(given.texts)} texts for "
                f"{len(request.texts)}: change texts, or raise Refused"
            )
        )
    return replace(request, texts=given.texts)


async def _leave(
    entered: Sequence[Hook], kind: Kind, request: HookRequest, response: ModelResponse
) -> ModelResponse:
    name = _METHODS[kind][1]
    for hook in reversed(entered):
        response = await _call(hook, name, (request, response), ModelResponse) or response
    return response


async def _recover(
    entered: list[Hook], kind: Kind, request: HookRequest, error: Exception, whole: _Whole
) -> ModelResponse | None:
    """Return a hook's answer to an error; only the hooks before it stay in ``entered``."""
    if getattr(error, _RAISED_BY_HOOK, False) or isinstance(error, FinalError):
        return None
    name = _METHODS[kind][2]
    for index in reversed(range(len(entered))):
        given = await _call(entered[index], name, (request, error), ModelResponse)
        if given is not None:
            del entered[index:]
            used = failed_usage(whole.usage, error, said=bool(whole.pieces))
            whole.usage = used if given.usage is None else used + given.usage
            answer: ModelResponse = replace(given, usage=whole.usage)
            return answer
    return None


def failed_usage(known: Usage | None, error: Exception, *, said: bool) -> Usage:
    """Return what a failed call used: its attempts count, their tokens are not known.

    Args:
        known: What the model has reported.
        error: Why it failed.
        said: Whether the model has said something, which costs.
    """
    if isinstance(error, Refused):  # no model was called
        return known or Usage(cost=0.0, requests=0)
    tries = 1 + (error.retries if isinstance(error, LLMError) else 0)
    if known is None:
        return Usage(requests=tries, cost=None if said else 0.0)
    missing = tries - known.requests
    return known + Usage(requests=missing, model=known.model) if missing > 0 else known


_RAISED_BY_HOOK = "_raised_by_hook"


def _own(error: ErrorT) -> ErrorT:
    """Return ``error``, marked as raised by a hook: it ends the run and no hook handles it."""
    setattr(error, _RAISED_BY_HOOK, True)
    return error


async def _call(hook: Hook, name: str, args: tuple[Any, ...], *kinds: type) -> Any:
    """Return what a method of a hook returned: None, or an object of one of ``kinds``."""
    try:
        given = getattr(hook, name)(*args)
        given = await given if isinstance(given, Awaitable) else given
        if given is not None:
            check_given(f"{type(hook).__name__}.{name}", given, kinds)
    except Exception as error:
        if not isinstance(error, Refused) and all(error is not arg for arg in args):
            error.add_note(f"Raised by {type(hook).__name__}.{name}")
            _own(error)
        raise
    return given


def hooks_of(*groups: Sequence[Hook], trace: CallTrace | None = None) -> HookChain | None:
    """Return the hooks of a Brain, then of its net, and a trace; None if there are none."""
    found = tuple(hook for group in groups for hook in group)
    return HookChain(found, trace) if found or trace is not None else None
