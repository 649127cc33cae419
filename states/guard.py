"""A place to stand between the library and real models: tests forbid them here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

# One for the whole process, not a ContextVar: a fixture enters in another context than its test
# runs in, and worker threads and loops started earlier have contexts of their own.
_checks: list[Callable[[str], None]] = []


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
