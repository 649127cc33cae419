"""Sessions of a server whose runs are done by workers."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing, suppress
from typing import TYPE_CHECKING, Any, Self

import anyio
from typing_extensions import Unpack

from agent_brain.brain import Brain
from agent_brain.common.ids import new_id
from agent_brain.errors import (
    BrainDefinitionError,
    BrainUseError,
    RunConflictError,
    RunNotFoundError,
    SessionsClosedError,
)
from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message
from agent_brain.options import RunOptions
from agent_brain.result import Result
from agent_brain.run import Run
from agent_brain.serving.session import Session
from agent_brain.serving.sessions import SessionKey, Sessions, owner_of
from agent_brain.states.events import AgentEvent, Position, RunFailed, RunFinished
from agent_brain.workers.client import QueueClient
from agent_brain.workers.handle import QueuedRun
from agent_brain.workers.part import run_key, task_data

if TYPE_CHECKING:
    from agent_brain.workers.queue import RunQueue

Begin = Callable[[], Awaitable[tuple[QueuedRun, int]]]  # the run, and its last event before


class WorkersRun(Run[Any]):
    """A run that workers do, with the methods of a run of this process.

    Args:
        begin: Submits or continues the run.
        memory: The memory of its session, which is read again in the end.
        run_id: The ID of the run.
        sessions: The sessions of the server.
    """

    __slots__ = ("_begin", "_handle", "_memory", "_orders", "_sessions")

    def __init__(self, begin: Begin, memory: Memory, run_id: str, sessions: QueueSessions) -> None:
        self._begin = begin
        self._sessions = sessions
        self._memory = memory
        self.run_id = run_id
        self.ended = False
        self._handle: QueuedRun | None = None
        self._orders: list[asyncio.Future[None]] = []
        self._result: Result[Any] | None = None
        self._events = self._follow()

    async def _follow(self) -> AsyncGenerator[AgentEvent, None]:
        """Yield the events, until the run has ended or waits."""
        handle, after = await self._begin()
        self._handle = handle
        kind: type[AgentEvent] | None = None
        async with aclosing(handle._events(after, asleep=True)) as items:
            async for item in items:
                kind = type(item.event)
                if kind is not RunFinished:
                    yield item.event
        await asyncio.gather(*self._orders)
        reopen = getattr(self._memory, "reopen", None)
        if reopen is not None:
            await reopen()
        self.ended = True
        result = self._result = await handle._result(asleep=True)
        if kind is not RunFailed:
            at = Position(self.run_id, result.steps)
            reason, usage = result.stop_reason, result.usage
            yield RunFinished(
                reason, result.answer, result.output, usage, result.finish_reason, at=at
            )

    def stop(self) -> None:
        """Stop after the current step."""
        self._order(QueuedRun.stop)

    def cancel(self) -> None:
        """Cancel the run."""
        self._order(QueuedRun.cancel)

    def _order(self, order: Callable[[QueuedRun], Awaitable[None]]) -> None:
        if self._handle is not None and not self.ended and not self._sessions.is_ending:
            self._orders.append(asyncio.ensure_future(order(self._handle)))

    def send(self, message: str | Message) -> None:
        """Refuse a message: it starts a run of its own."""
        raise BrainUseError("A run that workers do takes no messages: submit another one")

    @property
    def unread(self) -> list[Message]:
        """Nothing."""
        return []

    async def aclose(self) -> None:
        """Cancel the run if it has not ended."""
        with anyio.CancelScope(shield=True):
            if not self.ended and self._handle is not None:
                self.cancel()
            await asyncio.gather(*self._orders)
            await self._events.aclose()
        self.ended = True


class WorkersBrain(Brain[Any]):
    """A brain whose runs are done by the workers of a queue."""

    _name: str
    _sessions: QueueSessions

    @classmethod
    def of(cls, brain: Brain[Any], name: str, sessions: QueueSessions) -> Self:
        """Return what stands for a brain of the queue.

        Args:
            brain: The brain.
            name: Its name in the queue.
            sessions: The sessions of the server.
        """
        other = cls.__new__(cls)
        vars(other).update(vars(brain.over(brain.memory)))
        other._name = name
        other._sessions = sessions
        return other

    def stream(
        self, task: str | Message, *, deps: object = None, **options: Unpack[RunOptions]
    ) -> Run[Any]:
        """Return a run that workers do; ``deps`` are those of the queue.

        Raises:
            BrainUseError: There are options for the run, which a queue cannot store.
        """
        if options:
            raise BrainUseError(f"{', '.join(options)}: workers run the brain as it was registered")
        task_data(task)
        memory, id_ = self.memory, new_id("job")

        async def begin() -> tuple[QueuedRun, int]:
            place = {"session": memory.session, "tenant": memory.tenant}
            return await self._sessions.client.submit(self._name, task, id=id_, **place), 0

        return WorkersRun(begin, memory, run_key(id_, memory.tenant), self._sessions)

    def stream_resume(self, *, deps: object = None, **decisions: Any) -> Run[Any]:
        """Return the run of the session, continued by workers."""
        memory = self.memory

        async def begin() -> tuple[QueuedRun, int]:
            await memory.open()
            return await self._sessions.client._resume_session(self._name, memory, decisions)

        return WorkersRun(begin, memory, memory.control.run_id or "", self._sessions)


class QueueSessions(Sessions):
    """Sessions whose runs are done by workers; made by :meth:`RunQueue.sessions`.

    Attributes:
        is_ending: Whether the server ends: runs then continue without it.
    """

    def __init__(self, queue: RunQueue, name: str, **options: Any) -> None:
        if options.get("user") is not None:
            raise BrainDefinitionError(
                "user= of sessions whose runs are done by workers is that of the queue: "
                "RunQueue(user=…)"
            )
        local = queue.brains[name]
        self._queue = queue
        self.is_ending = False
        self._client: QueueClient | None = None
        self._stack = AsyncExitStack()
        brain = WorkersBrain.of(local, name, self)

        def make_memory(key: SessionKey) -> Memory:
            assert self._journal is not None
            return local.memory_for(key.session, tenant=key.owner, journal=self._journal)

        options["user"] = queue.user
        super().__init__(brain, make_memory, journal=queue.journal_place, **options)

    @property
    def client(self) -> QueueClient:
        """The client of the queue."""
        if self._client is None:
            raise SessionsClosedError("The sessions are closed: use 'async with' for them")
        return self._client

    async def __aenter__(self) -> Self:
        self._client = await self._stack.enter_async_context(self._queue.client())
        return await super().__aenter__()

    async def delete(
        self, session: str, *, user: str | None = None, tenant: str | None = None
    ) -> None:
        """As :meth:`Sessions.delete`; the runs of the session are removed from the queue too."""
        await super().delete(session, user=user, tenant=tenant)
        owner = owner_of(user, tenant)
        for info in await self.client.list(tenant=owner, session=session, limit=sys.maxsize):
            with suppress(RunConflictError, RunNotFoundError):  # it is active, or was deleted
                run = await self.client.get(info.id, tenant=owner)
                await run.cancel()  # if it waits
                await run.delete()

    async def forget(self, text: str, *, user: str | None = None, tenant: str | None = None) -> int:
        """As :meth:`Sessions.forget`; runs that have ended are removed from the queue too."""
        count = await super().forget(text, user=user, tenant=tenant)
        await self._delete_ended(user, tenant)
        return count

    async def forget_known(
        self,
        fact_id: str | None = None,
        *,
        user: str | None = None,
        tenant: str | None = None,
        **which: Any,
    ) -> int:
        """As :meth:`Sessions.forget_known`, and :meth:`forget` of the runs in the queue."""
        count = await super().forget_known(fact_id, user=user, tenant=tenant, **which)
        await self._delete_ended(user, tenant)
        return count

    async def _delete_ended(self, user: str | None, tenant: str | None) -> None:
        if (owner := owner_of(user, tenant)) is not None:
            await self.client.delete_ended(tenant=owner)

    async def continues(self, session: Session) -> bool:
        """Return whether a worker will continue the run of a session."""
        run_id = session.memory.control.run_id or ""
        return await self.client._is_active(run_id, session.id, session.owner)

    async def stop(self, timeout: float = 10.0) -> None:
        """End all readers, and accept no more runs; those of workers continue."""
        self.is_ending = True
        in_a_hurry = self._in_a_hurry or not timeout
        await super().stop(0)
        self._in_a_hurry = in_a_hurry  # else there is time to learn

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        try:
            await super().__aexit__(kind, error, traceback)
        finally:
            await self._stack.aclose()
