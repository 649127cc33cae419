"""Waiting for a time: the run stops, and any process continues it when the time has come."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import datetime, timedelta

from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.events import Event, SleepRequested
from agent_brain.states.work import Work, WorkContext, key_in_step
from agent_brain.tools.wake import wake_time


class Sleep(Work):
    """Wait until a time; yield it from ``State.run``.

    If the time is in the future, the run stops with ``stop_reason="sleeping"`` and
    ``Result.wake_at``. When it is resumed, the state runs again from its beginning. What follows
    the ``yield`` runs once the time has come; a run that is resumed before, stops again. With a
    journal, another process may resume it, days later::

        async def run(self, memory):
            yield Sleep(timedelta(hours=1))
            yield "An hour has passed."

    Args:
        until: When to continue: a time with a time zone, or how long from now. The time is kept
            until the step ends, so a length is not measured again when the run is resumed.
        name: Distinguishes several of one state.

    Raises:
        StateDefinitionError: ``until`` is not a length of time, or a time without a time zone.
    """

    def __init__(self, until: datetime | timedelta, *, name: str = "") -> None:
        try:
            wake_time(until)
        except ValueError as error:
            raise StateDefinitionError(f"Sleep({until!r}): {error}") from None
        self._until = until
        self._name = name

    async def events(self, context: WorkContext | None = None) -> AsyncGenerator[Event, None]:
        """Yield the request to sleep, unless the time has come.

        Raises:
            RuntimeError: There is no run to be part of.
        """
        if context is None:
            raise RuntimeError("Sleep needs a run: yield it from State.run")
        wake_at = await self._wake_at(context)
        if wake_at > wake_time(timedelta()):
            yield SleepRequested(wake_at)

    async def _wake_at(self, context: WorkContext) -> datetime:
        """Return the time; that of a length is kept when it is first asked for."""
        if isinstance(self._until, datetime):
            return wake_time(self._until)
        memory = context.memory
        key = key_in_step(context, f"sleep:{self._name}")
        if (known := memory.control.ended.get(key)) is not None:
            return datetime.fromisoformat(known)
        wake_at = wake_time(self._until)
        memory.control.ended[key] = wake_at.isoformat()
        if memory.durable:
            await memory.record([key])
        return wake_at
