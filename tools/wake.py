"""When a run that waits for a time continues."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta

_LAST = datetime.max.replace(tzinfo=UTC)


class Ahead:
    """A time that has come already, for a replay that does not wait.

    Attributes:
        to: The time; None for the clock's.
    """

    def __init__(self) -> None:
        self.to: datetime | None = None


_ahead: ContextVar[Ahead | None] = ContextVar("agent_brain_ahead", default=None)


@contextmanager
def ahead_of_time() -> Iterator[Ahead]:
    """Let times come early, in this task and those that it starts."""
    found = Ahead()
    token = _ahead.set(found)
    try:
        yield found
    finally:
        _ahead.reset(token)


def now() -> datetime:
    """Return the current time, in UTC."""
    ahead, time = _ahead.get(), datetime.now(UTC)
    return time if ahead is None or ahead.to is None else max(ahead.to, time)


def wake_time(until: datetime | timedelta) -> datetime:
    """Return the time ``until`` in UTC, counted from now if it is a length.

    Raises:
        ValueError: It is a time without a time zone, or neither of them.
    """
    if isinstance(until, timedelta):
        try:
            return now() + until
        except OverflowError:
            return _LAST
    if not isinstance(until, datetime):
        raise ValueError("pass a datetime or a timedelta")
    if until.tzinfo is None:
        raise ValueError(
            "give a time with a time zone, such as datetime.now(UTC) + timedelta(hours=1)"
        )
    try:
        return until.astimezone(UTC)
    except OverflowError:
        return _LAST
