"""A part of a run, as a worker does it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, cast

import anyio

from agent_brain.brain import Brain
from agent_brain.common.aio import CLEANUP_SECONDS
from agent_brain.errors import ResumeError
from agent_brain.limits import StopReason
from agent_brain.memories.base import Memory
from agent_brain.memories.control import Control
from agent_brain.memories.errors import JournalDamagedError, JournalError, LeaseLostError
from agent_brain.memories.journal.base import LEASE, Journal
from agent_brain.memories.journal.entry import Entry
from agent_brain.memories.journal.lease import Lease
from agent_brain.result import Result
from agent_brain.run import Run
from agent_brain.serving.users import UserLike, user_of
from agent_brain.states.events import (
    AgentEvent,
    Position,
    RunFailed,
    RunFinished,
    StateEntered,
)
from agent_brain.workers.event_log import RunLog, kept_calls, log_key, missing_exit, undone
from agent_brain.workers.part import Part
from agent_brain.workers.workflows import Outcome, unbegun


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


@Journal.register
class FlushingJournal:
    """Another journal, which is used for everything.

    Attributes:
        closed: Whether it stores nothing any more, as if the process had ended.

    Args:
        inner: The other journal. Its creator closes it.
        flush: Called before an entry that completes a step is stored.
        lease: How long leases last, in seconds.
    """

    def __init__(
        self, inner: Journal, flush: Callable[[], Awaitable[None]], *, lease: float
    ) -> None:
        self._lease = lease
        self.closed = False
        self._inner = inner
        self._flush = flush

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def append(self, session: str, entries: Sequence[Entry], **options: Any) -> int:
        """See :meth:`Journal.append`."""
        if any(entry.kind == "step" for entry in entries):
            await self._flush()
        if self.closed:  # perhaps as another flush, for which this one waited, has failed
            raise LeaseLostError("Another worker continues the run", session=session)
        return await self._inner.append(session, entries, **options)

    async def acquire(self, session: str, *, wait: float = 0) -> Lease:
        """See :meth:`Journal.acquire`."""
        return await self._inner.acquire(session, seconds=self._lease, wait=wait)

    async def aclose(self) -> None:
        """Do nothing: who made the other journal closes it."""

    def same_as(self, other: Journal) -> bool:
        """See :meth:`Journal.same_as`."""
        return self._inner.same_as(getattr(other, "_inner", other))


FLUSH_EVERY = 0.05  # seconds
MAX_STARTS = 10  # of a run by workers that end, without a step between them
CUT = (StopReason.STOPPED, StopReason.CANCELLED)
REPEATED = (*CUT, StopReason.FAILED, StopReason.TIMEOUT)


@dataclass(eq=False, repr=False)
class Performance:
    """A part of a run in progress.

    Attributes:
        part: The part.
        brain: The brain.
        journal: Where the session and the events are.
        deps: What the run needs, as for :meth:`Brain.run`.
        lease: How long the lease of the session lasts if the process ends, in seconds.
        on_discard: Called with the ID of a run that waits for a person in the session, before
            this one replaces it.
        user: What is known about the tenants, as for :class:`RunQueue`.
        handed_back: Whether it stops so that another worker continues it.
        started: Whether this worker has begun it.
    """

    part: Part
    brain: Brain[Any]
    journal: Journal
    _: KW_ONLY
    deps: object = None
    lease: float = LEASE
    on_discard: Callable[[str], Awaitable[None]] | None = None
    user: UserLike | None = None
    handed_back: bool = field(default=False, init=False)
    started: bool = field(default=False, init=False)
    _dropped: bool = field(default=False, init=False)
    _stopping: bool = field(default=False, init=False)
    _cancelled: bool = field(default=False, init=False)
    _run: Run[Any] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._log = RunLog(self.journal, log_key(self.part.id, self.part.tenant))
        self._writing = anyio.Lock()
        self._journal = FlushingJournal(self.journal, self._flush, lease=self.lease)

    @property
    def begun(self) -> bool:
        """Whether a worker has begun the run."""
        return self.started or self._log.last > 0

    def stop(self) -> None:
        """Stop the run after its step."""
        self._stopping = True
        if self._run is not None:
            self._run.stop()

    def hand_back(self) -> None:
        """Stop the run after its step; another worker continues it."""
        self.handed_back = True
        self.stop()

    def drop(self) -> None:
        """End the run as if the process had ended: another worker continues it."""
        self._dropped = self._journal.closed = True
        self.cancel()

    def cancel(self) -> None:
        """Cancel the run at once."""
        self._cancelled = True
        if self._run is not None:
            self._run.cancel()

    async def perform(self) -> Outcome:
        """Run the part; return what it came to.

        Raises:
            LeaseHeldError: Another process uses the session.
            LeaseLostError: Another worker has continued the run.
            JournalError: The journal cannot be used at the moment.
        """
        part = self.part
        await self._log.open()
        known = self._log.outcome(part.first)
        if known is not None:  # the process ended before the queue knew, or passed it on twice
            return known
        async with AsyncExitStack() as stack:
            journal = cast("Journal", self._journal)
            memory = self.brain.memory_for(part.session, tenant=part.tenant, journal=journal)
            stack.push_async_callback(_close, memory)
            if memory.leasable:
                await memory.acquire()
            await memory.open()
            if self.user is not None and part.tenant is not None:
                user = user_of(self.user, self.journal, part.tenant)
                await stack.enter_async_context(user)
                memory = user.over(memory, close=False, learn=False)
            outcome = await self._continue(memory)
        if outcome.kind != "passed_on":
            await self._log.end(part.number, outcome)
        return outcome

    async def _continue(self, memory: Memory) -> Outcome:
        """Begin or continue the run in the memory of its session."""
        part, control, log = self.part, memory.control, self._log
        ended = control.status not in ("running", "waiting")
        was_deleted = ended and not (log.last or log.starts)  # and its ID is used again
        mine = control.run_id == part.run_id and not was_deleted
        if part.wakes and not mine:  # another run has begun while it slept
            return Outcome.of(unbegun(part.key, StopReason.CANCELLED))
        if not mine and (log.last or part.resumes):
            return Outcome.failed(
                ResumeError(
                    f"Another run has begun in session {part.session!r}: run {part.id!r} cannot "
                    "be continued"
                )
            )
        if log.starts >= MAX_STARTS:
            return Outcome.failed(
                ResumeError(
                    f"{log.starts} workers have ended while they did one step of run "
                    f"{part.id!r}, in state {control.state!r}: it is not tried again. Find out "
                    "what ends them, then resume it"
                )
            )
        await log.begin(part.number)
        if not mine:
            if self.on_discard is not None and control.run_id and control.status == "waiting":
                await self.on_discard(control.run_id)
            log.start(part.number, [])
            run = self.brain.over(memory).stream(part.goal(), deps=self.deps)
            run.run_id = part.key
            return await self._drive(run, memory)
        decisions: dict[str, Any] = {}
        taken_in = max(log.started, default=-1) >= part.first
        if part.resumes and not taken_in and control.status != "running":
            log.start(part.number, [])
            decisions = dict(part.decisions or {})
        else:
            self._repair(control)
            if (result := await self._unreported(memory)) is not None:
                return Outcome.of(result)
        run = self.brain.over(memory).stream_resume(**decisions, deps=self.deps)
        return await self._drive(run, memory)

    def _repair(self, control: Control) -> None:
        """Bring the events of an interrupted run to where the run stands."""
        log = self._log
        ended = missing_exit(log.counting, control)
        log.start(self.part.number, undone(log.counting) if ended is None else [])
        if ended is not None:
            log.add(ended)

    async def _unreported(self, memory: Memory) -> Result[Any] | None:
        """Return the result of a run that had ended before the queue knew."""
        control = memory.control
        if control.status not in ("ended", "waiting"):
            return None
        if StopReason(control.stop_reason or StopReason.DONE) in REPEATED:
            return None
        result = await self.brain.over(memory).stored_result()
        if result is not None:
            at, reason = Position(self.part.run_id, result.steps), result.stop_reason
            self._log.add(RunFinished(reason, result.answer, result.output, result.usage, at=at))
        return result

    # Driving

    async def _drive(self, run: Run[Any], memory: Memory) -> Outcome:
        """Run to the end, storing the events."""
        self._run, self.started = run, True
        if self._cancelled:
            run.cancel()
        elif self._stopping:
            run.stop()
        end: AgentEvent | None = None
        error: Exception | None = None
        try:
            with one_error():
                async with anyio.create_task_group() as group:
                    group.start_soon(self._flush_regularly)
                    end, error = await self._store_events(run, memory)
                    group.cancel_scope.cancel()
        finally:
            self._run = None
        if self._dropped:
            raise LeaseLostError("Another worker has the run", session=self.part.session)
        if isinstance(error, JournalError) and not isinstance(error, JournalDamagedError):
            raise error
        if self.handed_back and error is None and run.result.stop_reason in CUT:
            await self._flush()
            return Outcome("passed_on")
        if end is not None:
            self._log.add(end)
        return Outcome.of(run.result) if error is None else Outcome.failed(error)

    async def _store_events(
        self, run: Run[Any], memory: Memory
    ) -> tuple[AgentEvent | None, Exception | None]:
        """Store all events but the last; return that, and the error of a run that failed."""
        pending = {key: call for key, call in memory.control.pending.items() if call.result}
        end: AgentEvent | None = None
        try:
            async with run:
                async for event in run:
                    if isinstance(event, RunFinished | RunFailed):
                        end = event
                        continue
                    self._log.add(event)
                    if pending and type(event) is StateEntered:
                        for kept in kept_calls(self._log.counting, pending, event.at):
                            self._log.add(kept)
                        pending = {}
        except Exception as error:
            return end, error
        return end, None

    async def _flush(self) -> None:
        with anyio.CancelScope(shield=True):
            async with self._writing:
                if self._journal.closed:
                    return
                try:
                    await self._log.flush()
                except BaseException:  # the run must not get ahead of its events
                    self._journal.closed = True
                    raise

    async def _flush_regularly(self) -> None:
        while True:
            await anyio.sleep(FLUSH_EVERY)
            await self._flush()


async def _close(memory: Memory) -> None:
    with anyio.move_on_after(CLEANUP_SECONDS, shield=True):
        with suppress(LeaseLostError):  # what has closed the journal is raised already
            await memory.release()
        await memory.aclose()
