"""Schedules: runs that are submitted at certain times."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from pydantic import JsonValue

from agent_brain.common.extras import extra
from agent_brain.errors import QueueError
from agent_brain.workers.submitting import checked_label, checked_name


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a run is submitted, and which one.

    Attributes:
        name: The name.
        cron: When.
        timezone: The time zone.
        brain: The name of the brain.
        task: The task, as JSON.
        session: The session of all its runs; None for a new one each time.
        tenant: Whose runs they are.
    """

    name: str
    cron: str
    timezone: str
    brain: str
    task: JsonValue
    session: str | None = None
    tenant: str | None = None

    def to_json(self) -> dict[str, JsonValue]:
        """Return what a worker needs, as JSON values."""
        return {
            "id": self.name,
            "tenant": self.tenant,
            "session": self.session or "",
            "brain": self.brain,
            "task": self.task,
        }


def checked_schedule(schedule: Schedule) -> Schedule:
    """Return a schedule that DBOS will take.

    Raises:
        QueueError: It is wrong, or DBOS is not installed.
    """
    with extra("dbos", QueueError):
        from croniter import croniter

    checked_label("name", schedule.name)
    for what, name in (("session", schedule.session), ("tenant", schedule.tenant)):
        if name is not None:
            checked_name(what, name)
    if not isinstance(schedule.cron, str) or not croniter.is_valid(
        schedule.cron, second_at_beginning=True
    ):
        raise QueueError(
            f"cron={schedule.cron!r} is not a schedule: write minute, hour, day, month and "
            "weekday, such as '0 3 * * *'"
        )
    try:
        croniter(schedule.cron, datetime.now(UTC), second_at_beginning=True).get_next()
    except ValueError as error:
        raise QueueError(f"cron={schedule.cron!r} names no time that ever comes") from error
    try:
        ZoneInfo(schedule.timezone)
    except Exception as error:
        raise QueueError(
            f"timezone={schedule.timezone!r} is not known: write one such as 'Europe/Berlin'"
        ) from error
    return schedule
