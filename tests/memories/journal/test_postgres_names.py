"""Sessions of a PostgresJournal are separate, whatever their names are."""

from __future__ import annotations

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_brain.memories import Entry, JournalError, PostgresJournal, session_key
from agent_brain.memories.journal.sql.sessions import INDEXED
from tests.support.postgres_server import URL, clear, new_schema
from tests.support.thorough import examples

pytestmark = pytest.mark.anyio
ASYNCIO = pytest.mark.parametrize("anyio_backend", ["asyncio"])

HOSTILE = [
    "'; DROP TABLE sessions; --", "%s", "%(a)s", "%%", "a%", "a_", "a\\", "\\x61", "\\000", "$1", "{}",
    "a\x00", "\x00", "\x00a", "é", "e\u0301", "A", "a ", " a", "\ufeffa", "\uffff", "😀", "\U0010ffff", "*?[a]",
]  # fmt: skip
ANY = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)
CLOSE = st.text("a%_\\'\"\x00\x7f\x80é😀", max_size=5)
NAMES = st.one_of(st.sampled_from(HOSTILE), ANY, CLOSE)


@pytest.fixture(scope="module")
def schema():
    with new_schema() as name:
        yield name


@settings(
    max_examples=examples(60),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(NAMES, min_size=2, max_size=5, unique=True), NAMES)
def test_no_call_reaches_another_session(schema, names, prefix) -> None:
    clear(schema)
    anyio.run(check_names, schema, names, prefix)


async def check_names(schema: str, names: list[str], prefix: str) -> None:
    async with PostgresJournal(URL, schema=schema, durability="memory") as journal:
        for name in names:
            await journal.append(name, [Entry(name, name), Entry("a", 1)], expect=0)
        assert await journal.sessions() == sorted(names)
        for start in (prefix, names[0], names[0][:1]):
            found = sorted(name for name in names if name.startswith(start))
            assert await journal.sessions(start) == found
        await journal.retire(names[0], [1, 2])
        await journal.delete(names[-1], scrub=False)
        for name in names:
            read = [(entry.kind, entry.data) for entry in await journal.read(name)]
            gone = name in (names[0], names[-1])
            assert read == ([] if gone else [(name, name), ("a", 1)])


@pytest.mark.parametrize("length", [INDEXED - 1, INDEXED, INDEXED + 1, 10_000])
@ASYNCIO
async def test_long_names_are_compared_to_their_end(schema, length) -> None:
    clear(schema)
    names = ["é" * length, "é" * length + "a", "é" * length + "b", "é" * (length - 1) + "f"]
    async with PostgresJournal(URL, schema=schema, durability="memory") as journal:
        for name in names:
            await journal.append(name, [Entry("a", name[-1])], expect=0)
        for name in names:
            assert [entry.data for entry in await journal.read(name)] == [name[-1]]
            with_it = sorted(other for other in names if other.startswith(name))
            assert await journal.sessions(name) == with_it
        assert await journal.sessions() == sorted(names)


@ASYNCIO
async def test_a_tenant_sees_its_own_sessions(schema) -> None:
    clear(schema)
    async with PostgresJournal(URL, schema=schema, durability="memory") as journal:
        for tenant in ("ann", "ann%", "an", None):
            await journal.append(session_key("s", tenant), [Entry("a", 1)])
        assert await journal.sessions('["ann", ') == [session_key("s", "ann")]


@pytest.mark.parametrize("name", ["\ud800", "a\udfffb"])
async def test_half_characters_are_refused_before_anything_is_written(schema, name) -> None:
    clear(schema)
    async with PostgresJournal(URL, schema=schema, durability="memory") as journal:
        for call in (
            journal.append(name, [Entry("a", 1)]),
            journal.append("s", [Entry("a", 1), Entry(name, 1)]),
            journal.read(name),
            journal.acquire(name),
            journal.sessions(name),
        ):
            with pytest.raises(JournalError, match="half of a character"):
                await call
        assert await journal.sessions() == []
        await journal.append("s", [Entry("a", name)], expect=0)
        assert [entry.data for entry in await journal.read("s")] == [
            name.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        ]


@ASYNCIO
async def test_the_index_finds_a_prefix(schema) -> None:
    clear(schema)
    async with PostgresJournal(URL, schema=schema, durability="memory") as journal:
        async with anyio.create_task_group() as group:
            for number in range(200):
                group.start_soon(journal.append, f"{number:03d}", [Entry("a", 1)])
        assert await journal.sessions("01") == [f"{n:03d}" for n in range(10, 20)]
