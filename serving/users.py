"""What a server knows about its users, and learns from their sessions in the background."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeAlias

import anyio

from agent_brain.brain import Brain
from agent_brain.common.secrets import get_logger
from agent_brain.errors import BrainDefinitionError
from agent_brain.limits import StopReason
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.messages import MessagesMemory
from agent_brain.memories.sessions.listing import sessions_of
from agent_brain.memories.store.session import session_key
from agent_brain.memories.user.log import ReadUpTo
from agent_brain.memories.user.user_memory import UserMemory
from agent_brain.nets.library.learn import learn
from agent_brain.serving.pool import Pool
from agent_brain.states.hooks import Hook

logger = get_logger(__name__)

UserLike: TypeAlias = Mapping[str, Any] | Callable[[str], UserMemory]
TURNS = 10  # after which a session is learned from: about the 20 messages of a model call
AT_ONCE = 4  # users that are learned about


class KnownUser:
    """What is known about a user, while somebody uses it.

    Attributes:
        memory: What is known.
    """

    def __init__(self, memory: UserMemory) -> None:
        self.memory = memory
        self._adding = anyio.Lock()  # held while it is learned, and while it is forgotten
        self._scope = anyio.CancelScope()
        self._forgetting = 0

    async def learn(self, session: str, hooks: Sequence[Hook], turn: anyio.Semaphore) -> bool:
        """Learn from a session in a run of the net ``learn``; return whether all of it was read."""
        async with self._adding:
            if self._forgetting:
                return False
            with anyio.CancelScope() as self._scope:
                async with turn:
                    memory = MessagesMemory(session=session, tenant=self.memory.tenant)
                    brain = Brain(learn(user=self.memory), memory, hooks=hooks, stuck=None)
                    return (await brain.run(session)).stop_reason is StopReason.DONE
            return False

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Learn nothing meanwhile: what is read now may be forgotten when it would be stored."""
        self._forgetting += 1
        self._scope.cancel()
        try:
            async with self._adding:
                yield
        finally:
            self._forgetting -= 1

    async def unread(self) -> list[str]:
        """Return the names of the sessions that were not read to their ends."""
        journal, tenant, log = self.memory.journal, self.memory.tenant, self.memory.log
        if journal is None:
            return []
        await log.look()
        read = {each.conversation: each.entries for each in log.all(ReadUpTo)}
        names = await sessions_of(journal, tenant)
        return [n for n in names if await journal.last(session_key(n, tenant)) != read.get(n)]

    async def aclose(self) -> None:
        """Close what is known."""
        await self.memory.aclose()


class KnownUsers:
    """What is known about the users of a server: opened while they have sessions open.

    Sessions are learned from in the background: when they are closed, after ten turns, and when the
    server ends. What a kill has cut short is learned when the user comes back.

    Args:
        user: Options of :class:`UserMemory`; or a function from the tenant of a user's sessions to
            the user's memory.
        journal: Where the sessions are stored.
        hooks: Hooks around the model calls that learn.
        start: Starts background work.

    Raises:
        BrainDefinitionError: Options that do not go together.
    """

    def __init__(
        self,
        user: UserLike,
        journal: Journal | None,
        hooks: Sequence[Hook],
        start: Callable[[Callable[[], Any]], None],
    ) -> None:
        if journal is None:
            raise BrainDefinitionError("user= keeps what is known in the journal: give journal=")
        if isinstance(user, Mapping):
            if own := sorted({"journal", "tenant"} & user.keys()):
                raise BrainDefinitionError(f"user={own}: the sessions choose these")
            user = partial(_of_options, dict(user), journal)
            user("nobody")  # errors are reported now, not to the first user
        elif not callable(user):
            raise BrainDefinitionError(
                f"user={user!r}: options of UserMemory, or a function of a tenant that returns one"
            )
        self._make = user
        self._hooks = hooks
        self._start = start
        self._pool: Pool[str, KnownUser] = Pool(KnownUser.aclose, most=1, idle=None)
        self._at_once = anyio.Semaphore(AT_ONCE)
        self._turns: dict[tuple[str, str], int] = {}  # that were not learned from, by session

    @asynccontextmanager
    async def use(self, owner: str) -> AsyncIterator[KnownUser]:
        """Yield what is known about a user, which stays open meanwhile."""
        async with self._pool.take(owner, partial(self._open, owner)) as known:
            yield known

    async def _open(self, owner: str) -> KnownUser:
        memory = self._make(owner)
        if memory.tenant != owner or memory.journal is None:
            raise BrainDefinitionError(
                f"user= returned {memory!r} for {owner!r}: it must be UserMemory(tenant={owner!r}, "
                "journal=…), with the journal of the sessions"
            )
        if memory.learns:
            self._start(partial(self._catch_up, owner))
        return KnownUser(memory)

    async def _catch_up(self, owner: str) -> None:
        async with self.use(owner) as known:
            for name in await known.unread():
                await self.learn(owner, name)

    def heard(self, owner: str, session: str) -> None:
        """Note a turn of a session, which may be learned from."""
        turns = self._turns[owner, session] = self._turns.get((owner, session), 0) + 1
        if turns >= TURNS:
            self.left(owner, session)

    def left(self, owner: str, session: str) -> None:
        """Learn from a session in the background, if it had turns."""
        if (owner, session) in self._turns:
            self._start(partial(self.learn, owner, session))

    async def learn(self, owner: str, session: str) -> None:
        """Learn from a session; an error is logged, and it is learned the next time."""
        turns = self._turns.get((owner, session), 0)
        try:
            async with self.use(owner) as known:
                if known.memory.learns and not await known.learn(
                    session, self._hooks, self._at_once
                ):
                    return
        except Exception:
            logger.warning("Session %r could not be learned from", session, exc_info=True)
            return
        left = self._turns.pop((owner, session), 0) - turns
        if left > 0:
            self._turns[owner, session] = left

    @asynccontextmanager
    async def alone(self, owner: str) -> AsyncIterator[UserMemory]:
        """Yield what is known about a user, while nothing is learned."""
        async with self.use(owner) as known, known.alone():
            yield known.memory

    async def aclose(self, *, seconds: float) -> None:
        """Learn from sessions that were not learned from, for at most so many seconds; close."""
        with anyio.move_on_after(seconds, shield=True):
            async with anyio.create_task_group() as tasks:
                for owner, session in [*self._turns]:
                    tasks.start_soon(self.learn, owner, session)
        with anyio.CancelScope(shield=True):
            await self._pool.aclose()


def _of_options(options: Mapping[str, Any], journal: Journal, owner: str) -> UserMemory:
    return UserMemory(**options, journal=journal, tenant=owner)
