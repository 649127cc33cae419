"""Conversations, each with a brain of its own."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Self, TypeAlias

import anyio
from anyio.abc import TaskGroup

from agent_brain.brain import Brain
from agent_brain.common.aio import maybe_await
from agent_brain.errors import BrainUseError
from agent_brain.serving.pool import Pool
from agent_brain.serving.servers import SharedServers

MakeBrain: TypeAlias = Callable[[], Brain | Awaitable[Brain]]


@dataclass(frozen=True, slots=True)
class Turn:
    """A conversation while one caller uses it.

    Attributes:
        name: The name of the conversation.
        brain: Its brain.
    """

    name: str
    brain: Brain


@dataclass(slots=True)
class _Conversation:
    brain: Brain
    turn: anyio.Lock = field(default_factory=anyio.Lock)


class Conversations:
    """Conversations by name; use it as an async context manager, which closes their brains.

    Generated names cannot be guessed: knowing one grants access. When there are too many
    conversations, the least recently used one is evicted.

    Example::

        async with Conversations(lambda: Brain("react")) as conversations:
            async with conversations.take(None) as turn:
                result = await turn.brain.run("Hello!")

    Args:
        make_brain: Returns the brain of a new conversation, with a memory of its own.
        most: Maximum number of conversations; exceeded only while all of them are in use.
        idle: Seconds after which an unused conversation ends; None keeps it.
        servers: MCP servers that all conversations share.
        servers_idle: Seconds without a conversation in use after which the servers are closed.

    Raises:
        BrainUseError: A number is not greater than 0.
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
        self._idle = idle
        self._servers = servers
        self._servers_idle = servers_idle
        self._used_at = 0.0
        self._tasks: TaskGroup | None = None
        self._known: Pool[str, _Conversation] = Pool(_close, most=most, idle=idle)
        self._users = 0

    @asynccontextmanager
    async def take(self, name: str | None, *, own: str | None = None) -> AsyncIterator[Turn]:
        """Yield a conversation for one turn; other callers wait for it.

        Args:
            name: The conversation to continue; None for the caller's own.
            own: The caller's own conversation, created when it is first needed; None for a new one
                each time.

        Raises:
            BrainUseError: There is no such conversation, or it has ended.
        """
        make = self._make if name is None else _ended
        name = name or own or secrets.token_urlsafe(16)
        self._users += 1  # also while the servers are being connected
        try:
            async with self._known.take(name, make) as conversation, conversation.turn:
                yield Turn(name, conversation.brain)
        finally:
            self._users -= 1
            self._used_at = anyio.current_time()

    async def _make(self) -> _Conversation:
        brain = await maybe_await(self._make_brain())
        await self._share_servers(brain)
        return _Conversation(brain)

    async def _share_servers(self, brain: Brain) -> None:
        if self._servers is None:
            return
        try:
            await brain.connect(self._servers.for_a_brain())
        except BaseException:
            with anyio.CancelScope(shield=True):
                await brain.aclose()
            raise

    async def _expire(self) -> None:
        """Close conversations and servers that are unused for too long, until cancelled."""
        idle = float("inf") if self._idle is None else self._idle
        servers_idle = float("inf") if self._servers is None else self._servers_idle
        while (period := min(idle, servers_idle) / 2) < float("inf"):
            await anyio.sleep(period)
            await self._known.expire()
            unused = not self._users and anyio.current_time() - self._used_at >= servers_idle
            if self._servers and unused:
                await self._servers.aclose()

    async def aclose(self) -> None:
        """Close all brains and the shared servers."""
        await self._known.aclose()
        if self._servers is not None:
            await self._servers.aclose()

    async def __aenter__(self) -> Self:
        self._used_at = anyio.current_time()
        self._tasks = await anyio.create_task_group().__aenter__()
        self._tasks.start_soon(self._expire)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._tasks is not None
        self._tasks.cancel_scope.cancel()
        await self._tasks.__aexit__(None, None, None)
        with anyio.CancelScope(shield=True):
            await self.aclose()


async def _close(conversation: _Conversation) -> None:
    await conversation.brain.aclose()


async def _ended() -> _Conversation:
    raise BrainUseError(
        "There is no such conversation, or it has ended: omit the name to start another"
    )
