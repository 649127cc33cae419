"""The hooks of a run, called around model calls, attempts and tool calls. Private."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, TypeVar

from pydantic import BaseModel

from agent_brain.memories.message import Message
from agent_brain.states.errors import Refused
from agent_brain.states.hooks import (
    Hook,
    HookRequest,
    ModelRequest,
    ModelResponse,
    ToolRequest,
    ToolResponse,
)
from agent_brain.states.models.llm import LLM, Finish, Piece, Thought
from agent_brain.states.usage import Usage
from agent_brain.states.work import close_stream
from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool

Kind: TypeAlias = Literal["model", "attempt", "tool"]
RequestT = TypeVar("RequestT", bound="HookRequest")
ResponseT = TypeVar("ResponseT")

_METHODS: dict[Kind, tuple[str, str, str]] = {
    "model": ("before_model_call", "after_model_call", "on_model_error"),
    "attempt": ("before_attempt", "after_attempt", "on_attempt_error"),
    "tool": ("before_tool_call", "after_tool_call", "on_tool_error"),
}


@dataclass(frozen=True, slots=True)
class Replaced:
    """A piece of a model's stream: ``response`` takes the place of what was streamed before."""

    response: ModelResponse


class HookChain:
    """The hooks of a run, in order. Private.

    Attributes:
        model: Those around model calls.
        attempt: Those around attempts.
        tool: Those around tool calls.
    """

    __slots__ = ("_all", "attempt", "model", "tool")

    def __init__(self, hooks: Iterable[Hook]) -> None:
        self._all = tuple(hooks)
        self.model = self._with("model")
        self.attempt = self._with("attempt")
        self.tool = self._with("tool")

    def _with(self, kind: Kind) -> tuple[Hook, ...]:
        def overrides(hook: Hook) -> bool:
            return any(getattr(type(hook), n) is not getattr(Hook, n) for n in _METHODS[kind])

        return tuple(hook for hook in self._all if overrides(hook))

    def then(self, hooks: Sequence[Hook]) -> HookChain:
        """Return these hooks with those of a net after them."""
        return HookChain((*self._all, *hooks)) if hooks else self

    async def model_call(
        self, request: ModelRequest, send: Callable[[ModelRequest], AsyncIterator[Piece]]
    ) -> AsyncGenerator[Piece | Replaced, None]:
        """Yield the pieces of a model call with hooks around it and around its attempts."""
        token_of = _attempts if self.attempt else None
        pieces = _model_pieces(self.model, "model", request, send)
        try:
            while True:
                # set while the model works, not while the consumer does
                token = token_of and token_of.set((self.attempt, request))
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

    async def before_tool(
        self, request: ToolRequest
    ) -> tuple[Sequence[Hook], ToolRequest, ToolResponse | None]:
        """Call the hooks before a tool call; return those to call afterwards, and what they say."""
        entered: list[Hook] = []
        try:
            request, response = await _enter(self.tool, "tool", request, ToolResponse, entered)
        except Refused as error:
            response = ToolResponse(str(error), is_error=True, exception=error)
        return entered, request, response

    async def after_tool(
        self, entered: Sequence[Hook], request: ToolRequest, response: ToolResponse
    ) -> ToolResponse:
        """Call the hooks after a tool call; return the result as they leave it."""
        if response.exception is not None and entered:
            instead = await _recover(entered, "tool", request, response.exception, ToolResponse)
            response = instead or response
        return await _leave(entered, "tool", request, response, ToolResponse)


_attempts: ContextVar[tuple[tuple[Hook, ...], ModelRequest] | None] = ContextVar(
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
    return _model_pieces(hooks, "attempt", replace(request, at=call.at, memory=call.memory), send)


async def _model_pieces(
    hooks: Sequence[Hook],
    kind: Kind,
    request: ModelRequest,
    send: Callable[[ModelRequest], AsyncIterator[Piece]],
) -> AsyncGenerator[Any, None]:
    """Yield the pieces of a call, and its response again where a hook has changed it."""
    entered: list[Hook] = []
    whole, held = _Whole(), True
    try:
        request, response = await _enter(hooks, kind, request, ModelResponse, entered)
        if response is not None:
            response = replace(response, usage=response.usage or Usage(cost=0.0, requests=0))
        else:
            held = any(hook.buffer for hook in entered)
            pieces = send(request)
            try:
                async for piece in pieces:
                    whole.add(piece)
                    if not held or isinstance(piece, Usage):
                        yield piece
            finally:
                await close_stream(pieces)
            response = whole.made = whole.response()
    except Exception as error:
        response = await _recover(entered, kind, request, error, ModelResponse)
        if response is None:
            raise
    changed = await _leave(entered, kind, request, response, ModelResponse)
    if held or not whole.pieces:
        same = changed is whole.made
        for held_back in whole.pieces if same else _pieces_of(changed, whole):
            yield held_back
    elif changed is not whole.made:
        yield Replaced(changed)


class _Whole:
    """Collects the pieces of a response, apart from its usage."""

    def __init__(self) -> None:
        self.pieces: list[Piece | Replaced] = []
        self.usage: Usage | None = None
        self.made: ModelResponse | None = None

    def add(self, piece: Piece | Replaced) -> None:
        if isinstance(piece, Replaced):
            self.pieces = [*_pieces_of(piece.response, self)]
        elif isinstance(piece, Usage):
            self.usage = piece if self.usage is None else self.usage + piece
        else:
            self.pieces.append(piece)

    @property
    def finish(self) -> Finish | None:
        return next((piece for piece in self.pieces if isinstance(piece, Finish)), None)

    def response(self) -> ModelResponse:
        texts = [piece for piece in self.pieces if isinstance(piece, str)]
        return ModelResponse(
            text="".join(text for text in texts if not isinstance(text, Thought)),
            actions=tuple(piece for piece in self.pieces if isinstance(piece, Action)),
            thoughts="".join(text for text in texts if isinstance(text, Thought)),
            usage=self.usage,
            finish_reason=None if self.finish is None else self.finish.reason,
        )


def _pieces_of(response: ModelResponse, whole: _Whole) -> Iterable[Piece]:
    """The pieces of a changed response; its usage only if that was not passed on already."""
    if response.thoughts:
        yield Thought(response.thoughts)
    if response.text:
        yield response.text
    yield from response.actions
    if response.finish_reason is not None:
        same = whole.finish is not None and whole.finish.reason == response.finish_reason
        yield whole.finish if same and whole.finish else Finish(response.finish_reason)
    if response.usage is not None and whole.usage is None:
        yield response.usage


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
        given = await _call(hook, name, request)
        if isinstance(given, response_type):
            return request, given
        if given is not None:
            _check(hook, name, given, type(request))
            request = given
        entered.append(hook)
    return request, None


async def _leave(
    entered: Sequence[Hook],
    kind: Kind,
    request: HookRequest,
    response: ResponseT,
    response_type: type[ResponseT],
) -> ResponseT:
    name = _METHODS[kind][1]
    for hook in reversed(entered):
        given = await _call(hook, name, request, response)
        if given is not None:
            _check(hook, name, given, response_type)
            response = given
    return response


async def _recover(
    entered: Sequence[Hook],
    kind: Kind,
    request: HookRequest,
    error: Exception,
    response_type: type[ResponseT],
) -> ResponseT | None:
    name = _METHODS[kind][2]
    for hook in reversed(entered):
        given = await _call(hook, name, request, error)
        if given is not None:
            _check(hook, name, given, response_type)
            found: ResponseT = given
            return found
    return None


async def _call(hook: Hook, name: str, *args: object) -> Any:
    given = getattr(hook, name)(*args)
    return await given if isinstance(given, Awaitable) else given


def _check(hook: Hook, name: str, given: object, kind: type) -> None:
    if not isinstance(given, kind):
        raise TypeError(
            f"{type(hook).__name__}.{name} returned {given!r}: return None or a {kind.__name__}"
        )


def hooks_of(*groups: Sequence[Hook]) -> HookChain | None:
    """Return the hooks of a Brain, then of its net; None if there are none."""
    found = tuple(hook for group in groups for hook in group)
    return HookChain(found) if found else None
