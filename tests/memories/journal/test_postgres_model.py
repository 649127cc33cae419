"""PostgresJournal behaves like RamJournal for any sequence of calls."""

from __future__ import annotations

from dataclasses import replace

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_brain.memories import Entry, JournalConflictError, PostgresJournal, RamJournal
from tests.support.postgres_server import URL, clear, new_schema
from tests.support.thorough import examples

SESSIONS = st.sampled_from(["a", "b", ""])
SEQS = st.sets(st.integers(-1, 12), max_size=5)
DATA = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)
KINDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=3) | st.text(
    "\\\x000", max_size=6
)
ENTRIES = st.lists(st.builds(Entry, KINDS, DATA, version=st.integers(1, 3)), max_size=3)
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), SESSIONS, ENTRIES, st.none() | st.integers(-1, 1)),
        st.tuples(st.just("append"), SESSIONS, ENTRIES, st.none()),
        st.tuples(st.just("retire"), SESSIONS, SEQS, st.none()),
        st.tuples(st.just("trim"), SESSIONS, st.none() | st.integers(0, 12), st.none()),
        st.tuples(st.just("delete"), SESSIONS, st.none() | SEQS, st.none()),
        st.tuples(st.just("read"), SESSIONS, st.integers(-1, 9), st.booleans()),
        st.tuples(st.just("copy"), SESSIONS, SESSIONS, st.none()),
        st.tuples(st.just("reopen"), SESSIONS, st.none(), st.none()),
    ),
    max_size=15,
)


@pytest.fixture(scope="module")
def schema():
    with new_schema() as name:
        yield name


@settings(
    max_examples=examples(60),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(OPERATIONS)
def test_both_journals_do_the_same(schema, operations) -> None:
    clear(schema)
    anyio.run(compare, schema, operations)


async def compare(schema: str, operations) -> None:
    model, real = RamJournal(), PostgresJournal(URL, schema=schema, durability="memory")
    for name, session, what, how in operations:
        if name == "reopen":
            await real.aclose()
            real = PostgresJournal(URL, schema=schema, durability="memory")
            continue
        outcomes = [await do(journal, name, session, what, how) for journal in (model, real)]
        assert outcomes[0] == outcomes[1], (name, session, what, how)
        assert await model.last(session) == await real.last(session)
    assert await state(model) == await state(real)
    await real.aclose()


async def do(journal, name: str, session: str, what, how):
    try:
        if name == "append":
            expect = None if how is None else await journal.last(session) + how
            return await journal.append(session, what, expect=expect)
        if name == "copy":
            return await journal.load(what, await journal.read(session, history=True))
    except JournalConflictError as error:
        return error.session, error.expected, error.found
    if name == "retire":
        return await journal.retire(session, what)
    if name == "trim":
        return await journal.trim(session, what)
    if name == "read":
        return [timeless(entry) for entry in await journal.read(session, what, history=how)]
    return await journal.delete(session, what, scrub=False)


async def state(journal):
    records = [(record.key, record.entries) for record in await journal.records()]
    assert await journal.sessions() == [key for key, _ in records]
    found = []
    for key, _ in records:
        read = await journal.read(key, history=True)
        rows = await journal.rows(key)
        assert [(entry.seq, entry.kind) for entry in read if not entry.retired] == [
            (seq, kind) for seq, kind, _ in rows
        ]
        paged = [e async for page in journal.pages(key, history=True, size=2) for e in page]
        assert paged == read
        found.append(
            (await journal.last(key), [timeless(entry) for entry in read], [*rows], rows.versions)
        )
    return records, found


def timeless(entry: Entry) -> Entry:
    assert entry.time is not None
    return replace(entry, time=None)
