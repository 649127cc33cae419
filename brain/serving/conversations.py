"""Many conversations, a brain each."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self, TypeAlias

import anyio
from anyio.abc import TaskGroup

from agent_brain.brain import Brain
from agent_brain.errors import BrainUseError
from agent_brain.serving.servers import SharedServers
from agent_brain.tools.aio import maybe_await

MakeBrain: TypeAlias = Callable[[], Brain | Awaitable[Brain]]


@dataclass(slots=True)
class _Conversation:
    brain: Brain
    turn: anyio.Lock = field(default_factory=anyio.Lock)
    users: int = 0
    used_at: float = field(default_factory=anyio.current_time)


class Conversations:
    """Brains by the conversation that they are in; closed with it.

    Names that this class gives out cannot be guessed: knowing one grants access. With more
    conversations than may be kept, the least recently used one is evicted.

    Args:
        make_brain: Makes the brain of a new conversation, with a memory of its own.
        most: How many are kept; more only while they are all being used.
        idle: Seconds after which a conversation that nobody uses ends; None keeps it.
        servers: MCP servers that all conversations share.
        servers_idle: Seconds without any conversation in use after which the servers are closed.

    Raises:
        BrainUseError: A number that is not above 0.
    """

    def __init__(
        self,
        make_brain: MakeBrain,
        *,
        most: int = 100,
        idle: float | None = 3600.0,
        servers: SharedServers | None = None,
        servers_idle: float = 300.0,
    ) -> None:
        for name, value in (("most", most), ("idle", idle), ("servers_idle", servers_idle)):
            if value is not None and not value > 0:
                raise BrainUseError(f"{name} must be greater than 0, not {value!r}")
        self._make_brain = make_brain
        self._most = most
        self._idle = idle
        self._servers = servers
        self._servers_idle = servers_idle
        self._used_at = 0.0
        self._tasks: TaskGroup | None = None
        self._known: OrderedDict[str, _Conversation] = OrderedDict()
        self._making = anyio.Lock()

    @asynccontextmanager
    async def take(self, name: str | None, *, own: str | None = None) -> AsyncIterator[Turn]:
        """The brain of a conversation, for one turn; others who want it wait.

        Args:
            name: The conversation to go on with; None for the caller's own one.
            own: The caller's own conversation, made when it is first asked for; None for a new one
                each time.

        Raises:
            BrainUseError: There is no such conversation, or no longer.
        """
        name, conversation = await self._find(name, own)
        conversation.users += 1
        try:
            async with conversation.turn:
                yield Turn(name, conversation.brain)
        finally:
            conversation.users -= 1
            conversation.used_at = self._used_at = anyio.current_time()

    async def _find(self, name: str | None, own: str | None) -> tuple[str, _Conversation]:
        if name is not None and name not in self._known:
            raise BrainUseError(
                "There is no such conversation, or it has ended: leave it out to start a new one"
            )
        async with self._making:
            name = name or own or secrets.token_urlsafe(16)
            conversation = self._known.get(name)
            if conversation is None:
                brain = await maybe_await(self._make_brain())
                if self._servers is not None:
                    await self._share(brain, self._servers)
                conversation = self._known[name] = _Conversation(brain)
            self._known.move_to_end(name)
            conversation.users += 1  # it is not to be forgotten before it is used
            try:
                await self._forget_oldest()
            finally:
                conversation.users -= 1
        return name, conversation

    async def _forget_oldest(self) -> None:
        idle = [name for name, conversation in self._known.items() if not conversation.users]
        for name in idle[: max(0, len(self._known) - self._most)]:
            await self._known.pop(name).brain.aclose()

    async def _share(self, brain: Brain, servers: SharedServers) -> None:
        try:
            await brain.connect(servers.for_a_brain())
        except BaseException:
            with anyio.CancelScope(shield=True):
                await brain.aclose()
            raise

    async def _expire(self) -> None:
        """End what nobody has used for long, as long as there is something to end."""
        waits = [self._servers_idle] if self._servers is not None else []
        waits += [self._idle] if self._idle is not None else []
        while waits:
            await anyio.sleep(min(waits) / 2)
            now = anyio.current_time()
            async with self._making:
                for name, conversation in list(self._known.items()):
                    if self._idle is not None and self._rests(conversation, now, self._idle):
                        await self._known.pop(name).brain.aclose()
                in_use = any(conversation.users for conversation in self._known.values())
                if self._servers is not None and not in_use:
                    if now - self._used_at >= self._servers_idle:
                        await self._servers.aclose()

    def _rests(self, conversation: _Conversation, now: float, seconds: float) -> bool:
        return not conversation.users and now - conversation.used_at >= seconds

    async def aclose(self) -> None:
        """Close all brains, and the servers they share."""
        while self._known:
            _, conversation = self._known.popitem()
            await conversation.brain.aclose()
        if self._servers is not None:
            await self._servers.aclose()

    async def __aenter__(self) -> Self:
        self._used_at = anyio.current_time()
        self._tasks = await anyio.create_task_group().__aenter__()
        self._tasks.start_soon(self._expire)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._tasks is not None
        self._tasks.cancel_scope.cancel()
        await self._tasks.__aexit__(None, None, None)
        with anyio.CancelScope(shield=True):
            await self.aclose()


@dataclass(frozen=True, slots=True)
class Turn:
    """A conversation while one caller has it.

    Attributes:
        name: What it is called.
        brain: Whom to ask.
    """

    name: str
    brain: Brain
