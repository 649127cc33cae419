"""RedisJournal behaves like RamJournal for any sequence of calls."""

from __future__ import annotations

from dataclasses import replace

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_brain.memories import Entry, JournalConflictError, RamJournal, RedisJournal
from tests.support.redis_server import journal_prefix, redis_url
from tests.support.thorough import examples

SESSIONS = st.sampled_from(["a", "b", ""])
DATA = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)
KINDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=3)
ENTRIES = st.lists(st.builds(Entry, KINDS, DATA, version=st.integers(1, 3)), max_size=3)
SEQS = st.sets(st.integers(1, 12))
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), SESSIONS, ENTRIES, st.none() | st.integers(-1, 1)),
        st.tuples(st.just("read"), SESSIONS, st.integers(0, 9), st.booleans()),
        st.tuples(st.just("rows"), SESSIONS, st.integers(0, 9), st.booleans()),
        st.tuples(st.just("pages"), SESSIONS, st.integers(1, 3), st.booleans()),
        st.tuples(st.just("retire"), SESSIONS, SEQS, st.none()),
        st.tuples(st.just("trim"), SESSIONS, st.none() | st.integers(0, 9), st.none()),
        st.tuples(st.just("delete"), SESSIONS, st.none() | SEQS, st.booleans()),
        st.tuples(st.just("copy"), SESSIONS, SESSIONS, st.none()),
        st.tuples(st.just("reopen"), SESSIONS, st.none(), st.none()),
    ),
    max_size=20,
)


@pytest.fixture(scope="module", autouse=True)
def server() -> None:
    redis_url()


@settings(max_examples=examples(60))
@given(OPERATIONS)
def test_both_journals_do_the_same(operations) -> None:
    anyio.run(compare, operations)


async def compare(operations) -> None:
    with journal_prefix() as prefix:
        model, real = RamJournal(), RedisJournal(redis_url(), prefix=prefix)
        for name, session, what, how in operations:
            if name == "reopen":
                await real.aclose()
                real = RedisJournal(redis_url(), prefix=prefix)
                continue
            outcomes = [await do(journal, name, session, what, how) for journal in (model, real)]
            assert outcomes[0] == outcomes[1], (name, session, what, how)
            assert await model.sessions() == await real.sessions()
        counts = [[(r.key, r.entries) for r in await j.records()] for j in (model, real)]
        assert counts[0] == counts[1]
        await real.aclose()


async def do(journal, name, session, what, how):
    try:
        if name == "append":
            expect = None if how is None else await journal.last(session) + how
            return await journal.append(session, what, expect=expect)
        if name == "copy":
            return await journal.load(what, await journal.read(session, history=True))
    except JournalConflictError as error:
        return error.session, error.expected, error.found
    if name == "read":
        return [timeless(e) for e in await journal.read(session, what, history=how)]
    if name == "rows":
        rows = await journal.rows(session, what, history=how)
        return [*rows], rows.versions
    if name == "pages":
        pages = [page async for page in journal.pages(session, size=what, history=how)]
        return [[timeless(entry) for entry in page] for page in pages]
    if name == "retire":
        return await journal.retire(session, what)
    if name == "trim":
        return await journal.trim(session, what)
    return await journal.delete(session, what, scrub=how)


def timeless(entry: Entry) -> Entry:
    assert entry.time is not None
    return replace(entry, time=None)
