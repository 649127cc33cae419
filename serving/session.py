"""One session of a server: a brain over a memory, with one run at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack

import anyio

from agent_brain.brain import Brain
from agent_brain.common.secrets import get_logger
from agent_brain.errors import BrainUseError, SessionBusyError
from agent_brain.limits import StopReason
from agent_brain.memories.base import Memory
from agent_brain.memories.errors import JournalError
from agent_brain.memories.message import Message, as_message
from agent_brain.memories.store.expiry import utc_now
from agent_brain.memories.store.filters import forgettable
from agent_brain.memories.store.session import Session as StoredSession
from agent_brain.memories.stored import StoredMemory
from agent_brain.memories.wrapper import WrappingMemory, offers
from agent_brain.options import ResumeOptions, RunOptions
from agent_brain.run import Run
from agent_brain.serving.catalog import SessionInfo, nobody_runs
from agent_brain.serving.event_log import EventLog, LogReader
from agent_brain.serving.pending import Pending, pending_in
from agent_brain.serving.session_run import Choose, SessionRun, WhenBusy

if TYPE_CHECKING:
    from agent_brain.serving.sessions import Sessions
    from agent_brain.states.usage import Usage

SOONEST, LATEST = 0.5, 3.0  # seconds between looks for what other processes write
logger = get_logger(__name__)
Status: TypeAlias = Literal["idle", "running", "waiting", "interrupted"]
BUSY = "The session is answering another message: send yours again when the answer is complete"


@dataclass(eq=False, repr=False)
class Session:
    """A session while somebody uses it (:meth:`Sessions.use`).

    Attributes:
        id: The ID of the session.
        owner: The tenant of the session in the journal: the user, or the tenant and the user.
        brain: Its brain. Start runs with the methods of the session, which number their events.
        log: Its events.
        run: The current run; None between runs.
        unread: Messages that were sent to a run and not recorded; the next run gets them.
        deleted: Whether it was deleted: no run begins any more.
        stored: Whether it is in the list of sessions; temporary ones are not.
        elsewhere: Whether its run is in another process, as of the last look.
        info: Its title, and when it was last changed; None before its first run.
        noting: Held while ``info`` is changed in the list.
        using: What it uses together with others until it is closed.
    """

    id: str
    owner: str | None
    brain: Brain[Any]
    _sessions: Sessions
    using: AsyncExitStack
    _: KW_ONLY
    stored: bool = True
    info: SessionInfo | None = None
    log: EventLog = field(default_factory=EventLog)
    run: SessionRun | None = None
    unread: list[Message] = field(default_factory=list)
    deleted: bool = False
    elsewhere: bool = False
    noting: anyio.Lock = field(default_factory=anyio.Lock)
    _following: bool = False
    # No lock: another task may release it.
    _free: anyio.Semaphore = field(default_factory=lambda: anyio.Semaphore(1, max_value=1))
    # Held while the session is read again between runs.
    _reading: anyio.Lock = field(default_factory=anyio.Lock)

    @property
    def memory(self) -> Memory:
        """The memory of the session."""
        return self.brain.memory

    @property
    def kept(self) -> StoredSession | None:
        """Where its steps are kept; None without a journal, and for a session that many share."""
        return next(_stored_sessions(self.memory), None)

    @property
    def usage(self) -> Usage:
        """What the models of the session have used since the server was started."""
        return self._sessions.ledger.usage(session=self.id, user=self.owner)

    @property
    def pending(self) -> Pending | None:
        """What a waiting run waits for; None if none waits."""
        return None if self.run is not None else pending_in(self.memory)

    @property
    def status(self) -> Status:
        """What the session does: ``interrupted`` if a run in it ended with its process."""
        if self.run is not None or self.elsewhere:
            return "running"
        status = self.memory.control.status
        if status == "waiting":
            return "waiting"
        return "interrupted" if status == "running" else "idle"

    @property
    def resumable(self) -> bool:
        """Whether :meth:`start_resume` would continue a run: it waits, or has ended early."""
        return self.run is None and not self.elsewhere and self.memory.control.resumable

    @property
    def failed(self) -> bool:
        """Whether the last run failed."""
        control = self.memory.control
        return control.status == "ended" and control.stop_reason == StopReason.FAILED

    def with_status(self, info: SessionInfo) -> SessionInfo:
        """Return a session in a list as this one is now."""
        return replace(info, status=self.status, failed=self.failed, resumable=self.resumable)

    def stream(
        self,
        task: str | Message,
        *,
        deps: object = None,
        when_busy: WhenBusy | None = None,
        **options: Unpack[RunOptions],
    ) -> SessionRun:
        """Return a run of ``task``, driven by the caller; leaving it cancels it.

        ::

            async with session.stream("Hello!") as run:
                async for item in run:
                    print(item.id, item.event)

        Args:
            task: What is to be done.
            deps: As for :meth:`agent_brain.Brain.run`.
            when_busy: What to do while another run is active: ``"wait"``, or ``"refuse"`` with a
                SessionBusyError; None for what the server does. ``"queue"`` waits.
            **options: As for :meth:`agent_brain.Brain.run`.

        Raises:
            BrainUseError: The task is empty, or an option makes no sense.
        """
        return SessionRun(
            self, _chosen(self.brain.stream(task, deps=deps, **options), task), when_busy
        )

    def stream_resume(
        self, *, when_busy: WhenBusy | None = None, **options: Unpack[ResumeOptions]
    ) -> SessionRun:
        """Like :meth:`stream`, to continue the run of the session (:meth:`Brain.resume`)."""
        return SessionRun(self, _chosen(self.brain.stream_resume(**options), None), when_busy)

    def stream_chosen(self, choose: Choose, *, when_busy: WhenBusy | None = None) -> SessionRun:
        """Like :meth:`stream`, with a run that ``choose`` returns when it is its turn.

        What ``choose`` reads and writes in the session, no other run comes between.
        """
        return SessionRun(self, choose, when_busy)

    async def start(
        self,
        task: str | Message,
        *,
        deps: object = None,
        when_busy: WhenBusy | None = None,
        prepare: Callable[[], Awaitable[None]] | None = None,
    ) -> SessionRun:
        """Start a run that the server drives, and return it once it has begun.

        It stops softly (:meth:`SessionRun.stop`) if nobody reads the events of the session for
        the server's ``grace`` seconds.

        Args:
            task: What is to be done.
            deps: As for :meth:`agent_brain.Brain.run`.
            when_busy: As for :meth:`stream`. With ``"queue"``, ``task`` is sent to the active run,
                which is returned; what it does not read starts the next run.
            prepare: Called when it is the turn of the run, before it begins, as to record what was
                said before.

        Raises:
            BrainUseError: The task is empty.
            SessionBusyError: The session is busy, with ``when_busy="refuse"``.
        """
        when: WhenBusy = when_busy or self._sessions.when_busy
        if not self.stored:
            raise BrainUseError("A temporary session ends with its caller: use stream()")
        new = self.brain.stream(task, deps=deps)
        if when == "queue" and self._send(task):
            assert self.run is not None
            return self.run

        async def choose() -> tuple[Run[Any], str | Message]:
            if prepare is not None:
                await prepare()
            return new, task

        run = SessionRun(self, choose, when, deps=deps, detached=True)
        await self._sessions.drive(self, run)
        return run

    async def start_resume(
        self, *, when_busy: WhenBusy | None = None, **options: Unpack[ResumeOptions]
    ) -> SessionRun:
        """Like :meth:`start`, to continue the run of the session (:meth:`Brain.resume`)."""
        new, deps = self.brain.stream_resume(**options), options.get("deps")
        run = SessionRun(self, _chosen(new, None), when_busy, deps=deps, detached=True)
        await self._sessions.drive(self, run)
        return run

    def events(self, after: str | None = None) -> LogReader:
        """Return a reader of the events of all runs: those after ``after``, then those to come.

        ::

            with session.events() as reader:
                async for item in reader:
                    ...

        Args:
            after: ID of the last event that the reader knows; ``"0"`` for all that the log holds;
                None for those to come. If events after it are not in the log any more, the
                first item is a :class:`Gap`; so is what another process does in the session.
        """
        if self._may_change and not self._following:
            self._following = True
            self._sessions.look_after(self._follow)
        return self.log.read(after)

    @property
    def _may_change(self) -> bool:
        """Whether another process may write to the session."""
        return self.stored and self.kept is not None and self.kept.journal.persistent

    async def _follow(self) -> None:
        """Tell the readers, while there are any, when another process has written to the session.

        They read the session again, as events are sent in the process of their run only.
        """
        pause = SOONEST
        try:
            while True:
                await anyio.sleep(pause)
                if self.log.closed or not self.log.readers:
                    return
                pause = min(pause * 1.5, LATEST)
                before = self.log.last
                await self._look()
                if self.log.last != before:
                    pause = SOONEST
        except JournalError:  # the next reader looks again
            logger.warning("Session %r is not followed any more", self.id, exc_info=True)
        finally:
            self._following = False

    async def _look(self) -> None:
        """Read the session again if another process has, or may have, changed it."""
        kept = self.kept
        if kept is None or self.run is not None:
            return
        if self.elsewhere or await kept.journal.last(kept.key) != kept.last:
            await self.refresh()

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[None]:
        """Keep the session without a run meanwhile; waits for the end of the current one."""
        async with self._free:
            yield

    async def refresh(self) -> None:
        """Read the session again, and tell its readers, if another process has written to it.

        Does nothing while a run is active here.
        """
        kept = self.kept
        if kept is None:
            return
        async with self._reading:
            if self._free.value:
                self._free.acquire_nowait()
                known = kept.last, self.elsewhere
                try:
                    await self._catch_up()
                    self.elsewhere = await self._is_elsewhere()
                    if (kept.last, self.elsewhere) != known:
                        self.log.skip()
                finally:
                    self._free.release()

    async def _is_elsewhere(self) -> bool:
        """Return whether another process has the run that the journal has not seen end."""
        kept, memory = self.kept, self.memory
        if kept is None or not memory.control.resumable:
            return False
        if memory.control.status == "running":
            async with nobody_runs(kept.journal, kept.key) as nobody:
                if not nobody:
                    return True
                await self._catch_up()  # it may have ended meanwhile
        return await self._sessions.continues(self)

    async def erase(self) -> None:
        """Erase what a built-in memory holds, with its vectors and the memories inside."""
        memory = self.memory
        await self._catch_up()
        if isinstance(memory, StoredMemory | WrappingMemory) and offers(memory, "clear"):
            await memory.clear()

    async def forget(self, text: str) -> int:
        """Forget a text, also in events that readers could still get; return how many messages."""
        memory = self.memory
        await self._catch_up()
        fits = forgettable(None, {"text": text}, utc_now()).fits
        self.unread = [message for message in self.unread if not fits(message)]
        self.log.clear()
        if self.info is not None and fits(Message.user(self.info.title)):
            self.info = replace(self.info, title="")
        if isinstance(memory, StoredMemory | WrappingMemory) and offers(memory, "forget"):
            return await memory.forget(text=text)
        return 0

    def tidy(self, now: float, grace: float) -> None:
        """End a detached run, or drop the events of ended ones, that nobody reads any more.

        Args:
            now: The current time.
            grace: Seconds without a reader after which a run is stopped; after twice as many it is
                cancelled, if its step has not ended.
        """
        alone = 0.0 if self.log.readers else now - self.log.unread_since
        if alone < grace:
            return
        if self.run is None:
            self.log.clear()
        elif self.run.detached:
            self.run.stop()
            if alone >= 2 * grace:
                self.run.cancel()

    def _send(self, task: str | Message) -> bool:
        """Send ``task`` to the active run; return whether there is one that takes it."""
        if self.run is None:
            return False
        try:
            self.run.send(task)
        except SessionBusyError:
            raise
        except BrainUseError:  # it has just ended
            return False
        return True

    async def begin(self, session_run: SessionRun) -> Run[Any]:
        """Begin a run when it is its turn.

        Raises:
            SessionBusyError: The session is busy, and the run does not wait.
        """
        when: WhenBusy = session_run.when_busy or self._sessions.when_busy
        await self._take_turn(when)
        try:
            if not self.deleted and await self._catch_up():  # else it is refused below
                self.log.skip()
            run, task = await session_run.choose()
            title = None if task is None else as_message(task).content
            if task is None:
                memory = self.memory
                session_run.recorded = len(await memory.goal() + await memory.dump())
            await self._sessions.run_begins(self, session_run, title)  # last
        except BaseException:
            self._free.release()
            raise
        self.run = session_run
        for message in self.unread:
            run.send(message)
        self.unread = []
        return run

    async def end(self, session_run: SessionRun) -> None:
        """Note that a run has ended; what it has not read starts the next one."""
        self.run = None
        if session_run.begun:
            self.elsewhere = False
        self.log.unread_since = anyio.current_time()
        self._free.release()
        await self._sessions.run_ended(self, session_run)
        self.unread += session_run.unread
        if self.unread and session_run.completed and self._sessions.active:
            task, deps = self.unread.pop(0), session_run.deps
            chosen = _chosen(self.brain.stream(task, deps=deps), task)
            run = SessionRun(self, chosen, "wait", deps=deps, detached=True)
            self._sessions.drive_soon(self, run)

    async def _catch_up(self) -> bool:
        """Read the session again if another process has written to it; return whether it has."""
        for session in _stored_sessions(self.memory):
            reopen = getattr(self.memory, "reopen", None)  # a memory of the user's may have none
            if reopen is not None and await session.journal.last(session.key) != session.last:
                await reopen()
                return True
        return False

    async def _take_turn(self, when: WhenBusy) -> None:
        if when == "refuse":
            async with self._reading:  # which is not a run
                try:
                    self._free.acquire_nowait()
                except anyio.WouldBlock:
                    raise SessionBusyError(BUSY) from None
        else:
            await self._free.acquire()


def _chosen(run: Run[Any], task: str | Message | None) -> Choose:
    async def choose() -> tuple[Run[Any], str | Message | None]:
        return run, task

    return choose


def _stored_sessions(memory: Memory) -> Iterator[StoredSession]:
    """Yield the sessions in journals, which other processes may write to, of a memory."""
    if isinstance(memory, StoredMemory):
        session = memory.store.session
        if session is not None and not session.shared:
            yield session
    for inner in memory.wrapped:
        yield from _stored_sessions(inner)
