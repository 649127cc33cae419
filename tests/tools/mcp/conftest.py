from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import anyio.to_thread
import pytest

from tests.tools.mcp.support import nothing_left


@pytest.fixture
async def nothing_leaks(anyio_backend: str) -> AsyncIterator[None]:
    """Processes, threads and files of a test are gone when it ends."""
    await anyio.to_thread.run_sync(int)  # what the event loop opens once for itself
    with nothing_left():
        yield
