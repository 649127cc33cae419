"""Changes of many messages let other tasks of the event loop run meanwhile."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any
from weakref import ReferenceType, ref

import anyio
import pytest

from agent_brain.memories import (
    Entry,
    Message,
    MessagesMemory,
    RamJournal,
    SQLiteJournal,
    StoredMemory,
)
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.journal.lease import Lease
from agent_brain.memories.journal.transfer import export_session, import_session
from agent_brain.memories.sessions.copies import copy_at
from agent_brain.memories.store.session import session_key
from agent_brain.memories.views.base import View

pytestmark = pytest.mark.anyio

MANY = 5_000
MOST = 1_000  # messages that change between two turns of a task, whatever order tasks have


class Turns:
    """Counts the turns of the event loop, and what happens in each."""

    def __init__(self) -> None:
        self.now = 0
        self.changed: Counter[int] = Counter()  # messages, by turn
        self.planned = 0  # the turn in which what is to be added was counted
        self.waited: list[int] = []  # turns until it was given to the journal

    async def count(self) -> None:
        while True:
            self.now += 1
            await anyio.lowlevel.checkpoint()


class Counting(View):
    """Tells how many messages are added and removed, and when."""

    tail: int | None = 0

    def __init__(self, turns: Turns) -> None:
        self.turns = turns

    def measure(self, messages: Sequence[Message], values: Iterable[Any] = ()) -> None:
        self.turns.planned = self.turns.now

    def add(self, messages: Sequence[Message]) -> None:
        self.turns.changed[self.turns.now] += len(messages)

    def remove(self, messages: Sequence[Message]) -> None:
        self.turns.changed[self.turns.now] += len(messages)


class Watched(SQLiteJournal):
    """Tells when entries arrive that were made of many messages."""

    turns: Turns

    async def append(
        self,
        session: str,
        entries: Sequence[Entry],
        *,
        expect: int | None = None,
        lease: Lease | None = None,
    ) -> int:
        if len(entries) > MOST:
            self.turns.waited.append(self.turns.now - self.turns.planned)
        return await super().append(session, entries, expect=expect, lease=lease)


Work = Callable[[StoredMemory, Watched], Awaitable[object]]
CHANGES: dict[str, Work] = {
    "update": lambda memory, _: memory.update([Message.user(f"more {n}") for n in range(MANY)]),
    "fork": lambda memory, journal: memory.fork(journal=journal, session="copy"),
    "forget": lambda memory, _: memory.forget(role="user"),
    "delete": lambda memory, _: memory.delete([str(number) for number in range(MANY)]),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_other_tasks_run_between_the_parts_of_a_change_of_many_messages(
    change: str, tmp_path: Path
) -> None:
    turns = Turns()
    async with Watched(tmp_path / "journal.db", durability="os") as journal:
        journal.turns = turns
        memory = MessagesMemory(views=[Counting(turns)], journal=journal)
        await memory.update([Message.user(f"text {n}", id=str(n)) for n in range(MANY)])
        turns.changed.clear()
        turns.waited.clear()
        async with anyio.create_task_group() as group:
            group.start_soon(turns.count)
            await CHANGES[change](memory, journal)
            group.cancel_scope.cancel()
        assert sum(turns.changed.values()) >= MANY
        assert max(turns.changed.values()) <= MOST
        assert min(turns.waited, default=1) > 0, "the entries were made on the event loop"
        assert bool(turns.waited) == (change in ("update", "fork"))
        later = MessagesMemory(journal=journal, session="copy" if change == "fork" else "default")
        left = {"update": 2 * MANY, "fork": MANY, "forget": 0, "delete": 0}
        assert await later.count() == left[change]
        assert await memory.count() == (MANY if change == "fork" else left[change])


RAM_WORK: dict[str, Callable[[RamJournal, list[Entry]], Awaitable[object]]] = {
    "append": lambda journal, made: journal.append("more", made),
    "load": lambda journal, made: journal.load("more", made),
    "read": lambda journal, _: journal.read("s"),
    "rows": lambda journal, _: journal.rows("s"),
}


@pytest.mark.parametrize("work", RAM_WORK)
async def test_other_tasks_run_while_a_journal_in_ram_reads_and_writes_many_entries(
    work: str,
) -> None:
    turns, journal = Turns(), RamJournal()
    made = [Entry("message", {"text": f"text {n}"}, n) for n in range(1, MANY + 1)]
    await journal.append("s", made)
    async with anyio.create_task_group() as group:
        group.start_soon(turns.count)
        await anyio.lowlevel.checkpoint()
        before = turns.now
        await RAM_WORK[work](journal, made)
        assert turns.now > before
        group.cancel_scope.cancel()
    assert [entry.data for entry in await journal.read("s")] == [entry.data for entry in made]
    if work in ("append", "load"):
        assert len(await journal.rows("more")) == MANY


def lines_run(frame: FrameType, lines: Counter[str]) -> Callable[..., Any]:
    """Count the lines that are run on the event loop, by file."""

    def note(frame: FrameType, event: str, _: object) -> Callable[..., Any]:
        lines[Path(frame.f_code.co_filename).name] += event == "line"
        return note

    frame.f_trace = note
    return note


async def test_a_journal_in_ram_does_nothing_for_each_of_many_entries_on_the_event_loop() -> None:
    journal, lines = RamJournal(), Counter[str]()
    made = [Entry("message", {"text": f"text {n}"}) for n in range(MANY)]
    before = sys.gettrace()
    sys.settrace(lambda frame, *_: lines_run(frame, lines))
    try:
        assert await journal.append("s", made) == MANY
    finally:
        sys.settrace(before)
    assert 0 < lines["ram.py"] < 100


async def test_many_entries_are_numbered_behind_what_is_appended_meanwhile() -> None:
    journal = RamJournal()
    await journal.append("gone", [Entry("x", 0)] * 3)
    await journal.delete("gone")
    several = {"a": MANY, "b": MANY, "c": 1, "d": 600}

    async with anyio.create_task_group() as group:
        for name, count in several.items():
            group.start_soon(journal.append, "s", [Entry(name, n) for n in range(count)])
    found = await journal.read("s")
    assert [entry.seq for entry in found] == [*range(4, 4 + sum(several.values()))]
    for name, count in several.items():
        assert [entry.data for entry in found if entry.kind == name] == [*range(count)]


async def test_other_tasks_run_while_a_session_with_one_large_update_is_opened() -> None:
    turns, journal = Turns(), RamJournal()
    await MessagesMemory(journal=journal).update([Message.user(str(n)) for n in range(MANY)])
    whole = Counting(turns)
    whole.tail = None
    memory = StoredMemory(views=[whole], journal=journal)
    async with anyio.create_task_group() as group:
        group.start_soon(turns.count)
        assert await memory.count() == MANY
        group.cancel_scope.cancel()
    assert sum(turns.changed.values()) == MANY
    assert max(turns.changed.values()) <= MOST


async def test_forgetting_holds_few_messages_at_a_time(tmp_path: Path) -> None:
    said: list[ReferenceType[Message]] = []

    def is_last_of_few(message: Message) -> bool:
        said.append(ref(message))
        return message.content == "1999" and sum(one() is not None for one in said) < 10

    async with MessagesMemory(journal=tmp_path / "journal.db") as memory:
        await memory.update([Message.user(str(number)) for number in range(2_000)])
    async with MessagesMemory(journal=tmp_path / "journal.db") as memory:
        assert await memory.forget(where=is_last_of_few) == 1


def alive() -> int:
    """Return how many objects there are of which a session has one for each message."""
    return sum(type(each) in (Message, Entry) for each in gc.get_objects())


class Written(SQLiteJournal):
    """Tells how many such objects there are when many entries are written."""

    then: int

    async def append(
        self,
        session: str,
        entries: Sequence[Entry],
        *,
        expect: int | None = None,
        lease: Lease | None = None,
    ) -> int:
        self.then = alive()
        return await super().append(session, entries, expect=expect, lease=lease)

    async def exchange(self, remove: Collection[str], add: Mapping[str, Sequence[Entry]]) -> None:
        self.then = alive()
        await super().exchange(remove, add)


async def exported(journal: Journal) -> list[str]:
    return [line async for line in export_session(journal, session_key("s"))]


COPIES: dict[str, Callable[[MessagesMemory, Written], Awaitable[object]]] = {
    "fork": lambda memory, journal: memory.fork(journal=journal, session="copy"),
    "copy": lambda memory, journal: copied(memory, journal),
    "import": lambda memory, journal: moved(memory, journal),
}


async def copied(memory: MessagesMemory, journal: Written) -> None:
    assert memory.journal is not None
    copy = await copy_at(memory.journal, session_key("s"))
    await copy.write(journal, session_key("copy"))


async def moved(memory: MessagesMemory, journal: Written) -> None:
    assert memory.journal is not None
    turns, seen = Turns(), set[int]()

    def lines(all_lines: list[str]) -> Iterable[str]:
        for line in all_lines:
            seen.add(turns.now)
            yield line

    async with anyio.create_task_group() as group:
        group.start_soon(turns.count)
        exports = await exported(memory.journal)
        await import_session(journal, lines(exports), session_key("copy"))
        group.cancel_scope.cancel()
    assert len(seen) > MANY / MOST, "other tasks waited for all lines"


@pytest.mark.parametrize("work", COPIES)
@pytest.mark.parametrize("source", [RamJournal, SQLiteJournal])
async def test_a_session_is_copied_without_an_object_for_each_message(
    work: str, source: type[Journal], tmp_path: Path
) -> None:
    async with (
        Written(tmp_path / "copy.db", durability="os") as journal,
        source(*[tmp_path / "journal.db"] * (source is SQLiteJournal)) as own,
    ):
        memory = MessagesMemory(journal=own, session="s")
        await memory.update([Message.user(f"text {n}") for n in range(MANY)])
        memory = MessagesMemory(journal=own, session="s")
        await memory.open()
        before = alive()
        await COPIES[work](memory, journal)
        assert journal.then - before < MOST
        assert alive() - before < MOST
        later = MessagesMemory(journal=journal, session="copy")
        assert await later.dump() == await memory.dump()


async def test_an_export_is_nothing_that_the_garbage_collector_looks_at(tmp_path: Path) -> None:
    async with MessagesMemory(journal=tmp_path / "journal.db") as memory:
        await memory.update([Message.user(f"text {n}") for n in range(MANY)])
    async with MessagesMemory(journal=tmp_path / "journal.db") as memory:
        await memory.open()
        before = alive()
        data = await memory.export()
        assert alive() - before < MOST
        assert len(data["messages"]) == MANY
        assert not any(map(gc.is_tracked, data["messages"]))
        other = MessagesMemory()
        assert await other.load(data) == MANY
        assert await other.dump() == await memory.dump()
