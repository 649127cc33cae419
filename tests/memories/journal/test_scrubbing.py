"""Removing data from a SQLite file that others use at the same time."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta

import anyio
import pytest

from agent_brain.memories import JournalError, Message, MessagesMemory, SQLiteJournal

pytestmark = pytest.mark.anyio


async def test_sessions_of_one_file_forget_at_the_same_time(tmp_path) -> None:
    path = tmp_path / "journal.db"

    async def forget_all(session: str) -> None:
        async with MessagesMemory(journal=path, session=session) as memory:
            for number in range(25):
                await memory.update([Message.user(f"secret {number}", id=f"{number}")])
                assert await memory.forget(f"{number}") == 1

    async with anyio.create_task_group() as tasks:
        for session in ("ann", "bob", "eve"):
            tasks.start_soon(forget_all, session)
    assert b"secret" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())


@pytest.mark.parametrize("opened", [False, True])
async def test_expiry_does_not_fail_because_somebody_reads_the_file(tmp_path, opened) -> None:
    now = [datetime.now(UTC)]
    path = tmp_path / "journal.db"

    def create() -> MessagesMemory:
        journal = SQLiteJournal(path, busy_timeout=0.01)
        return MessagesMemory(journal=journal, ttl=60, clock=lambda: now[0])

    memory = create()
    await memory.update([Message.user("secret")])
    if opened:
        memory = create()
        await memory.open()
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM entries").fetchone()
    now[0] += timedelta(seconds=61)
    assert await memory.context() == []
    said = Message.user("said", created_at=now[0], id="said")
    await memory.update([said])
    with pytest.raises(JournalError, match="write-ahead log is being read"):
        await memory.forget("said")
    assert await memory.context() == []
    reader.close()
    again = create()
    assert await again.context() == []
    for each in (memory, again):
        assert each.journal is not None
        await each.journal.aclose()
    assert b"secret" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())
