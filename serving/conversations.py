"""Conversations, each with a brain of its own."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self, TypeAlias

import anyio
from anyio.abc import TaskGroup

from agent_brain.brain import Brain
from agent_brain.common.aio import maybe_await
from agent_brain.errors import BrainUseError
from agent_brain.serving.pool import Pool
from agent_brain.tools.base import BaseTool
from agent_brain.tools.toolset import ToolSource

if TYPE_CHECKING:
    from agent_brain.tools.mcp import McpSource, McpTools

MakeBrain: TypeAlias = Callable[[], Brain | Awaitable[Brain]]


class SharedServers:
    """One connection to each server for any number of brains.

    A server with state of its own shows it to all conversations.

    Args:
        servers: The servers, as for :meth:`Brain.create`.
    """

    def __init__(self, servers: Iterable[McpSource]) -> None:
        self._servers = tuple(servers)
        self._mcp: McpTools | None = None
        self._opening = anyio.Lock()
        self.generation = 0

    @property
    def changed(self) -> bool:
        """Whether the servers are not connected, or their tools have changed."""
        return self._mcp is None or self._mcp.changed

    async def tools(self, taken: Collection[str] = ()) -> Sequence[BaseTool]:
        """Return the current tools; connect if necessary.

        Args:
            taken: Names of other tools.

        Raises:
            McpConfigError: The servers cannot be used as described.
            McpServerError: The servers could not be started or reached.
        """
        from agent_brain.tools.mcp import McpTools

        async with self._opening:
            if self._mcp is None:
                self._mcp = await McpTools.open(self._servers, taken=taken)
                self.generation += 1
            elif self._mcp.changed:
                await self._mcp.refresh(taken)
                self.generation += 1
            return self._mcp.tools

    @property
    def gives_context(self) -> bool:
        """Whether each request of a model shows something of the servers."""
        return self._mcp is not None and self._mcp.gives_context

    async def context(self) -> Sequence[str]:
        """Return what each request of a model shows, as it is now."""
        return () if self._mcp is None else await self._mcp.context()

    def for_a_brain(self) -> ToolSource:
        """Return a source for one brain; closing it does not close the servers."""
        return _Share(self)

    async def aclose(self) -> None:
        """Close the connections; the next brain that needs them connects again."""
        async with self._opening:
            mcp, self._mcp = self._mcp, None
            if mcp is not None:
                await mcp.aclose()


class _Share(ToolSource):
    """The tools of shared servers, as one brain last saw them."""

    def __init__(self, servers: SharedServers) -> None:
        self._servers = servers
        self._tools: Sequence[BaseTool] = ()
        self._generation = 0

    @property
    def tools(self) -> Sequence[BaseTool]:
        return self._tools

    @property
    def changed(self) -> bool:
        return self._servers.changed or self._generation != self._servers.generation

    async def refresh(self, taken: Collection[str] = ()) -> None:
        self._tools = await self._servers.tools(taken)
        self._generation = self._servers.generation

    @property
    def gives_context(self) -> bool:
        return self._servers.gives_context

    async def context(self) -> Sequence[str]:
        return await self._servers.context()

    async def aclose(self) -> None:
        self._tools = ()


@dataclass(frozen=True, slots=True)
class Turn:
    """A conversation while one caller uses it.

    Attributes:
        name: The name of the conversation.
        brain: Its brain.
        lock: Held by the caller.
    """

    name: str
    brain: Brain
    lock: anyio.Lock = field(default_factory=anyio.Lock)


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
        self._known: Pool[str, Turn] = Pool(self._make, _close, most=most, idle=idle)
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
        make = None if name is None else _ended
        name = name or own or secrets.token_urlsafe(16)
        self._users += 1  # also while the servers are being connected
        try:
            async with self._known.take(name, make) as turn, turn.lock:
                yield turn
        finally:
            self._users -= 1
            self._used_at = anyio.current_time()

    async def _make(self, name: str) -> Turn:
        brain = await maybe_await(self._make_brain())
        if self._servers is not None:
            try:
                await brain.connect(self._servers.for_a_brain())
            except BaseException:
                with anyio.CancelScope(shield=True):
                    await brain.aclose()
                raise
        return Turn(name, brain)

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


async def _close(turn: Turn) -> None:
    await turn.brain.aclose()


async def _ended(name: str) -> Turn:
    raise BrainUseError(
        "There is no such conversation, or it has ended: omit the name to start another"
    )
