from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import anyio
import anyio.to_thread
import pytest

from agent_brain.tools.mcp import McpTools
from tests.support.forked import forked
from tests.tools.mcp.support import IMPORTED, config, http_server, nothing_left, script


@pytest.fixture(scope="session")
def shared() -> Iterator[McpTools]:
    """Servers that tests of both event loops use: theirs is a loop of its own."""
    names = ("plain", "results", "slow", "many")
    servers = config(**{name: script(name) for name in names})
    mcp = anyio.run(McpTools.open, [servers])
    yield mcp
    anyio.run(mcp.aclose)


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    """Where a server is that speaks HTTP."""
    with http_server() as (address, _):
        yield address


@pytest.fixture
async def nothing_leaks(anyio_backend: str) -> AsyncIterator[None]:
    """Processes, threads and files of a test are gone when it ends."""
    forked(*IMPORTED)  # starts a process that stays
    await anyio.to_thread.run_sync(int)  # what the event loop opens once for itself
    with nothing_left():
        yield
