"""A worker: a process that does the runs of a queue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread
from anyio.from_thread import BlockingPortal

from agent_brain.common.secrets import get_logger
from agent_brain.errors import QueueError, WorkerLostError
from agent_brain.limits import StopReason
from agent_brain.memories.errors import (
    JournalDamagedError,
    JournalError,
    LeaseHeldError,
    LeaseLostError,
)
from agent_brain.memories.journal.base import Journal
from agent_brain.workers.liveness import Liveness
from agent_brain.workers.part import LONGEST, Part
from agent_brain.workers.performing import Performance
from agent_brain.workers.workflows import Outcome, Workflow, Workflows, unbegun

if TYPE_CHECKING:
    from agent_brain.workers.queue import RunQueue

log = get_logger(__name__)
ATTEMPTS = 5  # at a part whose journal cannot be used
LOOK_EVERY = 1.0  # seconds between looks at what is asked of the runs


@dataclass(eq=False, repr=False)
class Worker:
    """Does the runs of a queue until it is stopped.

    Args:
        queue: The queue.
        workflows: Its workflows.
        journal: Where the sessions and the events are.
        liveness: The sign of life of this worker.
        name: The name of this worker.
    """

    _queue: RunQueue
    _workflows: Workflows
    _journal: Journal
    _liveness: Liveness
    _name: str
    _portal: BlockingPortal | None = None
    _active: dict[str, Performance] = field(default_factory=dict)
    _finished: set[str] = field(
        default_factory=set
    )  # sessions, by their marks, whose next run may begin
    _stopping: bool = False

    async def run(self, stop: anyio.Event, on_ready: Callable[[str], object]) -> None:
        """Do runs until ``stop`` is set; then hand back those under way.

        Args:
            stop: Ends the work.
            on_ready: Called with the name of the worker when it takes runs.

        Raises:
            WorkerLostError: Others have taken this worker for dead.
        """
        from agent_brain.workers.launch import launch

        await self._liveness.begin()
        try:
            async with BlockingPortal() as self._portal:
                await to_thread.run_sync(
                    launch, self._queue, self, self._workflows.client, self._name
                )
                try:
                    on_ready(self._name)
                    async with anyio.create_task_group() as group:
                        group.start_soon(self._watch)
                        await stop.wait()
                        group.cancel_scope.cancel()
                finally:
                    with anyio.CancelScope(shield=True):
                        await self._shut_down(self._queue.grace if stop.is_set() else 0.0)
        finally:
            with anyio.CancelScope(shield=True):
                await self._liveness.end()

    async def _shut_down(self, grace: float) -> None:
        """Take no more runs; end those under way after their step, or after ``grace`` seconds."""
        from agent_brain.workers.launch import end

        self._stopping = True
        for performance in [*self._active.values()]:
            performance.hand_back()
        async with anyio.create_task_group() as group:
            group.start_soon(self._cancel_later, grace)
            await to_thread.run_sync(end, grace)
            group.cancel_scope.cancel()

    async def _cancel_later(self, grace: float) -> None:
        await anyio.sleep(grace)
        while True:
            for performance in [*self._active.values()]:
                performance.drop()
            await anyio.sleep(LOOK_EVERY)

    # What DBOS calls, in an event loop of its own

    async def run_workflow(self, data: Any) -> Any:
        """Do a part in the event loop of the worker; return its outcome as JSON."""
        portal = self._portal
        try:
            assert portal is not None
            done: Future[Any] = portal.start_task_soon(self._perform, Part.from_json(data))
        except RuntimeError:  # the worker has ended: another one does it
            raise asyncio.CancelledError from None
        outcome = await asyncio.wrap_future(done)
        if outcome is None:  # nothing is recorded for it
            raise asyncio.CancelledError
        return outcome

    async def run_scheduled(self, due: str, data: Any) -> None:
        """Enqueue the run of a schedule."""
        part = Part.from_json(data)
        name = f"{part.id}@{datetime.fromisoformat(str(due)).isoformat()}"
        session = part.session or name
        await self._workflows.enqueue(Part(name, part.tenant, session, part.brain, part.task))

    # Parts

    async def _perform(self, part: Part) -> dict[str, Any] | None:
        """Do a part; return its outcome as JSON, or None if it is another worker's."""
        try:
            return (await self._take_turn(part)).to_json()
        except LeaseLostError:
            log.info("Run %r was taken over by another worker", part.id)
            return None
        except Exception as error:
            log.exception("Run %r cannot be done", part.id)
            return Outcome.failed(error).to_json()
        finally:
            self._finished.add(part.mark)

    async def _take_turn(self, part: Part) -> Outcome:
        """Do a part if it is its turn in its session."""
        active = await self._workflows.active_in(part.mark)
        own = next((one for one in active if one.id == part.workflow), None)
        if own is None or own.cancelled:
            return Outcome.of(unbegun(part.key, StopReason.CANCELLED))
        if part.wakes and await self._workflows.get([part.following().workflow], whole=False):
            return Outcome("passed_on")  # a person has decided while it slept
        if any(other.is_before(own) and not other.asleep for other in active):
            return await self._pass_on(part, own, delay=part.seconds_to_wait, turns=part.turns + 1)
        if self._stopping:
            return await self._pass_on(part, own)
        if own.stops:
            return Outcome.of(unbegun(part.key, StopReason.STOPPED))
        brain = self._queue.brains.get(part.brain)
        if brain is None:
            return Outcome.failed(QueueError(f"The workers have no brain {part.brain!r}"))
        for attempt in range(1, ATTEMPTS + 1):
            performance = Performance(
                part,
                brain,
                self._journal,
                deps=self._queue.deps,
                lease=self._queue.dead_after,
                on_discard=partial(self._discard, part),
                user=self._queue.user,
            )
            try:
                return await self._do(performance, own)
            except (LeaseLostError, JournalDamagedError):
                raise
            except JournalError as error:
                if attempt == ATTEMPTS:
                    raise
                log.warning("Run %r is tried again: %s", part.id, error)
                await anyio.sleep(2**attempt)
        raise AssertionError

    async def _discard(self, part: Part, run_id: str) -> None:
        """Let the run that waits, or sleeps, in the session of a part count as cancelled."""
        copy = Part.of_copy(run_id, tenant=part.tenant, session=part.session, brain=part.brain)
        for key in (run_id, copy.key):
            found = await self._workflows.latest(key)
            if found is None or found.part is None or found.part.mark != part.mark:
                continue
            if found.wakes and found.active:  # it sleeps, or was woken just now
                await self._workflows.cancel(found.id)
            elif found.status == "waiting":
                await self._workflows.mark(found.id, cancel=True)

    async def _do(self, performance: Performance, own: Workflow) -> Outcome:
        part = performance.part
        self._active[part.workflow] = performance
        if self._stopping:
            performance.hand_back()
        try:
            outcome = await performance.perform()
        except LeaseHeldError as held:
            delay = min(held.seconds, LONGEST) + 0.1
            return await self._pass_on(part, own, delay=delay, after=performance)
        except LeaseLostError:
            now = await self._workflows.get([part.workflow], whole=False)
            if not now or now[0].state != "PENDING" or now[0].worker != self._name:
                raise
            return await self._pass_on(part, own, delay=LOOK_EVERY, after=performance)
        finally:
            if self._active.get(part.workflow) is performance:
                del self._active[part.workflow]
        if outcome.kind == "passed_on":
            return await self._pass_on(part, own, after=performance)
        if (wake_at := outcome.wake_at) is not None:
            delay = max((wake_at - datetime.now(UTC)).total_seconds(), 0)
            following = part.woken(own.since, asks=outcome.waits)
            await self._workflows.enqueue(following, version=own.version, delay=delay)
            await self._workflows.cancel_if_cancelled(own.id, following.workflow)
            return outcome if outcome.waits else Outcome("passed_on")
        return outcome

    async def _pass_on(
        self,
        part: Part,
        own: Workflow,
        *,
        delay: float | None = None,
        turns: int = 0,
        after: Performance | None = None,
    ) -> Outcome:
        """Enqueue the next part of a run; one that was begun stays with workers of its version."""
        changes: dict[str, Any] = {"since": own.since, "turns": turns, "asks": False}
        if after is not None and after.begun:
            changes["begun"] = True
        if after is not None and after.started:
            changes.update(resumes=False, decisions=None)
        following = part.following(**changes)
        version = own.version if following.begun else None
        await self._workflows.enqueue(following, version=version, delay=delay)
        await self._workflows.cancel_if_cancelled(own.id, following.workflow)
        return Outcome("passed_on")

    # What is looked at regularly

    async def _watch(self) -> None:
        while True:
            await anyio.sleep(LOOK_EVERY)
            try:
                await self._liveness.confirm()
                await self._look_at_runs()
                await self._call_the_next()
                await self._bury_the_dead()
                await self._adopt_older()
            except WorkerLostError:
                raise
            except Exception as error:  # the next look tries again
                log.warning("The worker cannot look at its queue: %s", error)

    async def _look_at_runs(self) -> None:
        """Cancel and stop the runs that are to be."""
        for found in await self._workflows.get([*self._active], whole=False):
            performance = self._active.get(found.id)
            if performance is None:
                continue
            if found.cancelled:
                performance.cancel()
            elif found.worker != self._name or found.state != "PENDING":
                performance.drop()
            elif found.stops:
                performance.stop()

    async def _call_the_next(self) -> None:
        """Let the next run of each session that has ended one begin at once."""
        finished, self._finished = self._finished, set()
        for mark in finished:
            active = [f for f in await self._workflows.active_in(mark) if not f.asleep]
            first = min(active, key=lambda one: (one.since, one.key), default=None)
            if first is not None and first.state == "DELAYED":
                await self._workflows.run_now(first.id)

    async def _bury_the_dead(self) -> None:
        """Let the runs of workers that have died be continued."""
        for worker in {found.worker for found in await self._workflows.running()}:
            if worker and worker != self._name:
                if await self._liveness.replace_dead(worker, self._take_over):
                    log.warning("Worker %s has died; its runs are continued", worker)

    async def _take_over(self, worker: str) -> None:
        await self._workflows.requeue([f.id for f in await self._workflows.of_worker(worker)])

    async def _adopt_older(self) -> None:
        """Continue runs of older versions, where the queue says that it can."""
        if not self._queue.continues:
            return
        for found in await self._workflows.of_versions(self._queue.continues):
            if found.part is not None:
                following = found.part.following(since=found.since, begun=True)
                await self._workflows.enqueue(following, version=self._queue.version)
                await self._workflows.client.cancel_workflow_async(found.id)
