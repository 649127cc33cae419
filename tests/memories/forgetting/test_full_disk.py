"""Forgetting where there is no room to rewrite the file: nothing is lost, the next try does it."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent_brain import Message, MessagesMemory
from agent_brain.memories import JournalError, SQLiteJournal
from tests.memories.forgetting.places import SECRET
from tests.memories.forgetting.stores import on_disk

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]
ROOM = 200_000  # bytes: enough for what says that messages are forgotten


@contextmanager
def little_room() -> Iterator[None]:
    """No file can become larger than ``ROOM``."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def fill(path: Path) -> None:
    async with MessagesMemory(journal=path) as memory:
        said = [Message.user(f"{number} " + "said " * 50) for number in range(2_000)]
        await memory.update([*said, Message.user(f"I am {SECRET}.", id="secret")])


@pytest.mark.thorough
@pytest.mark.parametrize("by", ["text", "id"])
@pytest.mark.parametrize("again", ["forget", "open"])
async def test_what_could_not_be_scrubbed_is_scrubbed_the_next_time(
    by: str, again: str, tmp_path: Path
) -> None:
    path = tmp_path / "journal.db"
    await fill(path)
    async with SQLiteJournal(path) as journal:
        memory = MessagesMemory(journal=journal)

        async def forget() -> int:
            return await (memory.forget(text=SECRET) if by == "text" else memory.forget("secret"))

        with little_room(), pytest.raises(JournalError, match="the entries are deleted, but"):
            await forget()
        assert await memory.count() == 2_000
        assert SECRET.encode() in on_disk(tmp_path)
        if again == "forget":
            assert await forget() == 0, "the message itself is gone"
            assert SECRET.encode() not in on_disk(tmp_path)
    async with MessagesMemory(journal=path) as memory:
        assert await memory.count() == 2_000
        assert SECRET.encode() not in on_disk(tmp_path)
