"""SQLiteJournal behaves like RamJournal for any sequence of calls."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent_brain.memories import (
    Entry,
    Journal,
    JournalConflictError,
    JournalError,
    RamJournal,
    SQLiteJournal,
)
from agent_brain.memories.errors import LeaseHeldError, LeaseLostError
from agent_brain.memories.journal.lease import Lease
from tests.support.thorough import examples

SESSIONS = st.sampled_from(["a", "b", "", "a\x00", "ä%_'"])
SEQS = st.sets(st.integers(0, 14))
DATA = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)
ENTRIES = st.lists(
    st.builds(Entry, kind=st.sampled_from("kl"), data=DATA, version=st.integers(1, 3)), max_size=3
)
WHEN = datetime(2026, 1, 1, tzinfo=UTC)


@st.composite
def loaded(draw: st.DrawFn) -> list[Entry]:
    """Entries of another journal."""
    seqs = sorted(draw(st.sets(st.integers(1, 12), max_size=5)))
    return [
        Entry("k", draw(DATA), seq, draw(st.integers(1, 2)), WHEN, draw(st.booleans()))
        for seq in seqs
    ]


CALLS = st.lists(
    st.one_of(
        st.tuples(
            st.just("append"), SESSIONS, ENTRIES, st.none() | st.integers(-1, 1), st.booleans()
        ),
        st.tuples(st.just("read"), SESSIONS, st.integers(-1, 14), st.booleans()),
        st.tuples(st.just("rows"), SESSIONS, st.integers(-1, 14), st.booleans()),
        st.tuples(st.just("pages"), SESSIONS, st.integers(0, 9), st.booleans(), st.integers(1, 4)),
        st.tuples(st.just("delete"), SESSIONS, st.none() | SEQS, st.booleans()),
        st.tuples(st.just("retire"), SESSIONS, SEQS),
        st.tuples(st.just("trim"), SESSIONS, st.none() | st.integers(0, 14), st.booleans()),
        st.tuples(st.just("load"), SESSIONS, loaded()),
        st.tuples(st.just("acquire"), SESSIONS),
        st.tuples(st.just("release"), SESSIONS),
        st.tuples(st.just("reopen"), SESSIONS),
    ),
    max_size=25,
)


@settings(max_examples=examples(100))
@given(CALLS)
@example([("acquire", "a"), ("delete", "a", None, False), ("append", "a", [], None, False)])
def test_both_journals_do_the_same(calls: list[tuple[Any, ...]]) -> None:
    anyio.run(compare, calls)


async def compare(calls: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.db"
        model = Caller(RamJournal())
        real = Caller(SQLiteJournal(path))
        for name, session, *how in calls:
            if name == "reopen":
                await real.journal.aclose()  # which releases its leases
                for lease in model.leases.values():
                    await model.journal.release(lease)
                real.journal = SQLiteJournal(path)
                continue
            outcomes = [await caller.call(name, session, *how) for caller in (model, real)]
            assert outcomes[0] == outcomes[1], (name, session, how)
            assert await model.state() == await real.state(), (name, session, how)
        await real.journal.aclose()


class Caller:
    """Calls a journal; what it returns is comparable to what another journal does."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.leases: dict[str, Lease] = {}

    async def call(self, name: str, session: str, *how: Any) -> Any:
        try:
            return await getattr(self, name)(session, *how)
        except JournalConflictError as error:
            return error.session, error.expected, error.found
        except (LeaseHeldError, LeaseLostError) as error:
            return type(error), error.session
        except JournalError as error:
            return str(error)

    async def append(
        self, session: str, entries: list[Entry], expect: int | None, leased: bool
    ) -> int:
        if expect is not None:
            expect += await self.journal.last(session)
        lease = self.leases.get(session) if leased else None
        return await self.journal.append(session, entries, expect=expect, lease=lease)

    async def read(self, session: str, after: int, history: bool) -> list[Entry]:
        return untimed(await self.journal.read(session, after, history=history))

    async def rows(self, session: str, after: int, history: bool) -> Any:
        rows = await self.journal.rows(session, after, history=history)
        return [*rows], rows.versions

    async def pages(self, session: str, after: int, history: bool, size: int) -> list[list[Entry]]:
        pages = self.journal.pages(session, after, history=history, size=size)
        return [untimed(page) async for page in pages]

    async def delete(self, session: str, seqs: set[int] | None, scrub: bool) -> int:
        return await self.journal.delete(session, seqs, scrub=scrub)

    async def retire(self, session: str, seqs: set[int]) -> int:
        return await self.journal.retire(session, seqs)

    async def trim(self, session: str, before: int | None, scrub: bool) -> int:
        return await self.journal.trim(session, before, scrub=scrub)

    async def load(self, session: str, entries: list[Entry]) -> None:
        await self.journal.load(session, entries)

    async def acquire(self, session: str) -> None:
        self.leases[session] = await self.journal.acquire(session)

    async def release(self, session: str) -> None:
        if session in self.leases:
            await self.journal.release(self.leases.pop(session))

    async def state(self) -> Any:
        names = await self.journal.sessions()
        return [
            (
                record.key,
                record.entries,
                await self.journal.last(record.key),
                untimed(await self.journal.read(record.key, history=True)),
            )
            for record in await self.journal.records()
        ], names


def untimed(entries: Iterable[Entry]) -> list[Entry]:
    """Entries with the times that were given; the others are now, and were just written."""
    return [entry if entry.time == WHEN else replace(entry, time=None) for entry in entries]
