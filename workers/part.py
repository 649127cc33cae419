"""What a workflow is given: a run, or the next part of one; and when runs are submitted."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, unquote
from zoneinfo import ZoneInfo

from pydantic import JsonValue, TypeAdapter

from agent_brain.common.lazy_exports import extra
from agent_brain.common.text import clean, clean_json, to_json_data
from agent_brain.errors import QueueError
from agent_brain.memories.message import Message, Role, as_message
from agent_brain.memories.store.session import session_key

MAX_NAME = 200  # characters
SHORTEST = 0.5  # seconds that a part waits for its turn before it asks again
LONGEST = 30.0


def checked_name(what: str, name: object) -> str:
    """Return the name of a session, a tenant or a run.

    Raises:
        QueueError: It is not a text of 1 to 200 characters that can be stored.
    """
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME or clean(name) != name:
        raise QueueError(f"{what}={name!r:.100}: give a text of 1 to {MAX_NAME} characters")
    return name


def checked_label(what: str, name: object) -> str:
    """Return a name that the database of the queue stores as it is.

    Raises:
        QueueError: It is not a text of 1 to 200 characters, or has a null character.
    """
    if "\0" in checked_name(what, name):
        raise QueueError(f"{what}={name!r:.100}: give a text without null characters")
    return str(name)


def task_data(task: str | Message) -> JsonValue:
    """Return a task as JSON.

    Raises:
        QueueError: It is empty, or neither a text nor a message of a user.
    """
    given: object = task
    if not isinstance(given, str | Message):
        raise QueueError(f"The task is a text or a Message, not {type(given).__name__}")
    goal = as_message(given)
    if goal.role is not Role.USER:
        raise QueueError(f"The task is a message of the user, not of role {goal.role.value!r}")
    if not goal.content.strip() and not goal.attachments:
        raise QueueError("The task is empty: say what is to be done")
    return clean(given) if isinstance(given, str) else to_json_data(given)


def run_key(id: str, tenant: str | None) -> str:  # noqa: A002 - what it is
    """Return what identifies a tenant's run; no two pairs have the same key."""
    name = quote(id, safe="")
    return name if tenant is None else f"{quote(tenant, safe='')}:{name}"


def read_run_key(key: str) -> tuple[str, str | None]:
    """Return the ID and the tenant of a key that :func:`run_key` returned."""
    tenant, separator, name = key.rpartition(":")
    return unquote(name), unquote(tenant) if separator else None


def workflow_id(key: str, number: int) -> str:
    """Return the ID of the workflow for a part of a run."""
    return f"{key}/{number}"


def mark(session: str, tenant: str | None) -> str:
    """Return what finds the workflows of a session: short, and safe in any column."""
    return hashlib.sha256(session_key(session, tenant).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a run: what one workflow does.

    A run that is never handed on has one. The next part continues it: after a decision of a person,
    or on another worker.

    Attributes:
        id: The ID of the run.
        tenant: Whose it is.
        session: Its session.
        brain: The name of the brain.
        task: The task: a text, or a message as JSON.
        number: The number of the part, from 0.
        first: The number of the part with which the run was submitted, or resumed last.
        resumes: Whether a person continues a run that had ended or waits.
        decisions: What the person has decided, as for :meth:`Brain.resume`.
        begun: Whether a worker has begun the run.
        since: The place in the order of the session, in milliseconds; None for its own time.
        turns: How often in a row it had to wait for its turn.
        wakes: Whether it continues a run that sleeps, at its time.
        asks: Whether that run waits for a person too, in another branch.
        copied: The ID of the run in its session, if the session is a copy of another one's.
    """

    id: str
    tenant: str | None
    session: str
    brain: str
    task: JsonValue
    number: int = 0
    first: int = 0
    resumes: bool = False
    decisions: dict[str, Any] | None = None
    begun: bool = False
    since: int | None = None
    turns: int = 0
    wakes: bool = False
    asks: bool = False
    copied: str | None = None

    @property
    def key(self) -> str:
        """What identifies the run in the queue."""
        return run_key(self.id, self.tenant)

    @property
    def run_id(self) -> str:
        """The ID of the run in its session: the key, or that of the run it is a copy of."""
        return self.copied or self.key

    @classmethod
    def of_copy(cls, run_id: str, *, tenant: str | None, session: str, brain: str) -> Part:
        """Return what comes before the first part of a run in a copied session.

        Args:
            run_id: The ID of the run in the session.
            tenant: Whose it is.
            session: The copy.
            brain: The name of the brain.
        """
        place = f"{run_id} {session_key(session, tenant)}"
        name = f"copy_{hashlib.sha256(place.encode()).hexdigest()[:32]}"
        return cls(name, tenant, session, brain, "", number=-1, copied=run_id)

    @property
    def workflow(self) -> str:
        """The ID of the workflow."""
        return workflow_id(self.key, self.number)

    @property
    def mark(self) -> str:
        """What finds the workflows of the session."""
        return mark(self.session, self.tenant)

    @property
    def partition(self) -> str:
        """What its tenant is called in the queue."""
        return "-" if self.tenant is None else f"+{quote(self.tenant, safe='')}"

    @property
    def seconds_to_wait(self) -> float:
        """How long it waits before it asks again whether it is its turn."""
        return min(SHORTEST * 2.0 ** min(self.turns, 20), LONGEST)

    def goal(self) -> str | Message:
        """Return the task."""
        return self.task if isinstance(self.task, str) else as_message(self.task)  # type: ignore[arg-type]

    def is_same_task(self, other: Part) -> bool:
        """Return whether the other part begins the same run."""
        return (self.brain, self.session, self.task) == (other.brain, other.session, other.task)

    def following(self, **changes: Any) -> Part:
        """Return the next part of the run."""
        return replace(self, number=self.number + 1, **changes)

    def resumed(self, *, begun: bool, decisions: dict[str, Any] | None) -> Part:
        """Return the part that continues a run, as a person wants it.

        Args:
            begun: Whether a worker has begun the run.
            decisions: What the person has decided.
        """
        return replace(
            self,
            number=self.number + 1,
            first=self.number + 1,
            resumes=begun,
            begun=begun,
            decisions=decisions,
            since=None,
            turns=0,
            wakes=False,
            asks=False,
        )

    def woken(self, since: int, *, asks: bool = False) -> Part:
        """Return the part that continues a run that sleeps, in its place of the session.

        Args:
            since: The place.
            asks: Whether the run waits for a person too.
        """
        following = self.resumed(begun=True, decisions=None)
        return replace(following, since=since, wakes=True, asks=asks)

    def to_json(self) -> dict[str, JsonValue]:
        """Return it as JSON values."""
        return clean_json(asdict(self))  # type: ignore[no-any-return]

    @classmethod
    def from_json(cls, data: object) -> Part:
        """Read what :meth:`to_json` returned."""
        return _ADAPTER.validate_python(data)


_ADAPTER = TypeAdapter(Part)


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
