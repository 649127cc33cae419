"""Intercept calls of real models: tests forbid, record and replay them here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TypeAlias, TypeVar

from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.hooks import ModelRequest
from agent_brain.states.models.llm import Piece
from agent_brain.states.pipeline import surrounded

T = TypeVar("T")
Pieces: TypeAlias = AsyncIterator[Piece]
Send: TypeAlias = Callable[[ModelRequest], Pieces]
"""Makes a call; interceptors use :func:`send_for_real`."""
Interceptor: TypeAlias = Callable[[ModelRequest, Send], Pieces]
"""Answers a call of a real model that is about to be made."""

# For the whole process, not in ContextVars: a fixture runs in another context than its test, and
# worker threads and loops started earlier have contexts of their own.
_checks: list[Callable[[str], None]] = []
_interceptors: list[Interceptor] = []

_forbidden: ContextVar[str] = ContextVar("agent_brain_no_real_calls", default="")
_inside: ContextVar[bool] = ContextVar("agent_brain_inside_real_call", default=False)


@contextmanager
def _listed(things: list[T], thing: T) -> Iterator[None]:
    things.append(thing)
    try:
        yield
    finally:
        things.remove(thing)


def before_real_calls(check: Callable[[str], None]) -> AbstractContextManager[None]:
    """Inside, call ``check`` with the model's name before each real call; it may raise."""
    return _listed(_checks, check)


def about_to_call(model: str) -> None:
    """Announce a real call; adapters call this before they send anything."""
    for check in tuple(_checks):
        check(model)


@contextmanager
def _set(variable: ContextVar[T], value: T) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def without_real_calls(why: str) -> AbstractContextManager[None]:
    """Inside, in this task and the tasks that it starts, refuse real calls; ``why`` says why."""
    return _set(_forbidden, why)


def instead_of_real_calls(interceptor: Interceptor) -> AbstractContextManager[None]:
    """Inside, let ``interceptor`` answer every real call; the innermost one is used."""
    return _listed(_interceptors, interceptor)


def intercepted() -> bool:
    """Return whether a real call would be intercepted, so that no preparation is needed."""
    return bool(_interceptors) and not _inside.get()


def real_call(request: ModelRequest, send: Send) -> Pieces:
    """Return the pieces of a real call, sent or intercepted; adapters make their calls with it.

    Calls that a call makes itself, such as those of fallbacks, are not intercepted again.
    """
    if why := _forbidden.get():
        raise StateDefinitionError(f"{request.model!r} was called, and {why}")
    return _interceptors[-1](request, send) if intercepted() else send(request)


def send_for_real(request: ModelRequest, send: Send) -> Pieces:
    """Make the call, for interceptors that let it pass."""
    return surrounded(send(request), partial(_set, _inside, value=True))
