"""The -wal file of a journal: missing, damaged, cut off, of another file."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from agent_brain.memories import Entry, JournalError, SQLiteJournal
from agent_brain.memories.errors import JournalDamagedError
from agent_brain.memories.journal.sqlite import log as sqlite_log

pytestmark = pytest.mark.anyio

KILLED = """
import os, signal, sys, anyio
from agent_brain.memories import Entry, SQLiteJournal
async def main():
    journal = SQLiteJournal(sys.argv[1])
    for n in range(int(sys.argv[2])):
        await journal.append("s", [Entry("k", f"text {n}")])
    os.kill(os.getpid(), signal.SIGKILL)
anyio.run(main)
"""


def kill_after(path: Path, appends: int) -> None:
    """Write to a journal in a process that is killed."""
    done = subprocess.run([sys.executable, "-c", KILLED, str(path), f"{appends}"], check=False)
    assert done.returncode == -signal.SIGKILL


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a journal with 5 entries whose process was killed."""
    folder = tmp_path_factory.mktemp("killed")
    kill_after(folder / "journal.db", 5)
    return folder


@pytest.fixture
def path(killed: Path, tmp_path: Path) -> Path:
    shutil.copytree(killed, tmp_path / "copy")
    path = tmp_path / "copy" / "journal.db"
    log(path).with_name("journal.db-shm").unlink()
    return path


def log(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def content(path: Path) -> list[bytes]:
    return [file.read_bytes() for file in (path, log(path)) if file.exists()]


async def read(path: Path, **options: bool) -> list[object]:
    async with SQLiteJournal(path, **options) as journal:  # type: ignore[arg-type]
        return [entry.data for entry in await journal.read("s")]


TEXTS = [f"text {n}" for n in range(5)]


@pytest.mark.parametrize("readonly", [False, True])
async def test_what_a_killed_process_wrote_is_in_its_log(readonly: bool, path: Path) -> None:
    assert await read(path, readonly=readonly) == TEXTS


@pytest.mark.parametrize("readonly", [False, True])
@pytest.mark.parametrize("how", ["deleted", "emptied"])
async def test_a_lost_log_is_an_error_until_it_is_put_back(
    how: str, readonly: bool, path: Path
) -> None:
    log(path).rename(path.with_name("aside"))
    if how == "emptied":
        log(path).touch()
    before = path.read_bytes()
    for _ in range(2):
        with pytest.raises(JournalDamagedError, match=r"-wal' is missing.*accept_loss=True"):
            await read(path, readonly=readonly)
    assert path.read_bytes() == before
    path.with_name("aside").rename(log(path))
    assert await read(path) == TEXTS


async def test_a_lost_log_can_be_accepted(path: Path) -> None:
    log(path).unlink()
    async with SQLiteJournal(path, accept_loss=True) as journal:
        assert await journal.read("s") == []
        await journal.append("s", [Entry("k", "new")])
    assert await read(path) == ["new"]


async def test_a_journal_that_was_closed_has_no_log_to_lose(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    for number in range(3):
        async with SQLiteJournal(path) as journal:
            await journal.append("s", [Entry("k", number)])
        assert not log(path).exists()
        assert len(await read(path)) == number + 1


async def test_a_process_that_only_reads_after_a_kill_closes_the_log(path: Path) -> None:
    assert await read(path) == TEXTS
    assert not log(path).exists()
    assert await read(path, readonly=True) == TEXTS


async def test_sqlite_may_close_the_log_of_a_killed_process(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("SELECT count(*) FROM entries").fetchone()
    assert not log(path).exists()
    assert await read(path) == TEXTS


async def test_a_copy_without_the_log_of_a_journal_in_use_is_noticed(tmp_path: Path) -> None:
    path, copy = tmp_path / "journal.db", tmp_path / "copy.db"
    async with SQLiteJournal(path) as journal:
        await journal.append("s", [Entry("k", 1)])
        content = path.read_bytes()
        async with SQLiteJournal(path) as second:
            await second.append("s", [Entry("k", 2)])
        await journal.append("s", [Entry("k", 3)])
    copy.write_bytes(content)
    with pytest.raises(JournalDamagedError, match="missing"):
        await read(copy)


async def test_the_mark_survives_the_copying_of_the_log(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    kill_after(path, sqlite_log.WRITES + 20)
    log(path).unlink()
    with pytest.raises(JournalDamagedError, match="missing"):
        await read(path)
    assert len(await read(path, accept_loss=True)) >= sqlite_log.WRITES - 1


async def test_the_log_of_another_journal_is_not_written_into_this_one(path: Path) -> None:
    other = path.with_name("other.db")
    kill_after(other, 3)
    for base in (path, path.with_name("closed.db")):
        if base != path:
            async with SQLiteJournal(base) as journal:
                await journal.append("s", [Entry("k", "mine")])
        shutil.copy(log(other), log(base))
        before = content(base)
        for options in ({}, {"readonly": True}, {"accept_loss": True}):
            with pytest.raises(JournalDamagedError, match="that of another file"):
                await read(base, **options)
        assert content(base) == before


async def test_the_log_of_another_database_is_not_written_into_this_one(path: Path) -> None:
    other = path.with_name("other.db")
    program = """
import os, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA journal_mode = WAL")
for n in range(9):
    db.execute(f"CREATE TABLE t{n} (x)")
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", program, str(other)], check=True)
    shutil.copy(log(other), log(path))
    before = content(path)
    with pytest.raises(JournalError):
        await read(path)
    assert content(path) == before


@pytest.mark.thorough
def test_a_flipped_byte_in_the_log(path: Path) -> None:
    """SQLite ignores what comes after it: whole writes are read, as they were."""
    whole = log(path).read_bytes()
    main = path.read_bytes()

    async def flip() -> None:
        for place in [*range(40), *range(40, len(whole), 211)]:
            damaged = bytearray(whole)
            damaged[place] ^= 0x10
            path.write_bytes(main)
            log(path).write_bytes(damaged)
            found = await read(path, readonly=True)
            assert found == TEXTS[: len(found)], place
            for file in (log(path), path):
                file.with_name(path.name + "-shm").unlink(missing_ok=True)

    anyio.run(flip)


async def test_a_log_that_is_cut_off_has_what_is_before(path: Path) -> None:
    whole = log(path).read_bytes()
    main = path.read_bytes()
    before: list[object] = []
    for size in range(32, len(whole), 997):
        path.write_bytes(main)
        log(path).write_bytes(whole[:size])
        found = await read(path, readonly=True)
        assert found == TEXTS[: len(found)]
        assert len(found) >= len(before)
        before = found
        path.with_name("journal.db-shm").unlink(missing_ok=True)
