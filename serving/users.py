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
from agent_brain.memories.errors import MemoryUseError
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.messages import MessagesMemory
from agent_brain.memories.store.session import session_key
from agent_brain.memories.user.learning import drop_forgotten
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
        """Learn from a session in a run of the net ``learn``; return whether all of it was read.

        Nothing is learned from a session that was deleted.
        """
        async with self._adding:
            if self._forgetting:
                return False
            with anyio.CancelScope() as self._scope:
                async with turn:
                    if await self._is_gone(session):
                        return True
                    memory = MessagesMemory(session=session, tenant=self.memory.tenant)
                    brain = Brain(learn(user=self.memory), memory, hooks=hooks, stuck=None)
                    try:
                        return (await brain.run(session)).stop_reason is StopReason.DONE
                    except MemoryUseError:
                        if not await self._is_gone(session):
                            raise
                        return True
            return False

    async def _is_gone(self, session: str) -> bool:
        """Return whether a session was deleted."""
        assert self.memory.journal is not None
        return not await self.memory.journal.last(session_key(session, self.memory.tenant))

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
        check_user_like(user)
        self._make = partial(user_of, user, journal)
        self._hooks = hooks
        self._start = start
        self._pool: Pool[str, KnownUser] = Pool(self._open, KnownUser.aclose, most=1, idle=None)
        self._at_once = anyio.Semaphore(AT_ONCE)
        self._closing: anyio.CancelScope | None = None
        self._turns: dict[tuple[str, str], int] = {}  # that were not learned from, by session

    @asynccontextmanager
    async def use(self, owner: str) -> AsyncIterator[KnownUser]:
        """Yield what is known about a user, which stays open meanwhile."""
        async with self._pool.take(owner) as known:
            yield known

    async def _open(self, owner: str) -> KnownUser:
        memory = self._make(owner)
        if memory.learns:
            self._start(partial(self._catch_up, owner))
        return KnownUser(memory)

    async def _catch_up(self, owner: str) -> None:
        async with self.use(owner) as known:
            try:
                names = await known.memory.unread()
            except Exception:
                logger.warning("What is to be learned of a user could not be read", exc_info=True)
                return
            for name in names:
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

    async def drop_forgotten(self, owner: str) -> None:
        """Drop what is untold of what a user has deleted."""
        if (known := self._pool.get(owner)) is not None:
            await drop_forgotten(known.memory)

    def hurry(self) -> None:
        """End what is learned at the end, if this is being closed."""
        if self._closing is not None:
            self._closing.cancel()

    async def aclose(self, *, seconds: float) -> None:
        """Learn from sessions that were not learned from, for at most so many seconds; close."""
        with anyio.move_on_after(seconds, shield=True) as self._closing:
            async with anyio.create_task_group() as tasks:
                for owner, session in [*self._turns]:
                    tasks.start_soon(self.learn, owner, session)
        with anyio.CancelScope(shield=True):
            await self._pool.aclose()


def check_user_like(user: object) -> None:
    """Check what says how something is known about users.

    Raises:
        BrainDefinitionError: It is neither options nor a function, or the options make no sense.
    """
    if isinstance(user, Mapping):
        if own := sorted({"journal", "tenant"} & user.keys()):
            raise BrainDefinitionError(f"user={own}: the sessions choose these")
        try:
            UserMemory(**user)  # errors are reported now, not to the first user
        except TypeError as error:
            raise BrainDefinitionError(f"user={dict(user)!r}: {error}") from None
    elif not callable(user):
        raise BrainDefinitionError(
            f"user={user!r}: options of UserMemory, or a function of a tenant that returns one"
        )


def user_of(user: UserLike, journal: Journal, owner: str) -> UserMemory:
    """Return what is known about a user.

    Raises:
        BrainDefinitionError: The function of ``user`` returned something else.
    """
    if isinstance(user, Mapping):
        return UserMemory(**user, journal=journal, tenant=owner)
    memory = user(owner)
    given: object = memory
    if not isinstance(given, UserMemory) or memory.tenant != owner or memory.journal is None:
        raise BrainDefinitionError(
            f"user= returned {memory!r} for {owner!r}: it must be UserMemory(tenant={owner!r}, "
            "journal=…), with the journal of the sessions"
        )
    return memory
