"""Durability, the life of sessions, leases and several processes in SQLite."""

from __future__ import annotations

import math
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agent_brain.memories import Entry, JournalError, MemoryDefinitionError, SQLiteJournal
from agent_brain.memories.errors import LeaseHeldError, LeaseLostError, MemoryUseError
from agent_brain.memories.journal.lease import Lease, Owner
from agent_brain.memories.journal.sql import journal as module
from agent_brain.memories.journal.sqlite import database as sqlite_database

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(("durability", "synchronous"), [(None, 2), ("disk", 2), ("os", 1)])
async def test_a_durability_is_sqlites(durability: Any, synchronous: int, tmp_path: Path) -> None:
    async with SQLiteJournal(tmp_path / "journal.db", durability=durability) as journal:
        await journal.append("s", [Entry("k", 1)])
        connection = journal._file.main
        assert connection is not None
        assert connection.execute("PRAGMA synchronous").fetchone() == (synchronous,)


@pytest.mark.parametrize(
    ("path", "durability", "message"),
    [
        ("journal.db", "memory", "'disk' or 'os'"),
        ("journal.db", "none", "'disk' or 'os'"),
        (":memory:", "disk", "'memory'"),
        (":memory:", "os", "'memory'"),
    ],
)
def test_a_durability_that_it_does_not_have_is_refused(
    path: str, durability: Any, message: str
) -> None:
    with pytest.raises(MemoryDefinitionError, match=message):
        SQLiteJournal(path, durability=durability)
    SQLiteJournal(":memory:", durability="memory")


@pytest.mark.parametrize(
    "ttl",
    [0, -1, 1e-9, 1e11, 10**400, math.inf, math.nan, True, "60", timedelta(0), timedelta.max],
)
def test_a_ttl_that_is_no_time_is_refused(ttl: Any) -> None:
    with pytest.raises(MemoryDefinitionError, match="ttl"):
        SQLiteJournal("journal.db", ttl=ttl)


@pytest.mark.parametrize("timeout", [-1, math.inf, math.nan, True, "1", None])
def test_a_busy_timeout_that_is_no_time_is_refused(timeout: Any) -> None:
    with pytest.raises(MemoryDefinitionError, match="busy_timeout"):
        SQLiteJournal("journal.db", busy_timeout=timeout)


@pytest.mark.parametrize("path", ["", b"journal.db", "a\0b", None, 1, True])
def test_what_is_no_path_is_refused(path: Any) -> None:
    with pytest.raises(MemoryDefinitionError, match="path of a file"):
        SQLiteJournal(path)


class Clock:
    """The machine's clock, in milliseconds."""

    now = 1_000_000

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(sqlite_database, "_clock", clock)
    return clock


async def test_a_session_that_outlived_its_ttl_is_as_if_deleted(
    clock: Clock, tmp_path: Path
) -> None:
    async with SQLiteJournal(tmp_path / "journal.db", ttl=timedelta(seconds=60)) as journal:
        await journal.append("old", [Entry("k", 1), Entry("k", 2)])
        clock.now += 59_000
        await journal.append("new", [Entry("k", 1)])
        assert await journal.last("old") == 2
        clock.now += 1_000
        assert await journal.sessions() == ["new"]
        assert [record.key for record in await journal.records()] == ["new"]
        assert (await journal.last("old"), await journal.read("old")) == (0, [])
        assert [*await journal.rows("old")] == []
        assert [page async for page in journal.pages("old", history=True)] == []
        for removed in (journal.delete("old"), journal.retire("old", [1]), journal.trim("old")):
            assert await removed == 0
        assert await journal.append("old", [Entry("k", 3)], expect=0) == 3
        assert [entry.data for entry in await journal.read("old", history=True)] == [3]


async def test_a_write_keeps_a_session_alive(clock: Clock, tmp_path: Path) -> None:
    async with SQLiteJournal(tmp_path / "journal.db", ttl=60) as journal:
        for number in range(5):
            await journal.append("s", [Entry("k", number)], expect=number)
            clock.now += 59_000


async def test_purging_removes_ended_sessions_from_the_disk(clock: Clock, tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    async with SQLiteJournal(path, ttl=60) as journal:
        await journal.append("old", [Entry("k", "SECRET" * 1000)])
        clock.now += 60_000
        await journal.append("new", [Entry("k", 1)])
        assert await journal.purge() == 1
        assert await journal.purge() == 0
        assert b"SECRET" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())
        assert await journal.sessions() == ["new"]


@pytest.mark.parametrize("when", ["opening", "append"])
async def test_ended_sessions_are_removed_at_times(
    when: str, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal.db"
    monkeypatch.setattr(module, "PURGE_EVERY", 0.0)
    async with SQLiteJournal(path, ttl=60) as journal:
        await journal.append("old", [Entry("k", 1)])
        clock.now += 60_000
        if when == "append":
            await journal.append("new", [Entry("k", 1)])
            async with SQLiteJournal(path) as other:
                assert await other.sessions() == ["new"]
    async with SQLiteJournal(path, ttl=60) as journal:
        await journal.sessions()
        async with SQLiteJournal(path) as other:
            assert "old" not in await other.sessions()


async def test_a_loaded_session_lives_from_then_on(clock: Clock, tmp_path: Path) -> None:
    async with SQLiteJournal(tmp_path / "journal.db") as source:
        await source.append("s", [Entry("k", 1)])
        entries = await source.read("s")
        clock.now += 10_000_000
        async with SQLiteJournal(tmp_path / "target.db", ttl=60) as target:
            await target.load("s", entries)
            assert await target.read("s") == entries
            assert (await target.records())[0].updated == entries[0].time


@pytest.mark.parametrize("how", ["append", "append of another", "load", "purge"])
async def test_a_session_that_ends_while_it_is_run_keeps_its_lease(
    how: str, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PURGE_EVERY", 0.0)
    path = tmp_path / "journal.db"
    async with SQLiteJournal(path, ttl=60) as journal, SQLiteJournal(path, ttl=60) as other:
        lease = await journal.acquire("s")
        await journal.append("s", [Entry("k", 1)], lease=lease)
        clock.now += 60_000
        if how == "append of another":
            await other.append("t", [Entry("k", 1)])
        elif how == "load":
            await journal.load("s", [Entry("k", 1, 1)])
        elif how == "purge":
            await other.purge()
        for number in (2, 3):
            await journal.append("s", [Entry("k", number)], lease=lease)
            with pytest.raises(LeaseHeldError):
                await other.acquire("s")
            with pytest.raises(LeaseHeldError):
                await other.append("s", [Entry("k", 0)])


async def test_a_runner_that_slept_until_its_session_ended_goes_on(
    clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PURGE_EVERY", 0.0)
    async with SQLiteJournal(tmp_path / "journal.db", ttl=60) as journal:
        lease = Lease("s", Owner.here(), -1, "token")
        await journal._take_lease(lease)
        journal._heartbeat.remove(lease)
        await journal.append("s", [Entry("k", 1)], lease=lease)
        clock.now += 60_000
        await journal.append("s", [Entry("k", 2)], lease=lease)


async def test_purging_removes_the_lease_of_a_runner_that_is_gone(
    clock: Clock, tmp_path: Path
) -> None:
    async with SQLiteJournal(tmp_path / "journal.db", ttl=60) as journal:
        lease = Lease("s", Owner.here(), -1, "token")
        await journal._take_lease(lease)
        journal._heartbeat.remove(lease)
        await journal.append("s", [Entry("k", 1)], lease=lease)
        clock.now += 60_000
        await journal.purge()
        assert journal._file.main is not None
        assert journal._file.main.execute("SELECT * FROM sessions").fetchall() == []


async def test_an_append_does_not_fail_as_another_session_cannot_be_purged(
    clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "PURGE_EVERY", 0.0)
    async with SQLiteJournal(tmp_path / "journal.db", ttl=60) as journal:
        await journal.append("damaged", [Entry("k", 1)])
        assert journal._file.main is not None
        journal._file.main.execute("UPDATE sessions SET checksum = 0")
        clock.now += 60_000
        assert await journal.append("s", [Entry("k", 1)]) == 1
        assert [entry.data for entry in await journal.read("s")] == [1]
    assert "is not removed" in caplog.text


# Leases


def other_process(session: str = "s") -> Lease:
    container = f"{Owner.here().boot} another"
    return Lease(session, Owner("elsewhere", 1, container, "1"), 30, "token of another")


async def test_a_lease_excludes_other_journals_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    async with SQLiteJournal(path) as here, SQLiteJournal(path) as there:
        lease = await here.acquire("s")
        with pytest.raises(LeaseHeldError, match="in use by process"):
            await there.acquire("s")
        with pytest.raises(LeaseHeldError):
            await there.append("s", [Entry("k", 1)])
        with pytest.raises(LeaseHeldError):
            await there.append("s", [Entry("k", 1)], expect=7)
        await here.append("s", [Entry("k", 1)], lease=lease)
        await here.release(lease)
        await there.append("s", [Entry("k", 2)], lease=await there.acquire("s"))
        with pytest.raises(LeaseLostError):
            await here.append("s", [Entry("k", 3)], lease=lease)
        assert [entry.data for entry in await here.read("s")] == [1, 2]


async def test_a_lease_that_ended_is_good_until_somebody_takes_it(tmp_path: Path) -> None:
    async with SQLiteJournal(tmp_path / "journal.db") as journal:
        lease = Lease("s", Owner.here(), -1, "token")
        assert await journal._take_lease(lease) is None
        journal._heartbeat.remove(lease)
        await journal.append("s", [Entry("k", 1)], lease=lease)
        assert await journal._take_lease(other_process()) is None
        with pytest.raises(LeaseLostError):
            await journal.append("s", [Entry("k", 2)], lease=lease)


@pytest.mark.parametrize("seconds", [3600.0, -3600.0])
async def test_a_clock_that_is_wrong_takes_no_lease_from_a_process_that_lives(
    seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal.db"
    async with SQLiteJournal(path) as here, SQLiteJournal(path) as there:
        lease = await here.acquire("s")
        right = time.time
        monkeypatch.setattr(time, "time", lambda: right() + seconds)
        with pytest.raises(LeaseHeldError):
            await there.acquire("s")
        with pytest.raises(LeaseHeldError):
            await there.append("s", [Entry("k", 1)])
        await here.append("s", [Entry("k", 1)], lease=lease)
        other = await there.acquire("t")
        monkeypatch.setattr(time, "time", right)
        with pytest.raises(LeaseHeldError):
            await here.acquire("t")
        await there.append("t", [Entry("k", 1)], lease=other)


async def test_a_lease_ends_with_the_boot_of_the_machine(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    before = Lease("s", Owner("here", 1, "an earlier boot", "1"), 30, "token")
    async with SQLiteJournal(path) as journal, SQLiteJournal(path) as later:
        await journal._take_lease(before)
        journal._heartbeat.remove(before)
        await later.append("s", [Entry("k", 1)], lease=await later.acquire("s"))
        with pytest.raises(LeaseLostError):
            await journal.append("s", [Entry("k", 2)], lease=before)


async def test_a_calendar_that_is_set_back_makes_no_lease_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, unknown = tmp_path / "journal.db", Owner("here", 1)
    monkeypatch.setattr(Owner, "here", lambda: unknown)  # not on Linux, where the boot is known
    async with SQLiteJournal(path) as here, SQLiteJournal(path) as there:
        await here.acquire("s")
        right = time.time
        monkeypatch.setattr(time, "time", lambda: right() - 86_400)
        with pytest.raises(LeaseHeldError) as caught:
            await there.acquire("s")
        assert 0 < caught.value.seconds <= 30


async def test_a_lease_is_replaced_only_over_its_token(tmp_path: Path) -> None:
    async with SQLiteJournal(tmp_path / "journal.db") as journal:
        lease = await journal.acquire("s")
        holder = await journal._take_lease(other_process(), over="a third")
        assert holder is not None
        assert holder.token == lease.token
        assert holder.owner == Owner.here()
        assert 0 < holder.seconds <= 30
        assert await journal._take_lease(other_process(), over=lease.token) is None


async def test_the_lease_of_a_dead_process_is_taken_over_at_once(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    program = """
import os, sys, anyio
from agent_brain.memories import SQLiteJournal
async def main():
    await SQLiteJournal(sys.argv[1]).acquire("s", seconds=3600)
    os._exit(0)
anyio.run(main)
"""
    subprocess.run([sys.executable, "-c", program, str(path)], check=True)
    async with SQLiteJournal(path) as journal:
        await journal.append("s", [Entry("k", 1)], lease=await journal.acquire("s"))


async def test_leases_are_renewed_in_a_thread_and_losses_are_told(tmp_path: Path) -> None:
    async with SQLiteJournal(tmp_path / "journal.db") as journal:
        kept, lost = await journal.acquire("kept"), await journal.acquire("lost")
        await journal._take_lease(other_process("lost"), over=lost.token)
        found: list[Any] = []
        thread = threading.Thread(target=lambda: found.append(journal._renew([kept, lost])))
        thread.start()
        thread.join()
        assert found == [[lost.token]]


async def test_writing_a_lease_does_not_wait_for_the_disk(tmp_path: Path) -> None:
    async with SQLiteJournal(tmp_path / "journal.db") as journal:
        await journal.acquire("s")
        assert journal._file.beside is not None
        assert journal._file.beside.execute("PRAGMA synchronous").fetchone() == (1,)


async def test_deleting_a_session_ends_its_lease(tmp_path: Path) -> None:
    async with SQLiteJournal(tmp_path / "journal.db") as journal:
        lease = await journal.acquire("s")
        await journal.append("s", [Entry("k", 1)], lease=lease)
        await journal.delete("s")
        with pytest.raises(LeaseLostError):
            await journal.append("s", [Entry("k", 2)], lease=lease)
        await journal.append("s", [Entry("k", 2)], expect=0)


async def test_a_closed_journal_has_released_its_leases(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    async with SQLiteJournal(path) as later:
        async with SQLiteJournal(path) as journal:
            await journal.acquire("s")
            taken = await journal.acquire("t")
            await later._take_lease(other_process("t"), over=taken.token)
        await later.release(await later.acquire("s"))
        with pytest.raises(LeaseHeldError):
            await later.acquire("t")


async def test_a_journal_that_cannot_release_its_leases_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_database, "HURRIED", 1)
    path = tmp_path / "journal.db"
    journal = SQLiteJournal(path)
    await journal.acquire("s")
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        await journal.aclose()


@pytest.mark.parametrize("how", ["deleted", "replaced"])
async def test_a_lease_is_not_taken_in_another_file(how: str, tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    async with SQLiteJournal(path) as journal:
        await journal.append("s", [Entry("k", 1)])
        for name in ("journal.db", "journal.db-wal"):
            (tmp_path / name).rename(tmp_path / f"aside-{name}")
        if how == "replaced":
            async with SQLiteJournal(path) as another:
                await another.append("s", [Entry("k", 1)])
        files = {*tmp_path.iterdir()}
        for _ in range(2):
            with pytest.raises(JournalError, match=f"{how}.*while it was open"):
                await journal.acquire("s")
        assert {*tmp_path.iterdir()} == files
        if how == "replaced":
            async with SQLiteJournal(path) as another:
                await another.acquire("s")


async def test_a_lease_is_not_renewed_in_a_file_that_was_moved(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    async with SQLiteJournal(path) as journal:
        lease = await journal.acquire("s")
        path.rename(tmp_path / "aside")
        with pytest.raises(JournalError, match="moved away"):
            journal._renew([lease])
        (tmp_path / "aside").rename(path)
        assert journal._renew([lease]) == []


async def test_a_program_that_changes_its_folder_keeps_its_leases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    async with SQLiteJournal("journal.db") as journal:
        monkeypatch.chdir(tmp_path / "elsewhere")
        lease = await journal.acquire("s")
        async with SQLiteJournal(tmp_path / "journal.db") as there:
            with pytest.raises(LeaseHeldError):
                await there.acquire("s")
            assert journal.same_as(there)
        await journal.append("s", [Entry("k", 1)], lease=lease)
    assert [*(tmp_path / "elsewhere").iterdir()] == []


async def test_a_closed_journal_ends_its_heartbeat(tmp_path: Path) -> None:
    before = {*threading.enumerate()}
    for path in (str(tmp_path / "journal.db"), ":memory:"):
        journal = SQLiteJournal(path)
        await journal.acquire("s")
        await journal.aclose()
        with pytest.raises(JournalError, match="closed"):
            await journal.acquire("s")
    names = {thread.name for thread in {*threading.enumerate()} - before}
    assert "agent-brain-leases" not in names


@pytest.mark.parametrize("call", ["append", "delete", "retire", "trim", "load", "purge", "acquire"])
async def test_a_viewer_writes_nothing(call: str, tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    arguments: dict[str, list[Any]] = {
        "append": ["s", [Entry("k", 1)]],
        "retire": ["s", [1]],
        "load": ["s", []],
        "purge": [],
    }
    async with SQLiteJournal(path) as journal:
        await journal.append("s", [Entry("k", 1)])
        async with SQLiteJournal(path, readonly=True) as viewer:
            with pytest.raises(JournalError, match="readonly=True"):
                await getattr(viewer, call)(*arguments.get(call, ["s"]))
            assert await viewer.last("s") == 1


async def test_retired_entries_are_not_read_when_a_session_is_opened(tmp_path: Path) -> None:
    async with SQLiteJournal(tmp_path / "journal.db") as journal:
        await journal.append("s", [Entry("k", "x" * 500) for _ in range(5000)])
        await journal.retire("s", range(1, 5000))
        connection = journal._file.main
        assert connection is not None
        steps = []
        connection.set_progress_handler(lambda: steps.append(1), 1)
        assert len(await journal.rows("s")) == 1
        connection.set_progress_handler(None, 1)
        assert len(steps) < 500


@pytest.mark.parametrize("seqs", [[0], [2, 1], [1, 1], [2**53]])
async def test_numbers_that_cannot_be_loaded_are_refused(seqs: list[int], tmp_path: Path) -> None:
    async with SQLiteJournal(tmp_path / "journal.db") as journal:
        with pytest.raises((JournalError, MemoryUseError)):
            await journal.load("s", [Entry("k", 1, seq) for seq in seqs])
        assert await journal.sessions() == []
        assert await journal.append("s", [Entry("k", 1)]) == 1
