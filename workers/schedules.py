"""Schedules: runs that are submitted at certain times."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from agent_brain.common.extras import extra
from agent_brain.errors import QueueError
from agent_brain.workers.part import Part
from agent_brain.workers.submitting import checked_label, checked_name


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a run is submitted, and which one.

    Attributes:
        cron: When.
        timezone: The time zone.
        run: The run, with the name of the schedule as its ID; its session is empty where each run
            has a new one.
    """

    cron: str
    timezone: str
    run: Part


def checked_schedule(schedule: Schedule) -> Schedule:
    """Return a schedule that DBOS will take.

    Raises:
        QueueError: It is wrong, or DBOS is not installed.
    """
    with extra("dbos", QueueError):
        from croniter import croniter

    run = schedule.run
    checked_label("name", run.id)
    if run.tenant is not None:
        checked_name("tenant", run.tenant)
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
