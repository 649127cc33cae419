"""The error of a task group, as it was raised."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_error() -> Iterator[None]:
    """Raise the first error of a group instead of the group."""
    try:
        yield
    except BaseExceptionGroup as several:
        error: BaseException = several
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from None
