"""Files of older versions are read as they are, and brought to the present layout."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_brain.memories import Entry, JournalError, SQLiteJournal
from tests.memories.journal.fixtures.make import ODD, found

pytestmark = pytest.mark.anyio

FIXTURES = Path(__file__).parent / "fixtures"
LAYOUTS = sorted(folder.name for folder in FIXTURES.glob("layout_*"))
FILES = ["journal.db", "killed.db"]


@pytest.fixture(params=LAYOUTS)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(shutil.copytree(FIXTURES / request.param, tmp_path / "copy"))


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A file of layout 1."""
    return Path(shutil.copytree(FIXTURES / "layout_1", tmp_path / "old")) / "journal.db"


def expected(folder: Path, name: str) -> dict[str, Any]:
    return json.loads((folder / "expected.json").read_text(encoding="utf-8"))[name]


def has(found: Any, expected: Any) -> bool:
    """Whether everything expected is found; newer versions add fields."""
    if isinstance(expected, dict):
        return all(key in found and has(found[key], value) for key, value in expected.items())
    if isinstance(expected, list) and isinstance(found, list):
        return len(found) == len(expected) and all(map(has, found, expected))
    return found == expected


def version(path: Path) -> int:
    with closing(sqlite3.connect(path)) as db:
        return db.execute("PRAGMA user_version").fetchone()[0]


@pytest.mark.parametrize("name", FILES)
async def test_a_file_is_read_as_it_is(name: str, folder: Path) -> None:
    before = (folder / name).read_bytes()
    read = await found(folder / name, readonly=True)
    wanted = expected(folder, name)
    assert has(read["entries"], wanted["entries"])
    assert has(read["memories"], wanted["memories"])
    assert (folder / name).read_bytes() == before


@pytest.mark.parametrize("name", FILES)
async def test_a_file_is_brought_to_the_present_layout(name: str, folder: Path) -> None:
    wanted = expected(folder, name)
    for _ in range(2):
        read = await found(folder / name)
        assert has(read["entries"], wanted["entries"])
        assert has(read["memories"], wanted["memories"])
    assert version(folder / name) == 2


async def test_a_session_of_an_older_layout_goes_on_with_its_numbers(folder: Path) -> None:
    sessions = expected(folder, "journal.db")["entries"]
    async with SQLiteJournal(folder / "journal.db") as journal:
        last = sessions[""]["last"]
        assert await journal.append("", [Entry("k", 1)], expect=last) == last + 1
        await journal.append("new", [Entry("k", 1)], expect=0)
        await journal.retire("", [last + 1])
        assert [e.seq for e in await journal.read("", last, history=True)] == [last + 1]
        assert {record.key for record in await journal.records()} == {*sessions, "new"}


async def test_a_new_session_has_no_number_that_an_older_layout_has_given(old: Path) -> None:
    sessions = expected(old.parent, "journal.db")["entries"]
    async with SQLiteJournal(old) as journal:
        last = await journal.append("new", [Entry("k", 1)], expect=0)
        assert last > max(session["last"] for session in sessions.values())


async def test_times_that_an_older_layout_did_not_have_are_unknown(old: Path) -> None:
    async with SQLiteJournal(old) as journal:
        assert {entry.time for entry in await journal.read("")} == {None}
        record = (await journal.records(ODD[1]))[0]
        assert (record.created, record.updated, record.entries) == (None, None, 7)
        await journal.append(ODD[1], [Entry("k", 1)])
        record = (await journal.records(ODD[1]))[0]
        assert record.created is None
        assert record.updated is not None


async def test_records_of_an_older_layout_are_read_as_it_is(old: Path) -> None:
    async with SQLiteJournal(old, readonly=True) as journal:
        wanted = expected(old.parent, "journal.db")["entries"]
        counts = {record.key: record.entries for record in await journal.records()}
        assert counts == {key: len(session["entries"]) for key, session in wanted.items()}
        pages = [page async for page in journal.pages(ODD[1], size=3)]
        assert [entry for page in pages for entry in page] == await journal.read(ODD[1])
        assert [len(page) for page in pages] == [3, 3, 1]


async def test_a_viewer_of_a_file_that_another_process_upgrades_goes_on(old: Path) -> None:
    async with SQLiteJournal(old, readonly=True) as viewer:
        before = await viewer.read("")
        async with SQLiteJournal(old) as journal:
            await journal.append("", [Entry("k", "new")])
            assert await viewer.read("") == await journal.read("")
        assert (await viewer.read(""))[:-1] == before


# What the version before executes first in each call.
OLD_CALLS = {
    "last": "SELECT last FROM sessions WHERE key = ?",
    "rows": "SELECT seq, kind, data FROM entries WHERE session = (SELECT id FROM sessions WHERE key = ?)",
    "delete": "DELETE FROM entries WHERE session = (SELECT id FROM sessions WHERE key = ?)",
}


@pytest.mark.parametrize("call", OLD_CALLS)
async def test_an_old_process_that_has_the_file_open_gets_an_error(call: str, old: Path) -> None:
    with closing(sqlite3.connect(old, isolation_level=None)) as process:
        process.execute("SELECT last FROM sessions WHERE key = ''").fetchone()
        async with SQLiteJournal(old) as journal:
            before = await journal.read("")
            with pytest.raises(sqlite3.OperationalError, match=r"restart this process|is a view"):
                process.execute(OLD_CALLS[call], ("",))
            assert await journal.read("") == before


def test_many_processes_upgrade_a_file_at_once(old: Path) -> None:
    program = """
import sys, anyio
from agent_brain.memories import Entry, SQLiteJournal
async def main():
    async with SQLiteJournal(sys.argv[1]) as journal:
        await journal.append("", [Entry("k", sys.argv[2])])
anyio.run(main)
"""
    command = [sys.executable, "-c", program, str(old)]
    processes = [subprocess.Popen([*command, f"{n}"]) for n in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    read = anyio.run(found, old)
    wanted = expected(old.parent, "journal.db")["entries"]
    assert read["entries"][""]["entries"][:5] == wanted[""]["entries"]
    assert sorted(data for _, _, data in read["entries"][""]["entries"][5:]) == [*"0123"]


def test_a_kill_at_any_point_of_the_upgrade_leaves_one_layout_or_the_other(old: Path) -> None:
    program = """
import os, signal, sqlite3, sys
from agent_brain.memories.journal import sqlite_file, sqlite_layout1
left = int(sys.argv[2])
upgrade = sqlite_layout1.upgrade
def count_down(statement):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
def watched(db):
    db.set_trace_callback(count_down)
    upgrade(db)
sqlite_layout1.upgrade = watched
for path in sys.argv[3:]:
    pid = os.fork()
    if not pid:
        sqlite_file.connect(path, 5)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    left += int(sys.argv[1])
    if status == 0:
        print(path)
        break
"""
    copies = []
    for number in range(60):
        copy = old.with_name(f"{number}.db")
        shutil.copy(old, copy)
        copies.append(str(copy))
    done = subprocess.run(
        [sys.executable, "-c", program, "7", "0", *copies], capture_output=True, check=True
    )
    first = done.stdout.decode().strip()
    assert first, "it came to its end"
    wanted = expected(old.parent, "journal.db")["entries"]
    killed = copies[: copies.index(first)]
    assert [version(Path(path)) for path in killed].count(1) > 10
    for path in killed:
        assert version(Path(path)) in (1, 2)
        assert has(anyio.run(found, Path(path))["entries"], wanted)


async def test_a_full_disk_leaves_the_old_layout(old: Path) -> None:
    program = """
import resource, signal, sys, anyio
from agent_brain.memories import JournalError, SQLiteJournal
async def main():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, resource.RLIM_INFINITY))
    try:
        await SQLiteJournal(sys.argv[1]).read("")
    except JournalError as error:
        print(error)
anyio.run(main)
"""
    done = await anyio.run_process([sys.executable, "-c", program, str(old)])
    assert "free space" in done.stdout.decode()
    wanted = expected(old.parent, "journal.db")["entries"]
    assert (await found(old, readonly=True))["entries"].keys() == wanted.keys()
    assert version(old) == 1
    assert (await found(old))["entries"].keys() == wanted.keys()


async def test_a_damaged_file_of_an_older_layout_is_left_as_it_is(old: Path) -> None:
    damaged = old.read_bytes().replace("汉字 '".encode(), b"\xff" * 8, 1)
    old.write_bytes(damaged)
    async with SQLiteJournal(old) as journal:
        with pytest.raises(JournalError, match="damaged"):
            await journal.sessions()
    assert version(old) == 1
    assert old.read_bytes() == damaged
