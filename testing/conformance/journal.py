"""The conformance suite for journals."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import anyio.lowlevel
from pydantic import JsonValue

from agent_brain.memories.errors import (
    JournalConflictError,
    JournalError,
    LeaseHeldError,
    LeaseLostError,
)
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.journal.entry import Entry
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


async def versions_and_times_are_kept(journal: Any) -> None:
    """read() returns the version of each entry, and the time (aware) when it was appended."""
    if not journal.has_history:
        return
    before = datetime.now(UTC) - timedelta(seconds=5)
    await journal.append("s", [Entry("a", 1, version=3), Entry("a", 2)])
    read = await journal.read("s")
    expect([entry.version for entry in read], [3, 1], "versions")
    for entry in read:
        expect_true(entry.time is not None, "An entry that was read has no time")
        near = before <= entry.time <= before + timedelta(minutes=5)
        expect_true(near, f"The time of an entry is {entry.time}, and it was just written")
    rows = await journal.rows("s")
    expect([*rows], [(e.seq, e.kind, str(e.data)) for e in read], "rows()")
    expect(rows.versions, {read[0].seq: 3}, "versions of rows()")


async def pages_are_what_is_read(journal: Any) -> None:
    """pages() yields what read() returns, at most ``size`` entries at once."""
    last = await journal.append("s", [Entry("a", n) for n in range(7)])
    for size in (1, 2, 3, 7, 100):
        pages = [page async for page in journal.pages("s", last - 5, size=size)]
        expect([e for page in pages for e in page], await journal.read("s", last - 5), "pages()")
        expect_true(all(0 < len(page) <= size for page in pages), f"A page is not 1 to {size} long")
    expect([page async for page in journal.pages("unknown")], [], "pages() of an unknown session")


async def retired_entries_are_history(journal: Any) -> None:
    """Entries that retire() was given are read with ``history=True`` only, or removed."""
    last = await journal.append("s", [Entry("a", n) for n in range(5)])
    first = last - 4
    await journal.append("other", [Entry("a", 0)])
    expect(await journal.retire("s", [first, first + 2, last + 100]), 2, "retire()")
    expect([entry.data for entry in await journal.read("s")], [1, 3, 4], "data")
    expect([row[2] for row in await journal.rows("s", first)], ["1", "3", "4"], "rows()")
    expect(await journal.last("s"), last, "last()")
    after = await journal.append("s", [Entry("a", 5)], expect=last)
    expect_true(after > last, f"The number {after} was used again")
    if not journal.has_history:
        return
    expect(await journal.retire("s", [first]), 0, "retire() of what is retired")
    history = await journal.read("s", history=True)
    expect([entry.data for entry in history], [0, 1, 2, 3, 4, 5], "data with the history")
    flags = [entry.retired for entry in history]
    expect(flags, [True, False, True, False, False, False], "retired")
    expect(len(await journal.rows("s", first, history=True)), 5, "rows with the history")
    paged = [e async for page in journal.pages("s", history=True, size=2) for e in page]
    expect(paged, history, "pages with the history")
    expect(await journal.trim("s", first + 2), 1, "trim(before)")
    expect([e.data for e in await journal.read("s", history=True)], [1, 2, 3, 4, 5], "data")
    expect(await journal.trim("s", scrub=True), 1, "trim()")
    expect([e.data for e in await journal.read("s", history=True)], [1, 3, 4, 5], "data")
    await journal.retire("s", [last])
    expect(await journal.delete("s", [last]), 1, "delete() of a retired entry")
    expect(len(await journal.read("other")), 1, "entries of another session")


async def a_session_is_loaded_as_it_was(journal: Any) -> None:
    """load() keeps numbers, versions, times and what is retired, and refuses to add to entries."""
    if not journal.has_history:
        return
    await journal.append("s", [Entry("a", n, version=n + 1) for n in range(4)])
    await journal.delete("s", [(await journal.read("s"))[1].seq])
    await journal.retire("s", [(await journal.read("s"))[0].seq])
    entries = await journal.read("s", history=True)
    await journal.load("copy", entries)
    expect(await journal.read("copy", history=True), entries, "entries")
    expect(await journal.read("copy"), await journal.read("s"), "entries without the history")
    await expect_error(journal.load("copy", entries), JournalConflictError, "load() over entries")
    last = entries[-1].seq
    after = await journal.append("copy", [Entry("a", 9)], expect=await journal.last("copy"))
    expect_true(after > last, f"The number {after} was used again after load()")
    await journal.delete("copy")
    await journal.load("copy", entries)
    stale = journal.append("copy", [Entry("a", 1)], expect=after)
    await expect_error(stale, JournalConflictError, "append() of a writer that knows another one")
    await journal.load("nothing", [])
    expect(await journal.read("nothing"), [], "load() of nothing")


async def sessions_are_exchanged_at_once(journal: Any) -> None:
    """exchange() removes sessions and loads others, all or nothing; old writers notice it."""
    if not journal.has_exchange:
        return
    for key in ("old", "gone", "other", "source"):
        await journal.append(key, [Entry(key, n) for n in range(3)])
    await journal.retire("source", [(await journal.read("source"))[0].seq])
    entries = await journal.read("source", history=True)
    known = await journal.last("old")
    late = journal.exchange(["old", "gone"], {"new": entries, "old": entries, "other": entries})
    await expect_error(late, JournalConflictError, "exchange() that adds to entries")
    expect(await journal.sessions(), ["gone", "old", "other", "source"], "sessions()")
    expect([e.kind for e in await journal.read("old")], ["old"] * 3, "kinds after a refusal")
    await journal.exchange(["old", "gone", "none"], {"new": entries, "old": entries, "no": []})
    expect(await journal.sessions(), ["new", "old", "other", "source"], "sessions()")
    for key in ("new", "old"):
        expect(await journal.read(key, history=True), entries, f"entries of {key!r}")
        expect(await journal.read(key), entries[1:], f"entries of {key!r} without the history")
    stale = journal.append("old", [Entry("a", 1)], expect=known)
    await expect_error(stale, JournalConflictError, "append() of a writer that knows the old one")
    await journal.append("old", [Entry("a", 1)], expect=await journal.last("old"))


async def records_tell_of_each_session(journal: Any) -> None:
    """records() and lasts() tell of each session; a journal of your own need not have lasts()."""
    await journal.append("b", [Entry("a", 1)])
    await journal.append("a", [Entry("a", 1), Entry("a", 2)])
    await journal.append("a", [Entry("a", 3)])
    await journal.append("c", [Entry("a", 1)])
    await journal.delete("c")
    if journal.has_history:
        await journal.retire("a", [1])
    records = await journal.records()
    expect([(r.key, r.entries) for r in records], [("a", 3), ("b", 1)], "records()")
    expect([r.key for r in await journal.records("b")], ["b"], "records('b')")
    await journal.delete("a", [3])
    lasts = await journal.lasts()
    expect(lasts, {key: await journal.last(key) for key in ("a", "b")}, "lasts()")
    expect(await journal.lasts("b"), {"b": lasts["b"]}, "lasts('b')")
    for record in records:
        if record.created is not None:
            expect_true(record.created <= record.updated, f"The times of {record} are wrong")


async def a_lease_excludes_others(journal: Any) -> None:
    """While a session is leased, nobody else gets its lease or writes to it."""
    lease = await journal.acquire("s")
    await expect_error(journal.acquire("s"), LeaseHeldError, "acquire() of a leased session")
    other = await journal.acquire("other")
    if journal.has_leases:
        stranger = journal.append("s", [Entry("a", 1)])
        await expect_error(stranger, LeaseHeldError, "append() without the lease")
        stranger = journal.append("s", [Entry("a", 1)], lease=other)
        await expect_error(stranger, LeaseLostError, "append() with another lease")
        expect(await journal.last("s"), 0, "last() after refused appends")
        await journal.append("s", [Entry("a", 1)], lease=lease)
        await journal.append("other", [Entry("a", 1)], expect=0, lease=other)
    await journal.release(lease)
    await journal.release(lease)
    if journal.has_leases:
        late = journal.append("s", [Entry("a", 2)], lease=lease)
        await expect_error(late, LeaseLostError, "append() with a lease that was released")
        await journal.append("s", [Entry("a", 2)])
    await journal.release(await journal.acquire("s"))


async def a_lease_is_waited_for(journal: Any) -> None:
    """acquire(wait=…) returns when the lease is released."""
    lease = await journal.acquire("s")
    got = []

    async def get() -> None:
        got.append(await journal.acquire("s", wait=60))

    async with anyio.create_task_group() as group:
        group.start_soon(get)
        await anyio.lowlevel.checkpoint()
        await journal.release(lease)
    expect_true(got[0].token != lease.token, "Two leases have one token")
    await journal.release(got[0])


async def a_closed_journal_raises(journal: Any) -> None:
    """After aclose(), which may be called twice, every other method raises JournalError."""
    await journal.append("s", [Entry("a", 1)])
    await journal.aclose()
    await journal.aclose()
    await expect_error(journal.read("s"), JournalError, "read() of a closed journal")
    await expect_error(journal.append("s", [Entry("a", 1)]), JournalError, "append()")


JOURNAL = behaviours(globals())
