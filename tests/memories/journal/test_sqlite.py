"""The SQLite file: what is on the disk, who else writes to it, and what is wrong with it."""

from __future__ import annotations

import asyncio
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from agent_brain.memories import (
    Entry,
    JournalError,
    Message,
    MessagesMemory,
    SessionConflictError,
    SQLiteJournal,
    WindowedMemory,
)
from agent_brain.memories.journal.sqlite import database

pytestmark = pytest.mark.anyio


def on_disk(path) -> bytes:
    return b"".join(file.read_bytes() for file in path.parent.iterdir() if file.is_file())


async def test_deleted_text_is_not_on_the_disk(tmp_path) -> None:
    """Pages that SQLite splits keep copies of rows that secure_delete does not reach."""
    path = tmp_path / "journal.db"
    rng = random.Random(42)
    async with SQLiteJournal(path) as journal:
        alive: dict[int, bytes] = {}
        for number in range(45):
            mark = f"MARK{number:05d}END"
            size = rng.choice([1, 50, 900, 3000, 9000])
            seq = await journal.append(rng.choice("ab"), [Entry("k", mark + "x" * size + mark)])
            alive[seq] = mark.encode()
            if rng.random() < 0.2:
                gone = rng.sample(sorted(alive), min(len(alive), rng.choice([1, 3, 20])))
                for session in "ab":
                    await journal.delete(session, gone)
                data = on_disk(path)
                assert not [seq for seq in gone if alive.pop(seq) in data]


@pytest.mark.parametrize("make", [MessagesMemory, lambda **o: WindowedMemory(max_messages=3, **o)])
async def test_forgotten_text_is_not_on_the_disk(make, tmp_path) -> None:
    path = tmp_path / "journal.db"
    async with SQLiteJournal(path) as journal:
        memory = make(journal=journal)
        await memory.set_goal("keep this")
        for number in range(30):
            secret = "SECRET " * 50 if number % 3 == 0 else "public"
            await memory.update([Message.user(f"{secret} {number}")])
            memory.control.scratch["last"] = secret
            await memory.checkpoint()
        assert b"SECRET" in on_disk(path)
        assert await memory.forget(text="secret") == 10
        assert b"SECRET" not in on_disk(path), "while the journal is open"
    assert b"SECRET" not in on_disk(path)
    assert b"keep this" in on_disk(path)
    assert b"public" in on_disk(path)


async def test_expired_text_is_not_on_the_disk(tmp_path) -> None:
    from datetime import UTC, datetime, timedelta

    path, now = tmp_path / "journal.db", datetime.now(UTC)
    async with SQLiteJournal(path) as journal:
        memory = MessagesMemory(journal=journal, clock=lambda: now)
        await memory.update([Message.user("SECRET", expires_at=now + timedelta(hours=1))])
        now += timedelta(hours=1)
        assert await memory.count() == 0
        assert b"SECRET" not in on_disk(path)


async def test_what_a_crash_kept_forget_from_finishing_is_finished(tmp_path) -> None:
    path = tmp_path / "journal.db"
    async with SQLiteJournal(path) as journal:
        memory = MessagesMemory(journal=journal)
        secret = Message.user("SECRET")
        await memory.update([secret, Message.user("public")])
        key = (await journal.sessions())[0]
        await journal.append(key, [Entry("forget", [secret.id])])
        later = MessagesMemory(journal=journal)
        assert [m.content for m in await later.messages()] == ["public"]
        assert b"SECRET" not in on_disk(path)
        await later.update([Message.user("goes on")])


WRITER = """
import sys, anyio
from agent_brain.memories import Entry, SQLiteJournal
async def main():
    async with SQLiteJournal(sys.argv[1]) as journal:
        print("ready", flush=True)
        sys.stdin.readline()
        for number in range(40):
            await journal.append("s", [Entry(sys.argv[2], number)] * 2)
anyio.run(main)
"""


async def test_two_processes_write_at_once(tmp_path) -> None:
    path = tmp_path / "journal.db"
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in "ab"
    ]
    for writer in writers:
        assert writer.stdout.readline() == "ready\n"  # type: ignore[union-attr]
    for writer in writers:
        writer.communicate("go\n", timeout=60)
        assert writer.returncode == 0
    async with SQLiteJournal(path) as journal:
        entries = await journal.read("s")
    assert len(entries) == 160
    for name in "ab":
        assert [e.data for e in entries if e.kind == name] == [n for n in range(40) for _ in "12"]
    pairs = list(zip(entries[::2], entries[1::2], strict=True))
    assert all((a.kind, a.data) == (b.kind, b.data) for a, b in pairs), "an append was split"


OTHER = """
import sys, anyio
from agent_brain.memories import Message, MessagesMemory
async def main():
    async with MessagesMemory(journal=sys.argv[1], session="s") as memory:
        await memory.update([Message.user("from the other process")])
anyio.run(main)
"""


async def test_the_second_of_two_processes_on_one_session_is_refused(tmp_path) -> None:
    path = tmp_path / "journal.db"
    async with MessagesMemory(journal=path, session="s") as memory:
        await memory.update([Message.user("mine")])
        await run_program([sys.executable, "-c", OTHER, str(path)])
        with pytest.raises(SessionConflictError, match=r"reopen\(\)") as caught:
            await memory.update([Message.user("late")])
        assert caught.value.found > caught.value.expected
        await memory.reopen()
        await memory.update([Message.user("again")])
        said = [m.content for m in await memory.messages()]
    assert said == ["mine", "from the other process", "again"]


async def run_program(command: list[str]) -> None:
    done = await anyio.run_process(command, check=True)
    assert done.returncode == 0


@pytest.mark.parametrize("content", [b"not a database at all, but long enough" * 50, b"{}"])
async def test_a_file_that_is_not_a_database_is_named(content, tmp_path) -> None:
    path = tmp_path / "journal.db"
    path.write_bytes(content)
    async with SQLiteJournal(path) as journal:
        with pytest.raises(JournalError, match=r"journal\.db.*(damaged|not a)"):
            await journal.read("s")
    assert path.read_bytes() == content


async def test_a_database_of_something_else_is_refused(tmp_path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE theirs (x)")
    db.close()
    async with SQLiteJournal(path) as journal:
        with pytest.raises(JournalError, match="something else"):
            await journal.append("s", [Entry("k", 1)])


@pytest.mark.parametrize("version", [2, 99])
async def test_another_layout_is_refused(version: int, tmp_path) -> None:
    path = tmp_path / "journal.db"
    async with SQLiteJournal(path) as journal:
        await journal.append("s", [Entry("k", 1)])
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {version}")
    db.close()
    async with SQLiteJournal(path) as journal:
        with pytest.raises(JournalError, match=f"version {version}; this library reads"):
            await journal.read("s")


async def test_a_rewriting_that_a_crash_cut_off_is_finished_at_the_next_opening(tmp_path) -> None:
    """The entries are deleted, and their bytes are still in the file when the process dies."""
    path = tmp_path / "journal.db"
    program = f"""
import os, signal, sys, anyio
from agent_brain.memories import Message, MessagesMemory, SQLiteJournal
async def main():
    journal = SQLiteJournal({str(path)!r})
    memory = MessagesMemory(journal=journal)
    await memory.update([Message.user("SECRET " * 2000), Message.user("public")])
    def die(statement):
        if statement == "VACUUM":
            os.kill(os.getpid(), signal.SIGKILL)
    journal._file.main.set_trace_callback(die)
    await memory.forget(text="SECRET")
anyio.run(main)
"""
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode == -signal.SIGKILL
    assert b"SECRET" in on_disk(path)
    async with SQLiteJournal(path) as journal:
        assert len(await journal.sessions()) == 1  # any use opens it
        assert b"SECRET" not in on_disk(path)
        later = MessagesMemory(journal=journal)
        assert [m.content for m in await later.messages()] == ["public"]
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT to_scrub - scrubbed FROM journal").fetchone() == (0,)


async def test_an_interrupted_rewriting_that_fails_again_does_not_keep_the_journal_shut(
    tmp_path, caplog
) -> None:
    path = tmp_path / "journal.db"
    async with SQLiteJournal(path) as journal:
        seq = await journal.append("s", [Entry("k", "SECRET"), Entry("k", "public")])
        with closing(sqlite3.connect(path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM entries").fetchall()
            with pytest.raises(JournalError, match="being read by another process"):
                await SQLiteJournal(path, busy_timeout=0.01).delete("s", [seq - 1])
            async with SQLiteJournal(path, busy_timeout=0.01) as later:
                assert [entry.data for entry in await later.read("s")] == ["public"]
        assert "could not be wiped" in caplog.text
        assert b"SECRET" in on_disk(path)
    async with SQLiteJournal(path) as journal:
        await journal.read("s")
        assert b"SECRET" not in on_disk(path)


@pytest.mark.parametrize("which", ["journal.db", "journal.db-wal"])
@pytest.mark.parametrize("how", ["deleted", "replaced"])
async def test_a_file_that_goes_away_while_it_is_open_is_noticed(which, how, tmp_path) -> None:
    path = tmp_path / "journal.db"
    async with MessagesMemory(journal=path) as memory:
        await memory.update([Message.user("kept")])
        (tmp_path / which).rename(tmp_path / "aside")
        if how == "replaced":
            (tmp_path / which).write_bytes((tmp_path / "aside").read_bytes())
        for _ in range(2):
            with pytest.raises(JournalError, match=f"{which}.*{how}.*while it was open"):
                await memory.update([Message.user("lost")])
            with pytest.raises(JournalError, match=how):
                await memory.reopen()
        (tmp_path / "aside").rename(tmp_path / which)
        await memory.reopen()
        await memory.update([Message.user("goes on")])
    async with MessagesMemory(journal=path) as later:
        assert [m.content for m in await later.messages()] == ["kept", "goes on"]


async def test_a_file_that_goes_away_during_a_write_is_noticed(tmp_path, monkeypatch) -> None:
    path, aside = tmp_path / "journal.db", tmp_path / "aside"
    going: list[Path] = []
    real = database._clock

    def clock() -> int:
        while going:
            going.pop().rename(aside)
        return real()

    monkeypatch.setattr(database, "_clock", clock)
    async with SQLiteJournal(path) as journal:
        await journal.append("s", [Entry("a", 1)])
        going.append(path)
        with pytest.raises(JournalError, match=r"journal\.db.*deleted.*while it was open"):
            await journal.append("s", [Entry("a", 2)])
        aside.rename(path)


async def test_a_program_that_changes_its_folder_keeps_its_journal(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with MessagesMemory(journal="journal.db") as memory:
        await memory.update([Message.user("one")])
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        await memory.update([Message.user("two")])
    assert not (tmp_path / "elsewhere" / "journal.db").exists()


async def test_a_journal_in_ram_has_no_file(
    tmp_path,
) -> None:
    async with SQLiteJournal(":memory:") as journal:
        await journal.append("s", [Entry("k", 1)])
        assert await journal.last("s") == 1
    assert [*tmp_path.iterdir()] == []


async def test_a_full_disk_is_not_reported_as_damage_and_the_journal_continues_afterwards(
    tmp_path,
) -> None:
    path = tmp_path / "journal.db"
    async with SQLiteJournal(path) as journal:
        memory = MessagesMemory(journal=journal)
        await memory.update([Message.user("kept")])
        connection = journal._file.main
        assert connection is not None
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(JournalError, match=r"no room.*free space") as caught:
            await memory.update([Message.user("too much " * 10_000)])
        assert "damaged" not in str(caught.value)
        connection.execute("PRAGMA max_page_count = 1000000")
        await memory.update([Message.user("room again")])
        assert [m.content for m in await memory.messages()] == ["kept", "room again"]


LIMITED = """
import resource, signal, sys, anyio
from agent_brain.memories import JournalError, Message, MessagesMemory
async def main():
    async with MessagesMemory(journal=sys.argv[1]) as memory:
        await memory.update([Message.user("kept")])
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
        try:
            await memory.update([Message.user("x" * 1_000_000)])
        except JournalError as error:
            print(error)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        await memory.update([Message.user("goes on")])
        print([m.content for m in await memory.messages()])
anyio.run(main)
"""


async def test_an_error_of_the_disk_is_not_reported_as_damage(tmp_path) -> None:
    """The operating system refuses to write any further."""
    path = tmp_path / "journal.db"
    done = await anyio.run_process([sys.executable, "-c", LIMITED, str(path)], check=True)
    error, said = done.stdout.decode().splitlines()
    assert "Leave the file" in error
    assert "damaged" not in error
    assert said == "['kept', 'goes on']"


async def test_a_text_that_is_not_utf8_is_damage_and_is_not_quoted(tmp_path) -> None:
    path = tmp_path / "journal.db"
    async with SQLiteJournal(path) as journal:
        await journal.append("s", [Entry("k", "my secret")])
    path.write_bytes(path.read_bytes().replace(b"my secret", b"my secr\xfft"))
    async with SQLiteJournal(path) as journal:
        with pytest.raises(JournalError, match=r"journal\.db.*damaged.*backup") as caught:
            await journal.read("s")
        assert "my secr" not in str(caught.value)


async def test_a_file_that_may_not_be_written_is_named(tmp_path) -> None:
    path = tmp_path / "journal.db"
    async with SQLiteJournal(path) as journal:
        await journal.append("s", [Entry("k", 1)])
        connection = journal._file.main
        assert connection is not None
        connection.execute("PRAGMA query_only = ON")  # as on a file system mounted read-only
        with pytest.raises(JournalError, match=r"may not be written to.*readonly=True") as caught:
            await journal.append("s", [Entry("k", 2)])
        assert "damaged" not in str(caught.value)
        connection.execute("PRAGMA query_only = OFF")
        await journal.append("s", [Entry("k", 2)])


async def test_a_journal_that_stays_locked_is_not_reported_as_damage(tmp_path) -> None:
    path = tmp_path / "journal.db"
    async with SQLiteJournal(path, busy_timeout=0.01) as journal:
        await journal.append("s", [Entry("k", 1)])
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(JournalError, match="locked by another process"):
                await journal.append("s", [Entry("k", 2)])
        await journal.append("s", [Entry("k", 2)])


@pytest.mark.parametrize("how", ["backup", "vacuum"])
async def test_a_backup_of_a_journal_in_use_is_whole(how, tmp_path) -> None:
    source, target = tmp_path / "journal.db", tmp_path / "copy.db"
    async with MessagesMemory(journal=source) as memory:
        await memory.update([Message.user(str(n)) for n in range(20)])
        with closing(sqlite3.connect(source)) as db:
            if how == "vacuum":
                db.execute("VACUUM INTO ?", (str(target),))
            else:
                with closing(sqlite3.connect(target)) as copy:
                    db.backup(copy)
        await memory.update([Message.user("later")])
    async with MessagesMemory(journal=target) as copy_memory:
        assert [m.content for m in await copy_memory.messages()] == [str(n) for n in range(20)]
        await copy_memory.update([Message.user("it can be written")])


async def test_a_missing_folder_is_named(tmp_path) -> None:
    async with SQLiteJournal(tmp_path / "no" / "journal.db") as journal:
        with pytest.raises(JournalError, match="folder"):
            await journal.read("s")


async def test_a_truncated_file_is_an_error_and_not_an_empty_memory(tmp_path) -> None:
    path = tmp_path / "journal.db"
    async with SQLiteJournal(path) as journal:
        memory = MessagesMemory(journal=journal)
        await memory.update([Message.user(f"{n} " * 500) for n in range(100)])
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    async with SQLiteJournal(path) as journal:
        with pytest.raises(JournalError, match="damaged"):
            await MessagesMemory(journal=journal).messages()


async def test_an_entry_that_nobody_knows_is_an_error(tmp_path) -> None:
    async with SQLiteJournal(tmp_path / "journal.db") as journal:
        await MessagesMemory(journal=journal).update([Message.user("x")])
        key = (await journal.sessions())[0]
        await journal.append(key, [Entry("from the future", 1)])
        with pytest.raises(JournalError, match="newer version"):
            await MessagesMemory(journal=journal).open()


async def test_much_at_once(tmp_path) -> None:
    async with SQLiteJournal(tmp_path / "journal.db") as journal:
        memory = MessagesMemory(journal=journal)
        many = [Message.user(f"{number}\x00汉") for number in range(6000)]
        await memory.update([*many, Message.user("x" * 1_000_000), Message.user("")])
        later = MessagesMemory(journal=journal)
        assert await later.messages() == await memory.messages()


async def test_many_checkpoints_do_not_slow_down_opening(tmp_path) -> None:
    async with SQLiteJournal(tmp_path / "journal.db") as journal:
        memory = MessagesMemory(journal=journal)
        await memory.set_goal("goal")
        for step in range(600):
            memory.control.step = step
            await memory.checkpoint()
        key = (await journal.sessions())[0]
        assert len(await journal.read(key)) < 200
        later = MessagesMemory(journal=journal)
        await later.open()
        assert later.control.step == 599


async def test_an_unchanged_checkpoint_writes_nothing(tmp_path) -> None:
    async with SQLiteJournal(tmp_path / "journal.db") as journal:
        memory = MessagesMemory(journal=journal)
        await memory.checkpoint()
        key = (await journal.sessions())[0]
        before = await journal.last(key)
        await memory.checkpoint()
        assert await journal.last(key) == before


def test_the_outcome_of_an_append_that_a_task_cancel_cuts_off_is_found_out(tmp_path) -> None:
    """A shield does not delay Task.cancel(): the thread may write although nobody waits."""

    async def run() -> None:
        journal = SQLiteJournal(tmp_path / "journal.db")
        memory = MessagesMemory(journal=journal)
        await memory.open()
        held, inside = threading.Event(), threading.Event()
        connection = journal._file.main
        assert connection is not None

        def hold(statement: str) -> None:
            inside.set()
            held.wait(30)

        connection.set_trace_callback(hold)
        batch = [Message.user("one"), Message.user("two")]
        task = asyncio.create_task(memory.update(batch))
        await asyncio.to_thread(inside.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        held.set()
        assert await memory.messages() == batch
        await memory.update([Message.user("three")])
        assert len(await MessagesMemory(journal=journal).messages()) == 3
        await journal.aclose()

    asyncio.run(run())


def test_one_journal_serves_one_loop_after_the_other(tmp_path) -> None:
    journal = SQLiteJournal(tmp_path / "journal.db")
    memory = MessagesMemory(journal=journal)
    for backend in ("asyncio", "trio", "asyncio"):
        anyio.run(memory.update, [Message.user(backend)], backend=backend)
    assert anyio.run(memory.count) == 3
    anyio.run(journal.aclose)
