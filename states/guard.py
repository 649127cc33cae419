"""A place to stand between the library and real models: tests forbid them here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_check: ContextVar[Callable[[str], None] | None] = ContextVar("real_model_check", default=None)


@contextmanager
def before_real_calls(check: Callable[[str], None]) -> Iterator[None]:
    """Inside, ``check`` is called with the model's name before each real call; it may raise."""
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)


def about_to_call(model: str) -> None:
    """Adapters for real models say so here before they send anything."""
    check = _check.get()
    if check is not None:
        check(model)
