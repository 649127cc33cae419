"""A run of a queue, as any program sees it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from agent_brain.common.text import to_json_data
from agent_brain.errors import (
    QueuedRunError,
    QueueError,
    ResumeError,
    RunConflictError,
    RunNotFoundError,
)
from agent_brain.human_input import Approve, Decisions, Deny
from agent_brain.limits import StopReason
from agent_brain.memories.journal.base import Journal
from agent_brain.result import Result
from agent_brain.workers.event_log import RunEvent, RunLog, log_key, read_rows
from agent_brain.workers.part import Part, workflow_id
from agent_brain.workers.workflows import Status, Workflow, Workflows, unbegun

if TYPE_CHECKING:
    from agent_brain.workers.queue import RunQueue

SOONEST, LATEST = 0.05, 1.0  # seconds between looks for a result
SLOWEST = 0.3  # seconds between looks for events


class QueuedRun:
    """A run that was submitted to workers; made by :class:`QueueClient`.

    Attributes:
        id: The ID of the run.
        tenant: Whose it is.
        session: Its session.
        brain: The name of the brain.
    """

    def __init__(self, part: Part, queue: RunQueue, workflows: Workflows, journal: Journal) -> None:
        self.id = part.id
        self.tenant = part.tenant
        self.session = part.session
        self.brain = part.brain
        self._key = part.key
        self._run_id = part.run_id
        self._queue = queue
        self._workflows = workflows
        self._journal = journal

    def __repr__(self) -> str:
        return f"QueuedRun({self.id!r}, tenant={self.tenant!r}, session={self.session!r})"

    async def _latest(self) -> Workflow:
        found = await self._workflows.latest(self._key)
        if found is None:
            raise RunNotFoundError(f"Run {self.id!r} was deleted", id=self.id)
        return found

    async def status(self) -> Status:
        """Return where the run stands.

        ``"queued"``: it waits for a worker or its turn, or sleeps. ``"running"``: a worker does it.
        ``"waiting"``: it waits for a person. ``"ended"``: it has a result. ``"failed"``: it has
        raised an error. ``"cancelled"``: it was cancelled, or another run has begun in its session
        while it waited for a person.

        A run that is cancelled while a worker does it has this status before the worker has stored
        its last events; :meth:`events` may end without them.

        Raises:
            RunNotFoundError: It was deleted.
        """
        return (await self._latest()).status

    async def result(self) -> Result[Any]:
        """Wait until the run has ended or waits for a person, and return its result.

        A run that sleeps has not ended: workers continue it at its time.

        That of a run that was cancelled has what is known of it: nothing, if it had not begun.

        Raises:
            QueuedRunError: The run failed.
            RunNotFoundError: It was deleted.
        """
        return await self._result(asleep=False)

    async def _result(self, *, asleep: bool) -> Result[Any]:
        """As :meth:`result`; ``asleep`` returns the result of a run that sleeps too."""
        pause = SOONEST
        while (found := await self._latest()).status in ("queued", "running"):
            if asleep and found.asleep:
                break
            await anyio.sleep(pause)
            pause = min(pause * 1.5, LATEST)
        outcome = found.outcome
        if found.asleep:
            outcome = (await self._log()).outcome(found.number - 1)
        if outcome is None:
            outcome = (await self._log()).outcome(0 if found.part is None else found.part.first)
        if outcome is None and found.status == "cancelled":
            return unbegun(self._key, StopReason.CANCELLED)
        if outcome is None:
            raise QueuedRunError(
                f"Run {self.id!r} failed: the queue has given it up", id=self.id, type=found.state
            )
        if outcome.error is not None:
            kind, message = outcome.error["type"], outcome.error["message"]
            raise QueuedRunError(
                f"Run {self.id!r} failed: {kind}: {message}", id=self.id, type=kind
            )
        brain = self._queue.brains.get(self.brain)
        result = outcome.to_result(None if brain is None else brain.net)
        if found.status == "cancelled" and outcome.waits:
            return replace(result, stop_reason=StopReason.CANCELLED)
        return result

    async def _log(self) -> RunLog:
        return await RunLog(self._journal, self._log_key).open()

    async def last_event(self) -> int:
        """Return the number of the last event, 0 if there is none."""
        return (await self._log()).last

    @property
    def _log_key(self) -> str:
        return log_key(self.id, self.tenant)

    def events(self, after: int = 0) -> AsyncGenerator[RunEvent, None]:
        """Yield the events of the run: those that are there, then those to come.

        Ends when the run has ended or waits for a person. Any number of readers may read, at any
        time, on any machine; each gets each event once, in order. Where a worker has died, an event
        that says that the run continues names the events that are undone (``RunEvent.undone``):
        those of the interrupted step, which is repeated.

        Args:
            after: The number of the last event that the reader knows.

        Raises:
            RunNotFoundError: The run was deleted.
        """
        return self._events(after, asleep=False)

    async def _events(self, after: int, *, asleep: bool) -> AsyncGenerator[RunEvent, None]:
        """As :meth:`events`; ``asleep`` ends when the run sleeps, too."""
        read, over, pause, looked = 0, False, SOONEST, -LATEST
        while True:
            rows = await self._journal.rows(self._log_key, read)
            if rows:
                read = rows.seqs[-1]
                for event in read_rows(rows, after):
                    after = event.number
                    yield event
                pause = SOONEST
            elif over:
                return
            elif anyio.current_time() - looked >= LATEST:
                found = await self._latest()
                over = found.status not in ("queued", "running") or (asleep and found.asleep)
                looked = anyio.current_time()  # now what was stored before it ended
            else:
                await anyio.sleep(pause)
                pause = min(pause * 1.5, SLOWEST)

    async def stop(self) -> None:
        """Stop the run after its current step; :meth:`resume` continues it.

        Does nothing if it has ended, or waits for a person. Takes about a second, and the rest of
        the step.

        Raises:
            RunNotFoundError: The run was deleted.
        """
        if await self.status() != "waiting":
            await self._ask(partial(self._workflows.mark, stop=True))

    async def cancel(self) -> None:
        """Cancel the run: at once if no worker does it yet, else within about a second.

        Does nothing if it has ended. A run that waits for a person is cancelled at once.
        :meth:`resume` continues it.

        Raises:
            RunNotFoundError: The run was deleted.
        """
        await self._ask(self._workflows.cancel)
        found = await self._latest()
        if found.status == "waiting":
            await self._workflows.mark(found.id, cancel=True)

    async def _ask(self, order: Any) -> None:
        asked = ""
        while (found := await self._latest()).active and found.id != asked:
            asked = found.id
            await order(asked)  # and of the next part, if it was enqueued meanwhile

    async def resume(
        self,
        *,
        approve: Approve | None = None,
        deny: Deny | None = None,
        edit: Mapping[str, Mapping[str, Any]] | None = None,
        input: object = None,  # noqa: A002 - what it is
    ) -> None:
        """Let workers continue the run, which waits for a person, or has ended early.

        A run that sleeps is continued now.

        Args:
            approve: As for :meth:`Brain.resume`.
            deny: As for :meth:`Brain.resume`.
            edit: As for :meth:`Brain.resume`.
            input: As for :meth:`Brain.resume`.

        Raises:
            ResumeError: The decisions do not match what the run waits for, or another run has
                begun in the session.
            RunConflictError: The run is in progress, or somebody else has decided just now.
            RunNotFoundError: The run was deleted.
        """
        found = await self._latest()
        given = {"approve": approve, "deny": deny, "edit": edit, "input": input}
        if found.asleep and all(value is None for value in given.values()):
            await self._workflows.run_now(found.id)
            return
        if (found.active and found.status != "waiting") or found.part is None:
            raise RunConflictError(
                f"Run {self.id!r} is {found.status}: it can be continued when it waits for a "
                "person, or has ended",
                id=self.id,
            )
        await self._continue(found.part, found.version, given)
        if found.asleep:  # it finds that another part continues the run
            await self._workflows.run_now(found.id)

    async def _continue(self, last: Part, version: str | None, given: Mapping[str, Any]) -> None:
        """Enqueue the part after ``last``, for workers of a version, with what was decided."""
        decisions = {
            name: _plain(name, value) for name, value in given.items() if value is not None
        }
        begun = await self._check(Decisions(**decisions))
        following = last.resumed(begun=begun, decisions=decisions)
        if not await self._workflows.enqueue(following, version=version if begun else None):
            raise RunConflictError(
                f"Run {self.id!r} was continued by somebody else just now", id=self.id
            )

    async def _check(self, decisions: Decisions) -> bool:
        """Check that decisions fit what the run waits for; return whether it has begun."""
        brain = self._queue.brains.get(self.brain)
        if brain is None:
            raise QueueError(f"The queue has no brain {self.brain!r}")
        async with brain.memory_for(
            self.session, tenant=self.tenant, journal=self._journal
        ) as memory:
            await memory.open()
            control = memory.control.model_copy(deep=True)
            if control.run_id != self._run_id:
                if await self._journal.last(self._log_key):
                    raise ResumeError(
                        f"Another run has begun in session {self.session!r}: run {self.id!r} "
                        "cannot be continued"
                    )
                return False
            own = {tool.name: tool for tool in brain.net.tools}
            decisions.write(control, {**own, **memory.available_tools})
            return True

    async def delete(self) -> None:
        """Remove the run from the queue, with its events. Its session stays.

        Raises:
            RunConflictError: The run has not ended, or waits for a person.
            RunNotFoundError: It was deleted.
        """
        found = await self._latest()
        if found.active or found.status == "waiting":
            raise RunConflictError(
                f"Run {self.id!r} is {found.status}: cancel it first", id=self.id
            )
        await self._journal.delete(self._log_key)
        ids = [workflow_id(self._key, number) for number in range(found.number + 1)]
        await self._workflows.delete(ids)


def _plain(name: str, given: Any) -> Any:
    """Return a decision in JSON; IDs of calls may come from any iterable."""
    several = isinstance(given, Iterable) and not isinstance(given, str | Mapping)
    return to_json_data([*given] if several and name != "input" else given)
