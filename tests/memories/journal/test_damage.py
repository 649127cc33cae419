"""A damaged SQLite file is noticed: what is read is what was written, or there is an error."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest

from agent_brain.memories import Entry, JournalError, SQLiteJournal
from agent_brain.memories.errors import JournalDamagedError
from agent_brain.memories.journal.entry import Lines, Rows, to_line
from agent_brain.memories.journal.sql import sessions
from agent_brain.memories.journal.sql.database import Transaction
from agent_brain.memories.journal.sql.entries import pages
from agent_brain.memories.journal.sql.sessions import Key
from agent_brain.memories.journal.sqlite.database import SQLiteDatabase
from tests.support.thorough import first_of

pytestmark = [pytest.mark.thorough, pytest.mark.anyio]
T = TypeVar("T")

PAGE = 512  # bytes; so small that a file has pages of every kind
PARTS = 8
STEP = 3  # every third byte: in three pages of a kind, each place of the page


async def fill(path: Path) -> dict[str, list[Entry]]:
    """Write a small file; return its entries."""
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA page_size = {PAGE}")
        db.execute("PRAGMA journal_mode = WAL")
    async with SQLiteJournal(path) as journal:
        for number in range(4):
            for key in ("a", "b", "a/" + "long " * 30):
                sizes = [1, 30, 700 if number == 2 else 5]
                entries = [
                    Entry(f"kind {n}", {key[:1]: "x" * size}) for n, size in enumerate(sizes)
                ]
                await journal.append(key, entries)
        await journal.append("gone", [Entry("k", 1)])
        await journal.delete("gone", scrub=False)
        await journal.retire("a", [2, 3, 7])
        await journal.delete("b", [1, 5], scrub=False)
        return {key: await journal.read(key, history=True) for key in await journal.sessions()}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, dict[str, list[Entry]]]:
    path = tmp_path_factory.mktemp("small") / "journal.db"
    written = anyio.run(fill, path)
    return path.read_bytes(), written


def check(path: Path, written: dict[str, list[Entry]]) -> bool:
    """Whether everything can be read; what is read must be right.

    Without the threads of the journal, as it is called for each byte of a file.
    """
    db = SQLiteDatabase(str(path), 0.1, readonly=True)
    try:
        db.open()
    except JournalError:
        return False
    try:
        calls = [keys_are_right(db, written)]
        for name, entries in written.items():
            key = Key(name, db.place)
            calls += [pages_are_right(db, key, entries), all_is_right(db, key, entries)]
        return all(calls)
    finally:
        db.close()


def attempt(db: SQLiteDatabase, work: Callable[[Transaction], T]) -> T | None:
    """What a call returns; None if it is an error of the journal."""
    try:
        return db.run("read", work)
    except JournalError:
        return None


def keys_are_right(db: SQLiteDatabase, written: dict[str, list[Entry]]) -> bool:
    found = attempt(db, lambda tx: [key.text for key, _ in sessions.every(tx, Key("", db.place))])
    assert found in (None, sorted(written))
    return found is not None


def pages_are_right(db: SQLiteDatabase, key: Key, entries: list[Entry]) -> bool:
    found: list[Entry] = []
    whole = False
    with suppress(JournalError):
        for page in pages(partial(db.run, "read"), key, Lines, 0, 4, history=True):
            found += page
            assert found == [entry for entry in entries if entry in found]
        whole = True
    assert not whole or found == entries
    return whole


def all_is_right(db: SQLiteDatabase, key: Key, entries: list[Entry]) -> bool:
    def read(tx: Transaction) -> Rows:
        return Rows.joined(pages(lambda work: work(tx), key, Rows, 0, 1000, history=False))

    rows = attempt(db, read)
    live = [(e.seq, e.kind, to_line(e.data)) for e in entries if not e.retired]
    assert rows is None or [*rows] == live
    last = attempt(db, lambda tx: sessions.find(tx, key).counts.last)
    assert last in (None, 12)
    return rows is not None and last is not None


def pieces(total: int, part: int) -> Iterator[int]:
    return iter(range(part * STEP, total, PARTS * STEP))


@pytest.mark.parametrize("part", first_of(range(PARTS), 0, 3))
def test_a_file_that_is_cut_off_anywhere(part: int, small: Any, tmp_path: Path) -> None:
    content, written = small
    path = tmp_path / "journal.db"
    for size in pieces(len(content), part):
        path.write_bytes(content[:size])
        assert not check(path, written), size


@pytest.mark.parametrize("part", first_of(range(PARTS), 0, 3))
def test_a_flipped_byte_anywhere(part: int, small: Any, tmp_path: Path) -> None:
    """Its content is what was written, or an error comes after what is before the damage."""
    content, written = small
    path = tmp_path / "journal.db"
    noticed = 0
    for place in pieces(len(content), part):
        damaged = bytearray(content)
        damaged[place] ^= (0xFF, 0x01, 0x80)[place // STEP % 3]
        path.write_bytes(damaged)
        try:
            noticed += not check(path, written)
        except BaseException as error:
            error.add_note(f"byte {place}")
            raise
    assert noticed > len(content) / STEP / PARTS / 4


def damage(path: Path, old: bytes, new: bytes) -> None:
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new, 1))


async def test_a_damaged_entry_is_named_and_what_is_before_it_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    async with SQLiteJournal(path) as journal:
        await journal.append("s", [Entry("k", f"text {n}") for n in range(9)])
        await journal.append("other", [Entry("k", 1)])
    damage(path, b"text 5", b"tExt 5")
    async with SQLiteJournal(path) as journal:
        for call in (journal.read("s"), journal.rows("s"), journal.read("s", 5)):
            with pytest.raises(JournalDamagedError, match="Entry 6 of session 's'") as caught:
                await call
            assert (caught.value.session, caught.value.seq) == ("s", 6)
        found: list[Entry] = []
        with suppress(JournalDamagedError):
            async for page in journal.pages("s", size=2):
                found += page
        assert [entry.data for entry in found] == [f"text {n}" for n in range(5)]
        assert [entry.data for entry in await journal.read("s", 6)] == [
            "text 6",
            "text 7",
            "text 8",
        ]
        assert len(await journal.read("other")) == 1


async def test_an_entry_that_is_missing_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    for gone in range(1, 6):
        async with SQLiteJournal(path) as journal:
            await journal.append("s", [Entry("k", n) for n in range(5)])
            first = (await journal.read("s"))[0].seq
        with closing(sqlite3.connect(path)) as db:
            db.execute("DELETE FROM entries WHERE seq = ?", (first + gone - 1,))
            db.commit()
        async with SQLiteJournal(path) as journal:
            with pytest.raises(JournalDamagedError):
                await journal.read("s")
            await journal.append("s", [Entry("k", 9)])
            with pytest.raises(JournalDamagedError, match="5 of the 6 entries"):
                await journal.rows("s")
            await journal.delete("s")


@pytest.mark.parametrize("index", ["sqlite_autoindex_sessions_1", "sessions_by_key"])
async def test_a_session_that_an_index_has_lost_is_not_taken_for_a_new_one(
    index: str, tmp_path: Path
) -> None:
    path = tmp_path / "journal.db"
    async with SQLiteJournal(path) as journal:
        await journal.append("s", [Entry("k", 1)])
    with closing(sqlite3.connect(path)) as db:
        root = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (index,))
        start = (root.fetchone()[0] - 1) * 4096
    content = bytearray(path.read_bytes())
    content[start + 3 : start + 5] = b"\0\0"  # the number of rows on the page
    path.write_bytes(content)
    async with SQLiteJournal(path) as journal:
        if index == "sqlite_autoindex_sessions_1":
            with pytest.raises(JournalDamagedError, match="its row is missing"):
                await journal.append("s", [Entry("k", 2)], expect=0)
        else:
            assert await journal.last("s") == 1


async def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    folder.chmod(0o500)
    if os.geteuid() == 0:  # who may write to any folder but those of the kernel
        folder = Path("/proc/self")
    async with SQLiteJournal(folder / "journal.db") as journal:
        with pytest.raises(JournalError, match="folder"):
            await journal.append("s", [Entry("k", 1)])
