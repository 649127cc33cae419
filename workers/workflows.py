"""The workflows of a queue: what DBOS stores of parts of runs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from anyio import to_thread
from pydantic import JsonValue, TypeAdapter

from agent_brain.common.secrets import scrub
from agent_brain.common.text import clean, to_json_data
from agent_brain.limits import WAITING, StopReason
from agent_brain.nets.net import Net
from agent_brain.result import Result, empty_result
from agent_brain.states.usage import Usage
from agent_brain.workers.part import Part, workflow_id

if TYPE_CHECKING:
    from dbos import DBOSClient, WorkflowStatus

_RESULT = TypeAdapter(Result[Any])
RUN = "agent_brain.run"  # the names of the workflows
SCHEDULED = "agent_brain.scheduled"
ACTIVE = ("ENQUEUED", "PENDING", "DELAYED")
MANY = 16  # parts that are looked up at once
Status: TypeAlias = Literal["queued", "running", "waiting", "ended", "failed", "cancelled"]
_STATUS: dict[str, Status] = {
    "ENQUEUED": "queued",
    "DELAYED": "queued",
    "PENDING": "running",
    "CANCELLED": "cancelled",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a part of a run came to.

    Attributes:
        kind: ``"ended"`` with a result, ``"failed"`` with an error, or ``"passed_on"``: the next
            part continues.
        result: The result of the run, as JSON.
        error: The class and the text of the error.
        output_class: The name of the class of the result's output.
    """

    kind: Literal["ended", "failed", "passed_on"]
    result: dict[str, Any] | None = None
    error: dict[str, str] | None = None
    output_class: str | None = None

    @classmethod
    def of(cls, result: Result[Any]) -> Outcome:
        """Return the outcome of a run that has ended."""
        name = None if result.output is None else type(result.output).__name__
        return cls("ended", result=to_json_data(result), output_class=name)

    @classmethod
    def failed(cls, error: BaseException) -> Outcome:
        """Return the outcome of a run that raised ``error``."""
        text = clean(scrub(str(error)))
        return cls("failed", error={"type": type(error).__name__, "message": text})

    @property
    def waits(self) -> bool:
        """Whether the run waits for a person."""
        return self.result is not None and self.result["stop_reason"] in WAITING

    @property
    def cancelled(self) -> bool:
        """Whether the run was cancelled."""
        return self.result is not None and self.result["stop_reason"] == StopReason.CANCELLED

    @property
    def wake_at(self) -> datetime | None:
        """When the run is to be continued, if it sleeps, or a branch of it does."""
        if self.result is None or self.result["stop_reason"] not in (StopReason.SLEEPING, *WAITING):
            return None
        wake_at = self.result.get("wake_at")
        return None if wake_at is None else datetime.fromisoformat(wake_at)

    def to_result(self, net: Net | None = None) -> Result[Any]:
        """Return the result.

        Args:
            net: The net of the run, which makes its output of the JSON; None returns the JSON.
        """
        result = _RESULT.validate_python(self.result)
        if net is None:
            return result
        return replace(result, output=net.restore_output(result.output, self.output_class))

    def to_json(self) -> dict[str, JsonValue]:
        """Return it as JSON values."""
        found: dict[str, JsonValue] = _ADAPTER.dump_python(self, mode="json")
        return found

    @classmethod
    def from_json(cls, data: object) -> Outcome:
        """Read what :meth:`to_json` returned."""
        return _ADAPTER.validate_python(data)


def unbegun(key: str, reason: StopReason) -> Result[Any]:
    """Return the result of a run that was ended before it began."""
    return empty_result(key, reason, Usage(cost=0.0, requests=0))


_ADAPTER = TypeAdapter(Outcome)


@dataclass(frozen=True, slots=True)
class Workflow:
    """What DBOS has of a part.

    Attributes:
        id: The ID of the workflow.
        state: What DBOS calls its status.
        part: The part; None where it was not asked for.
        outcome: What it came to, if that is known.
        worker: The worker that does it, or did it last.
        version: The version of the program that it needs, if one has begun it.
        created: When it was enqueued.
        stops: Whether it is to stop after its step.
        cancelled: Whether it was cancelled.
        discarded: Whether its run was cancelled with it.
        since: Its place in the order of its session, in milliseconds.
        wakes: Whether it continues a run that sleeps.
        asks: Whether that run waits for a person too.
    """

    id: str
    state: str
    part: Part | None
    outcome: Outcome | None
    worker: str | None
    version: str | None
    created: datetime
    stops: bool
    cancelled: bool
    since: int
    wakes: bool = False
    asks: bool = False
    discarded: bool = False

    @property
    def asleep(self) -> bool:
        """Whether its run sleeps: the time has not come."""
        return self.wakes and self.state == "DELAYED"

    @property
    def key(self) -> str:
        """The key of its run."""
        return self.id.rpartition("/")[0]

    @property
    def number(self) -> int:
        """The number of the part."""
        return int(self.id.rpartition("/")[2])

    @property
    def active(self) -> bool:
        """Whether it has not ended."""
        return self.state in ACTIVE

    @property
    def status(self) -> Status:
        """What it is called outside."""
        if self.asleep and self.asks:
            return "waiting"
        if self.outcome is None:
            return _STATUS.get(self.state, "failed")
        if self.outcome.kind == "passed_on":
            return "queued"
        if self.outcome.kind == "failed":
            return "failed"
        if self.outcome.cancelled or (self.outcome.waits and self.cancelled):
            return "cancelled"
        return "waiting" if self.outcome.waits else "ended"

    def is_before(self, other: Workflow) -> bool:
        """Return whether its run comes before that of another workflow of the session."""
        return self.key != other.key and (self.since, self.key) < (other.since, other.key)

    @classmethod
    def of(cls, found: WorkflowStatus) -> Workflow:
        """Return what DBOS has found."""
        given, output = found.input, found.output
        extra = found.attributes or {}
        created = found.created_at or 0
        return cls(
            id=found.workflow_id,
            state=found.status,
            part=None if given is None else Part.from_json(given["args"][0]),
            outcome=None if output is None else Outcome.from_json(output),
            worker=found.executor_id,
            version=found.app_version,
            created=datetime.fromtimestamp(created / 1000, UTC),
            stops=extra.get("stop") is True,
            cancelled=extra.get("cancel") is True or found.status == "CANCELLED",
            discarded=extra.get("cancel") is True,
            since=extra.get("since") or created,
            wakes=extra.get("wakes") is True,
            asks=extra.get("asks") is True,
        )


@dataclass(frozen=True)
class Workflows:
    """The workflows of one queue.

    Args:
        client: Where they are.
        queue: The name of the queue.
        searchable: Whether attributes can be searched: in PostgreSQL.
    """

    client: DBOSClient
    queue: str
    searchable: bool

    async def enqueue(
        self, part: Part, *, version: str | None = None, delay: float | None = None
    ) -> bool:
        """Enqueue a part; return whether there was none of its ID."""
        from dbos import error as dbos_errors

        since = part.since
        if since is None and not self.searchable:  # SQLite, where DBOS counts whole seconds
            since = int(time.time() * 1000)
        about = {"since": since, "wakes": part.wakes, "asks": part.asks}
        attributes = {name: value for name, value in about.items() if value}
        options: dict[str, Any] = {
            "workflow_name": RUN,
            "queue_name": self.queue,
            "workflow_id": part.workflow,
            "workflow_id_reuse_policy": "reject",
            "queue_partition_key": part.partition,
            "authenticated_user": part.mark,
            "attributes": {"session": part.mark, **attributes},
        }
        if version is not None:
            options["app_version"] = version
        if delay is not None:
            options["delay_seconds"] = delay
        try:
            await self.client.enqueue_async(options, part.to_json())  # type: ignore[arg-type]
        except dbos_errors.DBOSWorkflowIDInUseError:
            return False
        return True

    async def get(self, ids: Sequence[str], *, whole: bool = True) -> list[Workflow]:
        """Return the workflows of these IDs that there are."""
        if not ids:
            return []
        return await self._list(whole=whole, workflow_ids=[*ids])

    async def latest(self, key: str) -> Workflow | None:
        """Return the last part of a run."""
        found: Workflow | None = None
        first = 0
        while True:
            ids = [workflow_id(key, number) for number in range(first, first + MANY)]
            parts = await self.get(ids)
            if parts:
                found = max(parts, key=lambda part: part.number)
            if len(parts) < MANY:
                return found
            first += MANY

    async def active_in(self, mark: str) -> list[Workflow]:
        """Return the workflows of a session that have not ended."""
        where = {"attributes": {"session": mark}} if self.searchable else {"user": mark}
        return await self._list(whole=False, status=[*ACTIVE], name=RUN, **where)

    async def running(self) -> list[Workflow]:
        """Return the workflows that a worker does, or did before it died."""
        return await self._list(whole=False, status="PENDING", queue_name=self.queue)

    async def of_worker(self, worker: str) -> list[Workflow]:
        """Return the workflows that a worker does."""
        return await self._list(whole=False, status="PENDING", executor_id=worker)

    async def of_versions(self, versions: Iterable[str]) -> list[Workflow]:
        """Return the workflows that wait for workers of these versions."""
        return await self._list(
            status=["ENQUEUED", "DELAYED"], queue_name=self.queue, app_version=[*versions]
        )

    async def find(self, **where: Any) -> list[Workflow]:
        """Return parts of runs, those that were enqueued last first."""
        return await self._list(name=RUN, sort_desc=True, **where)

    async def _list(self, *, whole: bool = True, **where: Any) -> list[Workflow]:
        given = {"load_input": whole, "load_output": whole, **where}
        found = await to_thread.run_sync(partial(self.client.list_workflows, **given))
        return [Workflow.of(one) for one in found if one.name == RUN]

    async def requeue(self, ids: Sequence[str]) -> None:
        """Let another worker continue these at once, whatever they wait for."""
        if ids:
            await self.client.resume_workflows_async([*ids], queue_name=self.queue)

    async def run_now(self, id: str) -> None:  # noqa: A002 - what it is
        """Let a workflow that waits for its turn ask again now."""
        await self.client.set_workflow_delay_async(id, delay_seconds=0)

    async def cancel(self, id: str) -> None:  # noqa: A002 - what it is
        """Cancel a workflow, unless it has ended."""
        # Also for a worker that takes it over or passes it on just now.
        await self.mark(id, cancel=True)
        await self.client.cancel_workflow_async(id)

    async def cancel_if_cancelled(self, id: str, next: str) -> None:  # noqa: A002 - what it is
        """Cancel the next part of a run if its last one was cancelled before it was enqueued."""
        found = await self.get([id], whole=False)
        if found and found[0].discarded:
            await self.cancel(next)

    async def mark(self, id: str, **marks: bool) -> None:  # noqa: A002 - what it is
        """Mark a workflow.

        ``cancel`` lets it count as cancelled, if its run waits for a person; ``stop`` asks its
        worker to stop it after its step.
        """
        update = partial(self.client.update_workflow_attributes, id, marks, merge=True)
        await to_thread.run_sync(update)

    async def delete(self, ids: Sequence[str]) -> None:
        """Remove workflows with all that DBOS has of them."""
        await self.client.delete_workflows_async([*ids])
