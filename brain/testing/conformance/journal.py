"""The conformance suite for journals."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from pydantic import JsonValue

from agent_brain.memories.errors import JournalConflictError, JournalError
from agent_brain.memories.journal import Entry, Journal
from agent_brain.testing.conformance.check import Check, expect, expect_error

Make = Callable[..., Awaitable[Any]]


def journal_conformance(factory: Callable[[], Journal | Awaitable[Journal]]) -> list[Check]:
    """The behaviours that a journal must have, as async checks.

    Args:
        factory: Makes a new, empty journal; sync or async. Each check closes what it makes.

    Returns:
        One check a behaviour; to be used as those of :func:`memory_conformance`.
    """
    return [Check(behaviour, factory) for behaviour in JOURNAL]


async def entries_are_read_as_written(make: Make) -> None:
    async with await make() as journal:
        data: list[JsonValue] = [
            None,
            True,
            1,
            2.5,
            "a\x00b 汉字",
            [1, [2]],
            {"a": {"b": None}},
            "",
        ]
        last = await journal.append("s", [Entry("kind", value) for value in data])
        read = await journal.read("s")
        expect([entry.data for entry in read], data, "data")
        expect([entry.seq for entry in read], [*range(last - 7, last + 1)], "consecutive numbers")
        expect(await journal.read("s", last - 2), read[-2:], "read(after)")
        expect(await journal.last("s"), last, "last()")
        expect((await journal.read("unknown"), await journal.last("unknown")), ([], 0), "unknown")


async def what_was_written_does_not_change(make: Make) -> None:
    async with await make() as journal:
        values: list[JsonValue] = [1]
        await journal.append("s", [Entry("kind", {"list": values})])
        values.append(2)
        (await journal.read("s"))[0].data["list"].append(3)
        expect((await journal.read("s"))[0].data, {"list": [1]}, "data")


async def an_append_that_expects_wrongly_writes_nothing(make: Make) -> None:
    async with await make() as journal:
        first = await journal.append("s", [Entry("a", 1)], expect=0)
        second = await journal.append("s", [Entry("a", 2)], expect=first)
        for wrong in (0, first, second + 1):
            late = journal.append("s", [Entry("b", 3), Entry("b", 4)], expect=wrong)
            await expect_error(late, JournalConflictError, f"append(expect={wrong})")
        expect([entry.data for entry in await journal.read("s")], [1, 2], "data")
        expect(await journal.append("s", [], expect=second), second, "append() of nothing")


async def one_of_many_writers_wins(make: Make) -> None:
    async with await make() as journal:
        won: list[int] = []

        async def write(number: int) -> None:
            try:
                await journal.append("s", [Entry("a", number)] * 3, expect=0)
                won.append(number)
            except JournalConflictError:
                pass

        async with anyio.create_task_group() as group:
            for number in range(10):
                group.start_soon(write, number)
        expect(len(won), 1, "number of writers that won")
        expect([entry.data for entry in await journal.read("s")], won * 3, "data")


async def numbers_are_never_used_again(make: Make) -> None:
    async with await make() as journal:
        last = await journal.append("s", [Entry("a", n) for n in range(3)])
        expect(await journal.delete("s", [last, last - 1, 999]), 2, "delete()")
        expect(await journal.last("s"), last, "last() after a deletion")
        after = await journal.append("s", [Entry("a", 9)], expect=last)
        if after <= last:
            raise AssertionError(f"The number {after} was given again")
        expect([entry.data for entry in await journal.read("s")], [0, 9], "data")
        await journal.delete("s")
        again = await journal.append("s", [Entry("a", 1)], expect=0)
        if again <= after:
            raise AssertionError(f"The number {again} was given again after its session went")


async def sessions_have_nothing_to_do_with_each_other(make: Make) -> None:
    async with await make() as journal:
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


async def a_cancelled_append_is_whole_or_absent(make: Make) -> None:
    async with await make() as journal:
        await journal.append("s", [Entry("a", 0)])
        with anyio.CancelScope() as scope:
            scope.cancel()
            await journal.append("s", [Entry("a", 1), Entry("a", 2)])
        data = [entry.data for entry in await journal.read("s")]
        if data not in ([0], [0, 1, 2]):
            raise AssertionError(f"A cancelled append has left a part of itself: {data}")


async def a_closed_journal_says_so(make: Make) -> None:
    journal = await make()
    await journal.append("s", [Entry("a", 1)])
    await journal.aclose()
    await journal.aclose()
    await expect_error(journal.read("s"), JournalError, "read() of a closed journal")
    await expect_error(journal.append("s", [Entry("a", 1)]), JournalError, "append()")


JOURNAL = [
    entries_are_read_as_written,
    what_was_written_does_not_change,
    an_append_that_expects_wrongly_writes_nothing,
    one_of_many_writers_wins,
    numbers_are_never_used_again,
    sessions_have_nothing_to_do_with_each_other,
    a_cancelled_append_is_whole_or_absent,
    a_closed_journal_says_so,
]
