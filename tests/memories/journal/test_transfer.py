"""Sessions move from one journal to another, and out of damaged ones."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agent_brain.memories import (
    Entry,
    Journal,
    JournalConflictError,
    JournalError,
    Message,
    MessagesMemory,
    RamJournal,
    SQLiteJournal,
    session_key,
)
from agent_brain.memories.errors import JournalDamagedError
from agent_brain.memories.journal.salvage import salvage
from agent_brain.memories.journal.transfer import export_session, import_session
from agent_brain.memories.store.session import branch_key

pytestmark = pytest.mark.anyio

JOURNALS: dict[str, Callable[[Path], Journal]] = {
    "ram": lambda folder: RamJournal(),
    "sqlite": lambda folder: SQLiteJournal(folder / "target.db"),
}


async def fill(journal: Journal, session: str = "s") -> list[Entry]:
    """A session with a gap, a history, versions and odd data."""
    data: list[Any] = [None, "a\x00汉\n\u2028", 1.5, {"a": [True, {}]}, 2**70, -0.0]
    await journal.append(session, [Entry(f"k{n}\n", d, version=n + 1) for n, d in enumerate(data)])
    await journal.retire(session, [2, 4])
    await journal.delete(session, [3], scrub=False)
    return await journal.read(session, history=True)


async def lines_of(journal: Journal, session: str = "s") -> list[str]:
    return [line async for line in export_session(journal, session)]


@pytest.mark.parametrize("there", JOURNALS)
@pytest.mark.parametrize("here", JOURNALS)
async def test_a_session_moves_between_journals(here: str, there: str, tmp_path: Path) -> None:
    source = JOURNALS[here](tmp_path) if here == "ram" else SQLiteJournal(tmp_path / "source.db")
    async with source, JOURNALS[there](tmp_path) as target:
        entries = await fill(source)
        lines = await lines_of(source)
        assert all("\n" not in line for line in lines)
        assert await import_session(target, lines) == "s"
        assert await target.read("s", history=True) == entries
        assert await target.read("s") == await source.read("s")
        assert await target.last("s") == await source.last("s")
        assert await lines_of(target) == lines
        assert await import_session(target, export_session(source, "s"), "copy") == "copy"
        assert await target.read("copy", history=True) == entries


async def test_a_memory_moves_between_journals(tmp_path: Path) -> None:
    source = RamJournal()
    memory = MessagesMemory(journal=source)
    await memory.update([Message.user(f"{n}") for n in range(5)])
    async with SQLiteJournal(tmp_path / "journal.db") as target:
        for key in await source.sessions():
            await import_session(target, export_session(source, key))
        later = MessagesMemory(journal=target)
        assert await later.messages() == await memory.messages()
        await later.update([Message.user("more")])


@pytest.mark.parametrize("journal", JOURNALS)
async def test_a_session_that_exists_is_not_added_to(journal: str, tmp_path: Path) -> None:
    async with JOURNALS[journal](tmp_path) as target:
        entries = await fill(target)
        with pytest.raises(JournalConflictError):
            await import_session(target, await lines_of(target))
        assert await target.read("s", history=True) == entries


WRONG: dict[str, tuple[Callable[[list[str]], list[str]], str]] = {
    "nothing": (lambda lines: [], "no session"),
    "another file": (lambda lines: ["{}", *lines], "Line 1: .*start of a session"),
    "no JSON": (lambda lines: [*lines[:2], "{", *lines[2:]], "Line 3: .*not an entry"),
    "cut off": (lambda lines: lines[:-1], "cut off after 5 entries"),
    "cut off in a line": (lambda lines: [*lines[:-2], lines[-2][:9]], "Line 6"),
    "an entry is missing": (lambda lines: lines[:2] + lines[3:], "had 5 entries, and 4 came"),
    "twice": (lambda lines: lines[:3] + lines[2:], "Line 4: number 2 comes after 2"),
    "more": (lambda lines: [*lines, lines[-1]], "Line 8: there is nothing after"),
    "another version": (
        lambda lines: [lines[0].replace('"version":1', '"version":3'), *lines[1:]],
        "version 3 of the format",
    ),
}


@pytest.mark.parametrize("name", WRONG)
async def test_wrong_lines_are_named_and_nothing_is_written(name: str) -> None:
    change, message = WRONG[name]
    source, target = RamJournal(), RamJournal()
    await fill(source)
    with pytest.raises(JournalError, match=message):
        await import_session(target, change(await lines_of(source)))
    assert await target.sessions() == []


# Sessions with branches

KEY, PLACES = session_key("s"), (("run", "1", "a"), ("run", "1", "b", "run", "0", "c"))


async def branching() -> RamJournal:
    """A session with a branch, and a branch of one."""
    source = RamJournal()
    for key in (KEY, *(branch_key(KEY, *place) for place in PLACES)):
        await fill(source, key)
    return source


@pytest.mark.parametrize("there", JOURNALS)
async def test_branches_move_with_their_session(there: str, tmp_path: Path) -> None:
    source, other = await branching(), session_key("other", "ann")
    await fill(source, session_key("s 2"))
    async with JOURNALS[there](tmp_path) as target:
        await fill(target, branch_key(other, "left"))  # of an import that was cut off
        assert await import_session(target, export_session(source, KEY), other) == other
        keys = [branch_key(other, *place) for place in PLACES]
        assert await target.sessions() == sorted([other, *keys])
        for place, key in zip(PLACES, keys, strict=True):
            whole = await source.read(branch_key(KEY, *place), history=True)
            assert await target.read(key, history=True) == whole
        with pytest.raises(JournalConflictError):
            await import_session(target, export_session(source, KEY), other)
        assert len(await target.sessions()) == 3


async def test_an_import_that_fails_at_a_branch_leaves_nothing() -> None:
    class Full(RamJournal):
        async def load(self, session: str, entries: Sequence[Entry]) -> None:
            if session == branch_key(KEY, *PLACES[-1]):
                raise JournalError("full")
            await super().load(session, entries)

    target = Full()
    with pytest.raises(JournalError, match="full"):
        await import_session(target, export_session(await branching(), KEY))
    assert await target.sessions() == []


WRONG_BRANCHES: dict[str, tuple[Callable[[list[str]], list[str]], str]] = {
    "twice": (lambda lines: lines[:-1] + lines[6:], "Line 19: branch 'run/1/a' comes twice"),
    "no name": (lambda lines: [*lines[:6], '{"branch":[]}', *lines[6:]], "Line 7: "),
    "a number": (lambda lines: [*lines[:6], '{"branch":[1]}', *lines[6:]], "Line 7: "),
    "an entry is missing": (lambda lines: lines[:8] + lines[9:], "had 15 entries, and 14 came"),
    "one is missing": (lambda lines: lines[:6] + lines[7:], "Line"),
    "cut off": (lambda lines: lines[:9], "cut off after 7 entries"),
}


@pytest.mark.parametrize("name", WRONG_BRANCHES)
async def test_wrong_lines_of_branches_are_named(name: str) -> None:
    change, message = WRONG_BRANCHES[name]
    target = RamJournal()
    with pytest.raises(JournalError, match=message):
        await import_session(target, change(await lines_of(await branching(), KEY)))
    assert await target.sessions() == []


async def test_branches_need_the_key_of_a_memory() -> None:
    source, target = await branching(), RamJournal()
    with pytest.raises(JournalError, match="has branches, and 'odd' is not"):
        await import_session(target, export_session(source, KEY), "odd")
    assert await target.sessions() == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("seq", 0),
        ("seq", "1"),
        ("kind", None),
        ("version", 0),
        ("time", "2026-01-01T00:00:00"),
        ("time", "yesterday"),
        ("retired", 1),
        ("more", 1),
    ],
)
async def test_a_wrong_field_is_named(field: str, value: Any) -> None:
    source, target = RamJournal(), RamJournal()
    await source.append("s", [Entry("k", "SECRET")])
    header, line, end = await lines_of(source)
    changed = json.dumps({**json.loads(line), field: value})
    with pytest.raises(JournalError, match=f"Line 2: .*{field}") as caught:
        await import_session(target, [header, changed, end])
    assert "SECRET" not in str(caught.value)
    assert await target.sessions() == []


# Damaged journals


async def damaged_file(path: Path) -> dict[str, list[Entry]]:
    """Write three sessions and damage an entry of one; return what they had."""
    async with SQLiteJournal(path) as journal:
        for key in ("a", "b", "c"):
            await journal.append(key, [Entry("k", f"{key} text {n}") for n in range(300)])
            await journal.retire(key, [2, 3])
        written = {key: await journal.read(key, history=True) for key in ("a", "b", "c")}
    content = path.read_bytes()
    path.write_bytes(content.replace(b"b text 200", b"b tExt 200"))
    return written


@pytest.mark.parametrize("target_is", JOURNALS)
async def test_what_is_before_the_damage_is_copied(target_is: str, tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    written = await damaged_file(path)
    before = path.read_bytes()
    async with (
        SQLiteJournal(path, readonly=True) as source,
        JOURNALS[target_is](tmp_path) as target,
    ):
        report = await salvage(source, target)
        assert report.problem is None
        counts = [(one.key, one.entries, one.last) for one in report.sessions]
        assert counts == [("a", 300, 300), ("b", 200, 200), ("c", 300, 300)]
        problems = [one.problem for one in report.sessions]
        assert problems[::2] == [None, None]
        assert "Entry 201 of session 'b'" in str(problems[1])
        for one in report.sessions:
            assert await target.read(one.key, history=True) == written[one.key][: one.entries]
        again = await salvage(source, target)
        assert {one.problem for one in again.sessions} == {"The target has this session already"}
    assert path.read_bytes() == before


async def test_a_damaged_history_does_not_hide_the_entries_in_use(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    written = await damaged_file(path)
    path.write_bytes(path.read_bytes().replace(b"a text 1\x22", b"a tExt 1\x22"))
    async with SQLiteJournal(path, readonly=True) as source:
        target = RamJournal()
        report = await salvage(source, target, "a")
        assert "Entry 2" in str(report.sessions[0].problem)
        live = [entry for entry in written["a"] if not entry.retired]
        assert await target.read("a") == live


@pytest.mark.parametrize("table", ["sessions", "sessions_by_key", "sqlite_autoindex_sessions_1"])
async def test_sessions_are_found_in_whichever_table_can_be_read(
    table: str, tmp_path: Path
) -> None:
    path = tmp_path / "journal.db"
    async with SQLiteJournal(path) as journal:
        for key in "abc":
            await journal.append(key, [Entry("k", n) for n in range(5)])
    with closing(sqlite3.connect(path)) as db:
        root = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,))
        start = (root.fetchone()[0] - 1) * 4096
    content = bytearray(path.read_bytes())
    content[start] ^= 0xFF  # the kind of the page
    path.write_bytes(content)
    async with SQLiteJournal(path, readonly=True) as source:
        target = RamJournal()
        report = await salvage(source, target)
        if table == "sessions":
            assert report.problem
        assert [one.key for one in report.sessions] == [*"abc"]
        for one in report.sessions:
            assert one.entries == 5


async def test_a_damaged_row_of_a_session_does_not_hide_its_entries(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    async with SQLiteJournal(path) as journal:
        await journal.append("s", [Entry("k", n) for n in range(5)])
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE sessions SET last = 3")
        db.commit()
    async with SQLiteJournal(path, readonly=True) as source:
        with pytest.raises(JournalDamagedError, match="checksum of its row"):
            await source.last("s")
        target = RamJournal()
        report = await salvage(source, target)
        assert report.problem
        assert [(one.key, one.entries) for one in report.sessions] == [("s", 5)]
        assert "after entry 5" in str(report.sessions[0].problem)


async def test_a_source_that_may_be_written_to_is_refused(tmp_path: Path) -> None:
    async with SQLiteJournal(tmp_path / "journal.db") as source:
        with pytest.raises(JournalError, match="readonly=True"):
            await salvage(source, RamJournal())


async def test_a_journal_of_another_kind_is_salvaged_too() -> None:
    class Damaged(RamJournal):
        async def pages(
            self, session: str, *args: Any, **options: Any
        ) -> AsyncGenerator[Any, None]:
            yield (await super().read(session, history=True))[:2]
            raise JournalDamagedError("damaged", session=session)

    source, target = Damaged(), RamJournal()
    await fill(source)
    report = await salvage(source, target)
    assert [(one.entries, one.problem) for one in report.sessions] == [(2, "damaged")]
    assert len(await target.read("s", history=True)) == 2
