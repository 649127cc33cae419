"""A place between the library and real models, where tests forbid, record and replay calls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeAlias

from pydantic import BaseModel

from agent_brain.memories.message import Message
from agent_brain.states.aclosing import closing
from agent_brain.states.models.llm import LLM, Piece
from agent_brain.tools.base import BaseTool

Pieces: TypeAlias = AsyncIterator[Piece]


@dataclass(frozen=True, slots=True)
class RealCall:
    """A call of a real model that is about to be made.

    Attributes:
        llm: The model.
        messages: What it is to see.
        tools: What it is offered.
        output_type: The shape that is asked for, if any.
        send: Makes the call; :func:`send_for_real` is the way to use it.
    """

    llm: LLM
    messages: Sequence[Message]
    tools: Sequence[BaseTool]
    output_type: type[BaseModel] | None
    send: Callable[[], Pieces]


Interceptor: TypeAlias = Callable[[RealCall], Pieces]

# For the whole process, no ContextVars: a fixture enters in another context than its test runs in,
# and worker threads and loops started earlier have contexts of their own.
_checks: list[Callable[[str], None]] = []
_interceptors: list[Interceptor] = []

_inside: ContextVar[bool] = ContextVar("agent_brain_inside_real_call", default=False)


@contextmanager
def before_real_calls(check: Callable[[str], None]) -> Iterator[None]:
    """Inside, ``check`` is called with the model's name before each real call; it may raise."""
    _checks.append(check)
    try:
        yield
    finally:
        _checks.remove(check)


def about_to_call(model: str) -> None:
    """Adapters for real models say so here before they send anything."""
    for check in tuple(_checks):
        check(model)


@contextmanager
def instead_of_real_calls(interceptor: Interceptor) -> Iterator[None]:
    """Inside, ``interceptor`` answers every real call; the one entered last counts."""
    _interceptors.append(interceptor)
    try:
        yield
    finally:
        _interceptors.remove(interceptor)


def intercepted() -> bool:
    """Whether a real call would be answered by someone else: then nothing need be made ready."""
    return bool(_interceptors) and not _inside.get()


def real_call(call: RealCall) -> Pieces:
    """The pieces of a real call: sent, or answered by whoever stands in between.

    Adapters for real models make their calls through here. Calls that a call makes in its turn, of
    its fallbacks say, are part of it and are not intercepted again.
    """
    return _interceptors[-1](call) if intercepted() else call.send()


async def send_for_real(call: RealCall) -> Pieces:
    """Make the call, for interceptors that let it pass."""
    async with closing(call.send()) as pieces:
        while True:
            token = _inside.set(True)  # set while the adapter works, not while the consumer does
            try:
                piece = await anext(pieces, None)
            finally:
                _inside.reset(token)
            if piece is None:
                return
            yield piece
