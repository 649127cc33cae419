"""SQLiteJournal behaves like RamJournal for any sequence of calls."""

from __future__ import annotations

import tempfile
from pathlib import Path

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_brain.memories import Entry, JournalConflictError, RamJournal, SQLiteJournal

SESSIONS = st.sampled_from(["a", "b", ""])
DATA = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(
            st.just("append"), SESSIONS, st.lists(DATA, max_size=3), st.none() | st.integers(-1, 1)
        ),
        st.tuples(st.just("read"), SESSIONS, st.integers(0, 9), st.none()),
        st.tuples(
            st.just("delete"), SESSIONS, st.none() | st.sets(st.integers(1, 12)), st.booleans()
        ),
        st.tuples(st.just("reopen"), SESSIONS, st.none(), st.none()),
    ),
    max_size=15,
)


@settings(max_examples=60)
@given(OPERATIONS)
def test_both_journals_do_the_same(operations) -> None:
    anyio.run(compare, operations)


async def compare(operations) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.db"
        model, real = RamJournal(), SQLiteJournal(path)
        for name, session, what, how in operations:
            if name == "reopen":
                await real.aclose()
                real = SQLiteJournal(path)
                continue
            outcomes = [await do(journal, name, session, what, how) for journal in (model, real)]
            assert outcomes[0] == outcomes[1], (name, session, what, how)
            assert await model.sessions() == await real.sessions()
        await real.aclose()


async def do(journal, name, session, what, how):
    if name == "append":
        expect = None if how is None else await journal.last(session) + how
        try:
            return await journal.append(session, [Entry("k", data) for data in what], expect=expect)
        except JournalConflictError as error:
            return error.session, error.expected, error.found
    if name == "read":
        return await journal.read(session, what)
    return await journal.delete(session, what, scrub=how)
