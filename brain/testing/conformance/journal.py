"""The conformance suite for journals."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import anyio
from pydantic import JsonValue

from agent_brain.memories.errors import JournalConflictError, JournalError
from agent_brain.memories.journal import Entry, Journal
from agent_brain.testing.conformance.check import (
    Check,
    behaviours,
    expect,
    expect_error,
    expect_true,
)


def journal_conformance(factory: Callable[[], Journal | Awaitable[Journal]]) -> list[Check]:
    """Return the behaviours that a journal must have, as async checks.

    Use them like those of :func:`memory_conformance`.

    Args:
        factory: Makes a new, empty journal; sync or async.
    """
    return [Check(behaviour, factory) for behaviour in JOURNAL]


async def entries_are_read_as_written(journal: Any) -> None:
    """read() returns entries as they were appended, in order, with consecutive numbers."""
    data: list[JsonValue] = [None, True, 1, 2.5, "", "a\x00b 汉字", [1, [2]], {"a": {"b": None}}]
    last = await journal.append("s", [Entry(f"kind {n}", value) for n, value in enumerate(data)])
    read = await journal.read("s")
    expect([entry.data for entry in read], data, "data")
    expect([entry.kind for entry in read], [f"kind {n}" for n in range(len(data))], "kinds")
    expect([entry.seq for entry in read], [*range(last - 7, last + 1)], "consecutive numbers")
    expect(await journal.read("s", last - 2), read[-2:], "read(after)")
    expect(await journal.last("s"), last, "last()")
    expect((await journal.read("unknown"), await journal.last("unknown")), ([], 0), "unknown")


async def entries_are_copies(journal: Any) -> None:
    """Store copies, such as JSON text: callers may change what they passed and what they got."""
    values: list[JsonValue] = [1]
    await journal.append("s", [Entry("kind", {"list": values})])
    values.append(2)
    (await journal.read("s"))[0].data["list"].append(3)
    expect((await journal.read("s"))[0].data, {"list": [1]}, "data")


async def a_conflicting_append_writes_nothing(journal: Any) -> None:
    """append() writes nothing, and raises JournalConflictError, if ``expect`` is outdated."""
    first = await journal.append("s", [Entry("a", 1)], expect=0)
    second = await journal.append("s", [Entry("a", 2)], expect=first)
    for wrong in (0, first, second + 1):
        late = journal.append("s", [Entry("b", 3), Entry("b", 4)], expect=wrong)
        await expect_error(late, JournalConflictError, f"append(expect={wrong})")
    expect([entry.data for entry in await journal.read("s")], [1, 2], "data")
    expect(await journal.append("s", [], expect=second), second, "append() of nothing")


async def one_of_many_writers_wins(journal: Any) -> None:
    """Compare ``expect`` and write in one operation: under a lock, or in a transaction."""
    won: list[int] = []

    async def write(number: int) -> None:
        with suppress(JournalConflictError):
            await journal.append("s", [Entry("a", number)] * 3, expect=0)
            won.append(number)

    async with anyio.create_task_group() as group:
        for number in range(10):
            group.start_soon(write, number)
    expect(len(won), 1, "number of writers that won")
    expect([entry.data for entry in await journal.read("s")], won * 3, "data")


async def numbers_are_never_reused(journal: Any) -> None:
    """A deletion removes what it was asked to, and frees no numbers: keep the last one."""
    last = await journal.append("s", [Entry("a", n) for n in range(3)])
    expect(await journal.delete("s", []), 0, "delete() of nothing")
    expect(await journal.delete("s", [last, last - 1, 999]), 2, "delete()")
    expect(await journal.last("s"), last, "last() after a deletion")
    after = await journal.append("s", [Entry("a", 9)], expect=last)
    expect_true(after > last, f"The number {after} was used again")
    expect([entry.data for entry in await journal.read("s")], [0, 9], "data")
    await journal.delete("s")
    again = await journal.append("s", [Entry("a", 1)], expect=0)
    expect_true(again > after, f"The number {again} was used again after deleting the session")


async def sessions_are_separate(journal: Any) -> None:
    """The key of a session is any text, compared exactly: escape it, and do not normalise it."""
    names = ["a", "a/b", "a%", "a_", "A", "", "'", '"', "a\x00", "汉字", '[null, "a"]']
    for name in names:
        await journal.append(name, [Entry("name", name)], expect=0)
    for name in names:
        expect([e.data for e in await journal.read(name)], [name], f"session {name!r}")
    expect(await journal.sessions(), sorted(names), "sessions()")
    with_a = sorted(name for name in names if name.startswith("a"))
    expect(await journal.sessions("a"), with_a, "sessions('a')")
    expect(await journal.sessions("a_"), ["a_"], "sessions('a_')")
    seqs = [(await journal.read(name))[0].seq for name in names]
    expect(await journal.delete("a", seqs), 1, "delete() of numbers of other sessions")
    await journal.delete("A")
    expect(await journal.sessions(), sorted({*names} - {"A"}), "sessions() after a deletion")


async def a_cancelled_append_is_whole_or_absent(journal: Any) -> None:
    """append() writes all entries or none, also if it is cancelled: shield it from cancellation."""
    await journal.append("s", [Entry("a", 0)])
    with anyio.CancelScope() as scope:
        scope.cancel()
        await journal.append("s", [Entry("a", 1), Entry("a", 2)])
    data = [entry.data for entry in await journal.read("s")]
    expect_true(data in ([0], [0, 1, 2]), f"A cancelled append was written in part: {data}")


async def a_closed_journal_raises(journal: Any) -> None:
    """After aclose(), which may be called twice, every other method raises JournalError."""
    await journal.append("s", [Entry("a", 1)])
    await journal.aclose()
    await journal.aclose()
    await expect_error(journal.read("s"), JournalError, "read() of a closed journal")
    await expect_error(journal.append("s", [Entry("a", 1)]), JournalError, "append()")


JOURNAL = behaviours(globals())
