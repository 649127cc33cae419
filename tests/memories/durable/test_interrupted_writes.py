"""Writes and leases whose end the journal did not tell."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from agent_brain.memories import (
    Entry,
    JournalError,
    LeaseHeldError,
    Message,
    MessagesMemory,
    RamJournal,
    SQLiteJournal,
)
from agent_brain.memories.journal.lease import Holder, Lease

pytestmark = [pytest.mark.anyio, pytest.mark.also_on_trio]


class Breaking(RamJournal):
    """The answer of one append is lost, when somebody else waits to write."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.breaks = anyio.Event(), anyio.Event()

    async def append(
        self,
        session: str,
        entries: Sequence[Entry],
        *,
        expect: int | None = None,
        lease: Lease | None = None,
    ) -> int:
        last = await super().append(session, entries, expect=expect, lease=lease)
        if not self.breaks.is_set():
            self.begun.set()
            await self.breaks.wait()
            raise JournalError("the answer is lost")
        return last


async def test_a_writer_that_waited_for_an_interrupted_write_is_told() -> None:
    journal, errors = Breaking(), dict[str, Exception]()
    memory = MessagesMemory(journal=journal)

    async def write(text: str) -> None:
        try:
            await memory.update([Message.user(text, id=text)])
        except JournalError as error:
            errors[text] = error

    async with anyio.create_task_group() as group:
        group.start_soon(write, "first")
        await journal.begun.wait()
        group.start_soon(write, "second")
        await anyio.wait_all_tasks_blocked()
        journal.breaks.set()
    assert str(errors["first"]) == "the answer is lost"
    assert type(errors["second"]) is JournalError
    assert "Nothing of this one was written: do it again" in str(errors["second"])
    await write("second")
    later = MessagesMemory(journal=journal)
    for which in (memory, later):
        assert [m.id for m in await which.messages()] == ["first", "second"]


class KeepsLeases(SQLiteJournal):
    """Cannot give a lease back, and may lose the answer that it has one."""

    loses = False

    async def _take_lease(self, lease: Lease, *, over: str | None = None) -> Holder | None:
        holder = await super()._take_lease(lease, over=over)
        if self.loses:
            raise JournalError("no answer")
        return holder

    async def release(self, lease: Lease) -> None:
        self._heartbeat.remove(lease)
        raise JournalError("no answer")


async def test_a_lease_that_could_not_be_given_back_is_taken_over_in_the_process(
    tmp_path: Path,
) -> None:
    path = tmp_path / "journal.db"
    async with KeepsLeases(path) as journal, SQLiteJournal(path) as later:
        memory, other = MessagesMemory(journal=journal), MessagesMemory(journal=later)
        await memory.acquire()
        with pytest.raises(LeaseHeldError):
            await other.acquire()
        await memory.release()
        await other.acquire()
        await other.release()
        journal.loses = True
        with pytest.raises(JournalError, match="no answer"):
            await memory.acquire()
        await other.acquire()
        await other.release()
