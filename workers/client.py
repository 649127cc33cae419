"""Submit runs to workers, and find them again."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from typing import TYPE_CHECKING, Any, get_args

from anyio import to_thread

from agent_brain.common.ids import new_id
from agent_brain.errors import QueueError, ResumeError, RunConflictError, RunNotFoundError
from agent_brain.memories.base import Memory
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.message import Message
from agent_brain.workers.handle import QueuedRun
from agent_brain.workers.part import (
    Part,
    checked_name,
    mark,
    read_run_key,
    run_key,
    task_data,
    workflow_id,
)
from agent_brain.workers.workflows import Status, Workflow, Workflows

if TYPE_CHECKING:
    from agent_brain.workers.queue import RunQueue

PAGE = 100


@dataclass(frozen=True, slots=True)
class RunInfo:
    """A run of a queue, as a list shows it.

    Attributes:
        id: The ID.
        tenant: Whose it is.
        session: Its session.
        brain: The name of the brain.
        status: Where it stands; see :meth:`QueuedRun.status`.
        submitted: When it was submitted, or continued last (aware, UTC).
        version: The version of the program that does it; None before it begins.
        worker: The worker that does it, or did it last.
    """

    id: str
    tenant: str | None
    session: str
    brain: str
    status: Status
    submitted: datetime
    version: str | None
    worker: str | None


class QueueClient:
    """Submits runs to the workers of a queue; made by :meth:`RunQueue.client`."""

    def __init__(self, queue: RunQueue, workflows: Workflows, journal: Journal) -> None:
        self._queue = queue
        self._workflows = workflows
        self._journal = journal

    async def submit(
        self,
        brain: str,
        task: str | Message,
        *,
        session: str | None = None,
        tenant: str | None = None,
        id: str | None = None,  # noqa: A002 - what it is
    ) -> QueuedRun:
        """Submit a run; a worker begins it when it is its turn.

        Runs of one session are done one after the other, in the order in which they were submitted.

        Args:
            brain: The name of the brain.
            task: What is to be done.
            session: Its session; None for a new one, named as the run.
            tenant: Whose it is.
            id: Identifies the run among those of the tenant: when it is submitted again, nothing
                happens, and the run of that ID is returned. None for a new one.

        Raises:
            QueueError: There is no such brain, or a name or the task is wrong.
            RunConflictError: A run of that ID has another task, brain or session.
        """
        self._queue.check_brain(brain)
        name = checked_name("id", new_id("job") if id is None else id)
        if tenant is not None:
            checked_name("tenant", tenant)
        place = name if session is None else checked_name("session", session)
        part = Part(name, tenant, place, brain, task_data(task))
        if not await self._workflows.enqueue(part):
            await self._check_same(part)
        return self._handle(part)

    async def _check_same(self, part: Part) -> None:
        found = await self._workflows.get([part.workflow])
        if found and found[0].part is not None and not part.is_same_task(found[0].part):
            raise RunConflictError(
                f"Run {part.id!r} was submitted before, with another task, brain or session: "
                "submit this one with another ID",
                id=part.id,
            )

    async def get(
        self,
        id: str,  # noqa: A002 - what it is
        *,
        tenant: str | None = None,
    ) -> QueuedRun:
        """Return a run that was submitted.

        Args:
            id: Its ID.
            tenant: Whose it is.

        Raises:
            RunNotFoundError: There is none.
        """
        key = run_key(checked_name("id", id), tenant)
        found = await self._workflows.get([workflow_id(key, 0)])
        if not found or found[0].part is None:
            raise RunNotFoundError(f"There is no run {id!r}", id=id)
        return self._handle(found[0].part)

    async def _resume_session(
        self, brain: str, memory: Memory, decisions: Mapping[str, Any]
    ) -> tuple[QueuedRun, int]:
        """Continue the run of a session; return it, and the number of its last event before.

        A session that is a copy of another one has that one's run: a run of its own continues it.

        Args:
            brain: The name of the brain.
            memory: The memory of the session, which is open.
            decisions: As for :meth:`Brain.resume`.

        Raises:
            ResumeError: There is no run, or the decisions do not match what it waits for.
            RunConflictError: The run is in progress, or somebody else has decided just now.
        """
        run_id = memory.control.run_id
        if run_id is None or memory.session is None:
            raise ResumeError("There is no run to resume in this session")
        original = await self._workflows.latest(run_id)
        before = Part.of_copy(run_id, tenant=memory.tenant, session=memory.session, brain=brain)
        found = original
        if original is None or original.part is None or original.part.mark != before.mark:
            found = await self._workflows.latest(before.key)
        if found is not None and found.part is not None:
            run = self._handle(found.part)
            last = await run.last_event()
            await run.resume(**decisions)
            return run, last
        run = self._handle(before)
        version = None if original is None else original.version
        await run._continue(before, version, decisions)
        return run, 0

    async def _is_active(self, run_id: str, session: str, tenant: str | None) -> bool:
        """Return whether workers do a run of a session, or will do it; not whether it sleeps."""
        active = await self._workflows.active_in(mark(session, tenant))
        return any(part.key == run_id and not part.asleep for part in active)

    def _handle(self, part: Part) -> QueuedRun:
        return QueuedRun(part, self._queue, self._workflows, self._journal)

    async def list(
        self,
        *,
        tenant: str | None = None,
        session: str | None = None,
        status: Status | None = None,
        limit: int = 100,
    ) -> list[RunInfo]:
        """Return runs, those that were submitted or continued last first.

        Args:
            tenant: Only those of this tenant; None for all.
            session: Only those of this session, which is of ``tenant``.
            status: Only those that stand there.
            limit: How many at most.

        Raises:
            QueueError: There is no such status, or ``limit`` is not a whole number from 0.
        """
        if status is not None and status not in get_args(Status):
            raise QueueError(
                f"status={status!r}: give one of {', '.join(map(repr, get_args(Status)))}"
            )
        if type(limit) is not int or limit < 0:
            raise QueueError(f"limit={limit!r}: give a whole number from 0")
        where = {} if session is None else {"user": mark(session, tenant)}
        runs, found = dict[str, RunInfo](), list[RunInfo]()
        for offset in count(0, PAGE):
            page = await self._workflows.find(**where, limit=PAGE, offset=offset)
            for workflow in page:  # the last part of each run comes first
                runs.setdefault(workflow.key, _info(workflow))
            found = [
                info
                for info in runs.values()
                if tenant in (None, info.tenant) and status in (None, info.status)
            ]
            if len(found) >= limit or len(page) < PAGE:
                break
        return found[:limit]

    async def delete_ended(self, *, tenant: str) -> int:
        """Remove the runs of a tenant that have ended, with their tasks, answers and events.

        Nothing of them stays in the file of a queue in SQLite, which is rewritten. In PostgreSQL no
        client sees them any more. Their sessions stay.

        Args:
            tenant: Whose.

        Returns:
            How many there were.

        Raises:
            QueueError: Others use the file all the time: call it again.
        """
        from agent_brain.workers.launch import rewrite_file

        removed = 0
        for info in await self.list(tenant=tenant, limit=sys.maxsize):
            with suppress(RunConflictError, RunNotFoundError):  # it is active, or was deleted
                await (await self.get(info.id, tenant=tenant)).delete()
                removed += 1
        await to_thread.run_sync(rewrite_file, self._queue.url)
        return removed


def _info(workflow: Workflow) -> RunInfo:
    id_, tenant = read_run_key(workflow.key)
    part = workflow.part
    return RunInfo(
        id=id_,
        tenant=tenant,
        session="" if part is None else part.session,
        brain="" if part is None else part.brain,
        status=workflow.status,
        submitted=workflow.created,
        version=workflow.version,
        worker=workflow.worker,
    )
