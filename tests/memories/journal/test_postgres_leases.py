"""Leases of a PostgresJournal, in several processes."""

from __future__ import annotations

import os
import subprocess
import sys

import anyio
import psycopg
import pytest

from agent_brain.memories import Entry, JournalError, PostgresJournal
from agent_brain.memories.errors import LeaseHeldError, LeaseLostError
from agent_brain.memories.journal.lease import Owner
from tests.support.postgres_server import URL, new_schema, run_sql

pytestmark = [pytest.mark.anyio, pytest.mark.also_on_trio]
ASYNCIO = pytest.mark.parametrize("anyio_backend", ["asyncio"])
A = [Entry("a", 1)]

PROGRAM = """
import sys, time
import anyio
from agent_brain.memories import Entry, PostgresJournal

async def main():
    journal = PostgresJournal(sys.argv[1], schema=sys.argv[2])
    lease = await journal.acquire("s", seconds=float(sys.argv[3]))
    await journal.append("s", [Entry("a", 1)], lease=lease)
    print("taken", flush=True)
    sys.stdin.read()

anyio.run(main)
"""


@pytest.fixture
def schema():
    with new_schema() as name:
        yield name


@pytest.fixture
def other_process(schema):
    """A process that has the lease of ``s``, and ends with its input."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, URL, schema, "30"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "taken\n"
        yield process
        process.kill()


async def test_the_lease_of_a_killed_process_is_taken_over_at_once(schema, other_process) -> None:
    async with PostgresJournal(URL, schema=schema) as journal:
        with pytest.raises(LeaseHeldError, match=f"in use by process {other_process.pid}"):
            await journal.acquire("s")
        with pytest.raises(LeaseHeldError):
            await journal.append("s", A)
        other_process.kill()
        other_process.wait()
        lease = await journal.acquire("s")
        assert await journal.append("s", A, expect=1, lease=lease) == 2
        await journal.release(lease)


def put_on_another_machine(schema: str) -> None:
    owner = Owner("far", 1, "another machine", "1").to_text()
    run_sql(f"UPDATE {schema}.sessions SET owner = '{owner}' WHERE lease IS NOT NULL")


async def test_the_lease_of_another_machine_is_taken_over_when_it_has_ended(schema) -> None:
    async with (
        PostgresJournal(URL, schema=schema) as far,
        PostgresJournal(URL, schema=schema) as journal,
    ):
        old = await far.acquire("s", seconds=1000)
        await far.append("s", A, lease=old)
        put_on_another_machine(schema)
        far._heartbeat.stop()
        with pytest.raises(LeaseHeldError, match="in use by process 1 on far"):
            await journal.acquire("s")
        run_sql(f"UPDATE {schema}.sessions SET ends = ends - 999700")  # in less than 0.3 s
        lease = await journal.acquire("s", wait=30)
        with pytest.raises(LeaseLostError):
            await far.append("s", A, lease=old)
        await far.release(old)
        assert await journal.append("s", A, expect=1, lease=lease) == 2
        await journal.release(lease)


async def test_a_lease_that_ended_is_good_until_it_is_taken_over(schema) -> None:
    async with PostgresJournal(URL, schema=schema) as journal:
        lease = await journal.acquire("s")
        journal._heartbeat.stop()
        run_sql(f"UPDATE {schema}.sessions SET ends = 0")
        await journal.append("s", A, lease=lease)
        with pytest.raises(LeaseHeldError):
            await journal.append("s", A)
        run_sql(f"UPDATE {schema}.sessions SET ends = 0")
        await journal.append("s", A)
        await journal.release(lease)


@ASYNCIO
async def test_a_busy_event_loop_does_not_lose_a_lease(schema) -> None:
    async with PostgresJournal(URL, schema=schema) as journal:
        lease = await journal.acquire("s", seconds=6)
        put_on_another_machine(schema)
        ends = f"SELECT ends FROM {schema}.sessions"
        first = run_sql(ends)
        while run_sql(ends) == first:  # without giving the event loop a chance
            pass
        with pytest.raises(LeaseHeldError):
            await journal.acquire("s")
        await journal.release(lease)
        assert run_sql(f"SELECT count(*) FROM {schema}.sessions") == [(0,)]


@ASYNCIO
async def test_renewing_leaves_out_what_is_locked_and_finds_what_was_lost(schema) -> None:
    async with PostgresJournal(URL, schema=schema) as journal:
        leases = [await journal.acquire(name) for name in ("kept", "locked", "lost", "released")]
        run_sql(f"UPDATE {schema}.sessions SET ends = 1")
        run_sql(f"UPDATE {schema}.sessions SET lease = 'x' WHERE key = 'lost'")
        run_sql(f"DELETE FROM {schema}.sessions WHERE key = 'released'")
        with psycopg.connect(URL) as other:
            other.execute(
                f"SELECT 1 FROM {schema}.sessions WHERE key = 'locked' FOR UPDATE".encode()
            )
            lost = await anyio.to_thread.run_sync(journal._renew, leases)
        assert {*lost} == {leases[2].token, leases[3].token}
        ends = f"SELECT convert_from(key, 'utf8') FROM {schema}.sessions WHERE ends > 1"
        assert run_sql(ends) == [("kept",)]
        for lease in leases:
            await journal.release(lease)


@ASYNCIO
async def test_a_session_with_a_lease_only_is_none(schema) -> None:
    async with PostgresJournal(URL, schema=schema) as journal:
        await journal.append("gone", A)
        await journal.delete("gone")
        lease = await journal.acquire("s")
        assert await journal.sessions() == []
        assert await journal.records() == []
        assert (await journal.last("s"), await journal.read("s")) == (0, [])
        assert [page async for page in journal.pages("s")] == []
        assert await journal.append("s", A, expect=0, lease=lease) == 2
        assert await journal.delete("s") == 1
        with pytest.raises(LeaseLostError):
            await journal.append("s", A, lease=lease)
        await journal.release(lease)


@ASYNCIO
async def test_a_dead_lease_of_a_session_without_entries_is_purged(schema) -> None:
    async with PostgresJournal(URL, schema=schema) as journal:
        kept, dead = await journal.acquire("kept"), await journal.acquire("dead")
        run_sql(f"UPDATE {schema}.sessions SET ends = 0 WHERE key = 'dead'")
        assert await journal.purge() == 0
        assert run_sql(f"SELECT convert_from(key, 'utf8') FROM {schema}.sessions") == [("kept",)]
        for lease in (kept, dead):
            await journal.release(lease)


@ASYNCIO
async def test_a_closed_journal_renews_nothing(schema) -> None:
    journal = PostgresJournal(URL, schema=schema)
    await journal.acquire("s", seconds=0.2)
    await journal.aclose()
    assert journal._heartbeat._thread is None
    with pytest.raises(JournalError, match="is closed"):
        await journal.acquire("s")


@ASYNCIO
async def test_a_child_process_leaves_the_connections_of_its_parent(schema) -> None:
    async with PostgresJournal(URL, schema=schema) as journal:
        await journal.append("s", A)
        pid = journal._server._idle[0].info.backend_pid
        child = os.fork()
        if child == 0:
            try:
                own = "SELECT pg_backend_pid()"
                assert journal._server.run("read", lambda tx: tx.get(own)) != (pid,)
            except BaseException:
                os._exit(1)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert await journal.append("s", A, expect=1) == 2
        assert journal._server._idle[0].info.backend_pid == pid
