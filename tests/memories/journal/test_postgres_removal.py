"""What a PostgresJournal removes: entries that are scrubbed, and sessions that have expired."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import psycopg
import pytest

from agent_brain.memories import (
    Entry,
    JournalConflictError,
    Message,
    MessagesMemory,
    PostgresJournal,
)
from agent_brain.memories.errors import LeaseLostError
from tests.support.postgres_server import URL, new_schema, new_server, run_sql

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.anyio,
    pytest.mark.parametrize("anyio_backend", ["asyncio"]),
]
A = [Entry("a", 1)]
HOUR = timedelta(hours=1)


@pytest.fixture
def schema():
    with new_schema() as name:
        yield name


def age(schema: str, session: str) -> None:
    """Make a session two hours older, as its journal would have written it."""
    from agent_brain.memories.journal.sql.sessions import COUNTS, Counts

    row = run_sql(f"SELECT {', '.join(COUNTS)} FROM {schema}.sessions WHERE key = '{session}'")[0]
    counts = Counts(*row)
    counts = replace(counts, written=counts.written - 7_200_000)
    run_sql(
        f"UPDATE {schema}.sessions SET written = {counts.written}, "
        f"checksum = {counts.seal(session)} WHERE key = '{session}'"
    )


@pytest.fixture(scope="module")
def server():
    """A server without other clients, whose transactions would keep rows."""
    with new_server() as running:
        yield running


def tuples(url: str) -> list[bytes]:
    """The rows in the pages of the tables, also those that no client sees any more."""
    schema = "agent_brain"
    run_sql("CREATE EXTENSION IF NOT EXISTS pageinspect", url=url)
    found = []
    for table in ("entries", "sessions"):
        size = run_sql(f"SELECT pg_relation_size('{schema}.{table}') / 8192", url=url)[0][0]
        for page in range(size):
            rows = run_sql(
                f"SELECT t_data FROM heap_page_items(get_raw_page('{schema}.{table}', {page})) "
                "WHERE t_data IS NOT NULL",
                url=url,
            )
            found += [bytes(row[0]) for row in rows]
    return found


async def test_scrubbing_leaves_no_row_behind(server) -> None:
    async with PostgresJournal(server.url()) as journal:
        memory = MessagesMemory(journal=journal, session="s")
        await memory.update([Message.user("secret one", id="1"), Message.user("kept", id="2")])
        assert any(b"secret one" in row for row in tuples(server.url()))
        await memory.forget("1")
        assert not any(b"secret one" in row for row in tuples(server.url()))
        assert any(b"kept" in row for row in tuples(server.url()))
        [key] = await journal.sessions()
        await journal.retire(key, [entry.seq for entry in await journal.read(key)])
        await journal.trim(key, scrub=True)
        await journal.delete(key)
        assert tuples(server.url()) == []


async def test_scrubbing_is_not_stopped_by_a_reader(schema, caplog) -> None:
    async with PostgresJournal(URL, schema=schema) as journal:
        await journal.append("s", [Entry("a", "secret")])
        with psycopg.connect(URL) as reader:
            reader.execute(
                f"BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM {schema}.entries".encode()
            )
            assert await journal.delete("s") == 1
        assert await journal.read("s") == []


async def test_an_expired_session_is_none(schema) -> None:
    async with PostgresJournal(URL, schema=schema, ttl=HOUR) as journal:
        await journal.append("s", A * 3)
        await journal.retire("s", [1])
        await journal.append("young", A)
        age(schema, "s")
        assert await journal.sessions() == ["young"]
        assert [record.key for record in await journal.records("s")] == []
        assert (await journal.last("s"), await journal.read("s", history=True)) == (0, [])
        assert [page async for page in journal.pages("s", history=True)] == []
        assert len(await journal.rows("s")) == 0
        assert await journal.retire("s", [2]) == 0
        assert await journal.delete("s", [2]) == 0
        assert await journal.trim("s") == 0
        with pytest.raises(JournalConflictError) as caught:
            await journal.append("s", A, expect=3)
        assert caught.value.found == 0
        assert await journal.append("s", A, expect=0) == 4
        assert [entry.seq for entry in await journal.read("s", history=True)] == [4]
        assert await journal.sessions() == ["s", "young"]
    assert run_sql(f"SELECT count(*) FROM {schema}.entries") == [(2,)]


async def test_an_expired_session_is_loaded_anew_and_deleted_as_none(schema) -> None:
    async with PostgresJournal(URL, schema=schema, ttl=3600) as journal:
        for name in ("one", "two"):
            await journal.append(name, A * 2)
            age(schema, name)
        await journal.load("one", [Entry("a", 1, 7)])
        assert await journal.last("one") == 7
        assert await journal.delete("two") == 0
        assert run_sql(f"SELECT count(*) FROM {schema}.sessions") == [(1,)]


async def test_purging_removes_what_has_expired(schema) -> None:
    async with PostgresJournal(URL, schema=schema, ttl=HOUR) as journal:
        for name in ("old", "older", "leased", "young"):
            await journal.append(name, A)
        lease = await journal.acquire("leased")
        for name in ("old", "older", "leased"):
            age(schema, name)
        assert await journal.purge() == 2
        assert await journal.purge() == 0
        assert run_sql(f"SELECT count(*) FROM {schema}.sessions") == [(2,)]
        assert await journal.append("leased", A, expect=0, lease=lease) == 2
        await journal.release(lease)
        with pytest.raises(LeaseLostError):
            await journal.append("leased", A, lease=lease)
        assert await journal.append("old", A, expect=0) == 2
    async with PostgresJournal(URL, schema=schema) as journal:
        assert await journal.purge() == 0


@pytest.mark.parametrize("opened", [True, False])
async def test_opening_and_appending_purge_at_times(schema, opened) -> None:
    journal = PostgresJournal(URL, schema=schema, ttl=HOUR)
    await journal.append("old", A)
    age(schema, "old")
    if opened:
        await journal.aclose()
        journal = PostgresJournal(URL, schema=schema, ttl=HOUR)
        await journal.sessions()
    else:
        await journal.append("s", A)
        journal._purge_due = 0
        await journal.append("s", A)
    assert run_sql(f"SELECT count(*) FROM {schema}.sessions WHERE key = 'old'") == [(0,)]
    await journal.aclose()


async def test_purging_leaves_damaged_sessions_to_be_looked_at(schema, caplog) -> None:
    async with PostgresJournal(URL, schema=schema, ttl=HOUR) as journal:
        for name in ("damaged", "old"):
            await journal.append(name, A)
        age(schema, "old")
        run_sql(f"UPDATE {schema}.sessions SET written = 1 WHERE key = 'damaged'")
        assert await journal.purge() == 1
        assert "may have expired" in caplog.text
        assert run_sql(f"SELECT count(*) FROM {schema}.sessions") == [(1,)]


async def test_opening_a_session_reads_no_history(schema) -> None:
    async with PostgresJournal(URL, schema=schema) as journal:
        await journal.append("s", A * 500)
        assert await journal.retire("s", range(1, 498)) == 497
        assert len(await journal.rows("s")) == 3
    live = f"SELECT seq FROM {schema}.entries WHERE session = 1 AND retired = 0 ORDER BY seq"
    [plan] = [
        [
            row[0]
            for row in run_sql(
                "SET enable_seqscan = off", "SET enable_bitmapscan = off", f"EXPLAIN {live}"
            )
        ]
    ]
    assert any("Index Cond: ((session = 1) AND (retired = 0))" in line for line in plan)
    assert not any("Sort" in line for line in plan)
