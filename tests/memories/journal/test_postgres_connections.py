"""A PostgresJournal whose connections are cut, and whose server goes away."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from uuid import uuid4

import anyio
import psycopg
import pytest

from agent_brain.memories import (
    Entry,
    JournalConflictError,
    JournalError,
    Message,
    MessagesMemory,
    PostgresJournal,
)
from agent_brain.memories.errors import LeaseHeldError
from agent_brain.memories.journal.postgres import database as postgres_database
from agent_brain.memories.journal.postgres.database import PostgresTransaction
from agent_brain.memories.journal.postgres.errors import explain
from tests.support.cutting_proxy_threads import CuttingProxy
from tests.support.postgres_server import URL, new_schema, new_server, run_sql

pytestmark = [pytest.mark.anyio, pytest.mark.also_on_trio]
A = [Entry("a", 1), Entry("a", 2)]
COMMIT = b"; COMMIT\0"
WAITS_FOR_ME = b"SELECT 1 FROM pg_stat_activity WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid))"


@pytest.fixture(scope="module")
def schema():
    with new_schema() as name:
        yield name


@pytest.fixture(scope="module")
def server():
    with new_server(small=48) as running:
        yield running


@pytest.fixture
def proxy():
    with CuttingProxy("127.0.0.1", 5432) as running:
        yield running


def through(proxy: CuttingProxy) -> str:
    return f"postgresql://postgres@127.0.0.1:{proxy.port}/test?sslmode=disable"


@contextmanager
def locked(schema: str, session: str):
    """Keep a session locked, as a writer does that hangs."""
    with psycopg.connect(URL) as other:
        sql = f"SELECT * FROM {schema}.sessions WHERE key = %s FOR UPDATE"
        assert other.execute(sql.encode(), [session.encode()]).fetchall()
        yield other


class Terminator:
    """Ends the journal's connection before its statement of a number, counted from 1."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at = 0
        self.count = 0
        execute, commit = PostgresTransaction.execute, PostgresTransaction.commit

        def counted(tx: PostgresTransaction, sql, params=()):
            self.count += 1
            if self.count == self.at:
                terminate(tx._connection)
            return execute(tx, sql, params)

        def committed(tx: PostgresTransaction) -> None:
            self.count += 1
            if self.count == self.at:
                terminate(tx._connection)
            commit(tx)

        monkeypatch.setattr(PostgresTransaction, "execute", counted)
        monkeypatch.setattr(PostgresTransaction, "commit", committed)


def terminate(connection: psycopg.Connection) -> None:
    """End a connection, and wait until it has ended."""
    run_sql(f"SELECT pg_terminate_backend({connection.info.backend_pid}, 5000)")


def check_doubt(error: JournalError) -> None:
    assert "not known whether that was written" in str(error)


async def take_and_give_back(journal: PostgresJournal) -> None:
    await journal.release(await journal.acquire("other"))


CALLS = [
    ("retire", lambda j: j.retire("s", [j.stood])),
    ("delete", lambda j: j.delete("s", [j.stood], scrub=False)),
    ("trim", lambda j: j.trim("s")),
    ("acquire", take_and_give_back),
    ("delete the session", lambda j: j.delete("s", scrub=False)),
]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_an_append_with_a_number_is_done_once_wherever_the_connection_ends(
    schema, monkeypatch
) -> None:
    terminator = Terminator(monkeypatch)
    async with PostgresJournal(URL, schema=schema) as journal:
        for session in ("new", "known"):
            await journal.append("known", A)
            for at in range(1, 20):
                await journal.delete(session) if session == "new" else None
                last = await journal.last(session)
                terminator.count, terminator.at = 0, at
                after = await journal.append(session, A, expect=last)
                terminator.at = 0
                assert len(await journal.rows(session, last)) == 2
                assert after == await journal.last(session)
                if terminator.count < at:  # it has not ended
                    break
            assert 4 <= at < 19


@pytest.mark.thorough
@pytest.mark.parametrize("name, call", CALLS, ids=[name for name, _ in CALLS])
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_call_is_done_or_raises(schema, monkeypatch, name, call) -> None:
    terminator = Terminator(monkeypatch)
    async with PostgresJournal(URL, schema=schema) as journal:
        for at in range(1, 20):
            journal.stood = await journal.append("s", A)  # type: ignore[attr-defined]
            await journal.retire("s", [journal.stood - 1])  # type: ignore[attr-defined]
            before = await journal.read("s", history=True)
            terminator.count, terminator.at = 0, at
            try:
                await call(journal)
            except JournalError as error:
                terminator.at = 0
                check_doubt(error)
                assert await journal.read("s", history=True) == before
                break
            finally:
                terminator.at = 0
            if name != "acquire":
                assert await journal.read("s", history=True) != before
            if terminator.count < at:
                break
        assert 2 <= at < 19


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_reading_is_tried_again(schema, monkeypatch) -> None:
    terminator = Terminator(monkeypatch)
    monkeypatch.setattr("agent_brain.memories.journal.threaded.READ", 2)
    async with PostgresJournal(URL, schema=schema) as journal:
        await journal.delete("s")
        await journal.append("s", [Entry("a", n) for n in range(5)])
        expected = await journal.read("s")
        for at in range(1, 6):
            terminator.count, terminator.at = 0, at
            assert await journal.read("s") == expected
            assert terminator.count > at


async def test_idle_connections_that_were_ended_are_not_noticed(schema) -> None:
    async with PostgresJournal(URL, schema=schema) as journal:
        async with anyio.create_task_group() as group:
            for number in range(5):
                group.start_soon(journal.append, f"{number}", A)
        last = await journal.append("s", A)
        assert len(journal._server._idle) > 1
        for connection in journal._server._idle:
            terminate(connection)
        assert await journal.append("s", A, expect=last) == last + 2


@pytest.mark.parametrize("how", ["before", "after"])
async def test_an_append_without_an_answer_is_in_doubt(schema, proxy, how) -> None:
    async with PostgresJournal(through(proxy), schema=schema) as journal:
        last = await journal.append("s", A)
        proxy.at, proxy.how = COMMIT, how
        with pytest.raises(JournalError, match="not known whether that was written: read the"):
            await journal.append("s", A)
        assert await journal.last("s") == last + (2 if how == "after" else 0)
        await journal.append("s", A)


@pytest.mark.parametrize("how", ["before", "after"])
async def test_an_append_with_a_number_is_repeated_and_done_once(schema, proxy, how) -> None:
    async with PostgresJournal(through(proxy), schema=schema) as journal:
        last = await journal.append("s", A)
        proxy.at, proxy.how = COMMIT, how
        assert await journal.append("s", A, expect=last) == last + 2
        assert proxy.at is None
        assert await journal.last("s") == last + 2
        new = uuid4().hex
        proxy.at, proxy.how = COMMIT, how
        written = await journal.append(new, A, expect=0)
        assert (written, len(await journal.read(new))) == (await journal.last(new), len(A))


async def test_an_append_that_another_writer_preceded_is_not_taken_for_done(schema, proxy) -> None:
    async with PostgresJournal(through(proxy), schema=schema) as journal:
        last = await journal.append("s", A)
        async with PostgresJournal(URL, schema=schema) as other:
            await other.append("s", [*A, *A], expect=last)
        proxy.at, proxy.how = b"SELECT", "before"
        with pytest.raises(JournalConflictError):
            await journal.append("s", A, expect=last)
        assert await journal.last("s") == last + 4


@pytest.mark.parametrize("how", ["before", "after"])
async def test_a_memory_finds_out_whether_it_was_written(schema, proxy, how) -> None:
    session = uuid4().hex
    async with PostgresJournal(through(proxy), schema=schema) as journal:
        memory = MessagesMemory(journal=journal, session=session)
        await memory.update([Message.user("one", id="one")])
        proxy.at, proxy.how, proxy.times = b"COMMIT\0", how, 3
        with pytest.raises(JournalError):
            await memory.update([Message.assistant("two", id="two")])
        await memory.update([Message.assistant("three", id="three")])
        told = [message.content for message in await memory.dump()]
    async with PostgresJournal(URL, schema=schema) as journal:
        stored = MessagesMemory(journal=journal, session=session)
        assert [message.content for message in await stored.dump()] == told
    assert told == (["one", "two", "three"] if how == "after" else ["one", "three"])


async def test_a_server_that_does_not_answer_is_not_waited_for(schema, proxy, monkeypatch) -> None:
    monkeypatch.setattr(postgres_database, "GRACE", 0.5)
    async with PostgresJournal(through(proxy), schema=schema, timeout=1) as journal:
        last = await journal.append("s", A)
        proxy.at, proxy.how = b"SELECT", "never"
        with pytest.raises(JournalError, match="no answer for 2 s"):
            await journal.append("s", A, expect=last)
        proxy.at, proxy.how = COMMIT, "never"
        with pytest.raises(JournalError, match="not known whether"):
            await journal.append("s", A, expect=last)
        assert await journal.append("s", A, expect=last) == last + 2


async def test_a_locked_session_is_waited_for_so_long(schema) -> None:
    async with PostgresJournal(URL, schema=schema, timeout=0.2) as journal:
        last = await journal.append("s", A)
        with locked(schema, "s"):
            with pytest.raises(JournalError, match="another process keeps the session locked"):
                await journal.append("s", A)
            assert await journal.append("another", A) > 0
        assert await journal.append("s", A) == last + 2


async def test_a_writer_that_hangs_does_not_lock_a_session_for_ever(
    schema, proxy, monkeypatch
) -> None:
    monkeypatch.setattr(postgres_database, "GRACE", 0.5)
    async with PostgresJournal(through(proxy), schema=schema, timeout=1) as hanging:
        last = await hanging.append("s", A)
        proxy.at, proxy.how = b"INSERT", "never"
        journal = PostgresJournal(URL, schema=schema)
        async with journal, anyio.create_task_group() as group:
            group.start_soon(raises, hanging.append("s", A))
            while proxy.at is not None:
                await anyio.lowlevel.checkpoint()
            assert await journal.append("s", A) == last + 2


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
async def test_a_server_notices_soon_that_a_client_is_gone(schema) -> None:
    address = f"postgresql://postgres@127.0.0.1:5432/test?application_name=gone-{schema}"
    sql = "SELECT client_port FROM pg_stat_activity WHERE application_name = %s"
    async with PostgresJournal(address, schema=schema) as journal:
        await journal.append("s", A)
        with psycopg.connect(URL) as other:
            ports = [f":{port:04X}" for (port,) in other.execute(sql, [f"gone-{schema}"])]

        def timer() -> tuple[str, int] | None:
            for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
                _, local, peer, _, _, times, *_ = line.split()
                if local.endswith(f":{5432:04X}") and peer.endswith(tuple(ports)):
                    kind, ticks = times.split(":")
                    return kind, int(ticks, 16) // os.sysconf("SC_CLK_TCK")
            return None

        while (found := timer()) is None or found[0] == "01":  # it waits for an acknowledgement
            await anyio.sleep(0.01)
        assert found[0] == "02"  # a timer of keepalive
        assert found[1] <= 30


async def raises(call) -> None:
    with pytest.raises(JournalError):
        await call


async def test_sessions_do_not_wait_for_each_other(schema) -> None:
    async with PostgresJournal(URL, schema=schema, pool_size=2) as journal:
        await journal.append("locked", A)
        with locked(schema, "locked") as other:
            async with anyio.create_task_group() as group:
                for _ in range(5):
                    group.start_soon(journal.append, "locked", A)
                await anyio.sleep(0)
                for _ in range(5):
                    await journal.append("free", A)
                other.rollback()
        assert len(await journal.read("locked")) == 12
        await journal.delete("locked")


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_task_that_asyncio_cancels_is_waited_for_by_the_next_call(schema) -> None:
    async with PostgresJournal(URL, schema=schema) as journal:
        last = await journal.append("cancelled", A)
        with locked(schema, "cancelled") as other:
            for _ in range(3):  # the first one has begun; the others never do
                task = asyncio.create_task(journal.append("cancelled", A))
                while not other.execute(WAITS_FOR_ME).fetchall():
                    await asyncio.sleep(0)
                await journal.last("another")
                task.cancel()
                await asyncio.wait([task])
                assert task.cancelled()
            found = asyncio.create_task(journal.last("cancelled"))
            for _ in range(3):
                await journal.last("another")
            assert not found.done()
            other.rollback()
            assert await found == last + 2
        assert await journal.append("cancelled", A, expect=last + 2) == last + 4


async def test_one_of_many_processes_wins(schema) -> None:
    won: list[int] = []

    async def write(journal: PostgresJournal, number: int) -> None:
        with suppress(JournalConflictError):
            await journal.append("raced", [Entry("a", number)] * 3, expect=last)
            won.append(number)

    async with AsyncExitStack() as stack:
        journals = [
            await stack.enter_async_context(PostgresJournal(URL, schema=schema)) for _ in range(8)
        ]
        for journal in journals:
            last = await journal.last("raced")
        async with anyio.create_task_group() as group:
            for number, journal in enumerate(journals):
                group.start_soon(write, journal, number)
        assert [entry.data for entry in await journal.read("raced", last)] == won * 3
    assert len(won) == 1


@pytest.mark.thorough
async def test_a_restarted_server_is_used_again(server) -> None:
    async with PostgresJournal(server.url()) as journal:
        last = await journal.append("s", A)
        lease = await journal.acquire("s")
        last = await journal.append("s", A, lease=lease)
        server.stop()
        try:
            with pytest.raises(JournalError, match="cannot be reached"):
                await journal.append("s", A, lease=lease)
        finally:
            server.start()
        assert await journal.append("s", A, expect=last, lease=lease) == last + 2
        with pytest.raises(LeaseHeldError):
            await journal.append("s", A)
        await journal.release(lease)


@pytest.mark.thorough
async def test_a_full_disk_loses_nothing(server) -> None:
    url, schema = server.url(), "full"
    run_sql(
        f"CREATE TABLESPACE small LOCATION '{server.folder}/small'",
        "ALTER ROLE postgres SET default_tablespace = small",
        url=url,
    ) if not run_sql("SELECT 1 FROM pg_tablespace WHERE spcname = 'small'", url=url) else None
    async with PostgresJournal(url, schema=schema) as journal:
        await journal.delete("s")
        last = await journal.append("s", A)
        run_sql("CREATE TABLE IF NOT EXISTS junk (data text)", url=url)
        with pytest.raises(psycopg.errors.DiskFull):
            run_sql(
                "INSERT INTO junk SELECT repeat('x', 1900) FROM generate_series(1, 99999)", url=url
            )
        big = [Entry("a", "".join(chr(0x4E00 + n % 9973) for n in range(20_000)))] * 500
        with pytest.raises(JournalError, match=r"has no room .* Nothing of this call was written"):
            await journal.append("s", big, expect=last)
        assert [entry.data for entry in await journal.read("s")] == [1, 2]
        run_sql("DROP TABLE junk", url=url)
        assert await journal.append("s", big, expect=last) == last + 500
        assert len(await journal.read("s")) == 502


@pytest.fixture
def small_user(schema):
    """The URL of a user who may have one connection."""
    name = f"few_{uuid4().hex}"
    run_sql(
        f"CREATE ROLE {name} LOGIN CONNECTION LIMIT 1", f"GRANT CREATE ON DATABASE test TO {name}"
    )
    yield URL.replace("postgres@", f"{name}@")
    run_sql(f"DROP OWNED BY {name} CASCADE", f"DROP ROLE {name}")


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_too_many_connections_are_reported(small_user) -> None:
    schema = f"few_{uuid4().hex}"
    async with PostgresJournal(small_user, schema=schema) as journal:
        await journal.append("s", A)
        async with PostgresJournal(small_user, schema=schema) as second:
            with pytest.raises(JournalError, match=r"no more connections.*pool_size=") as e:
                await second.append("s", A)
            assert "too many connections for role" in str(e.value)
            assert len(await journal.read("s")) == 2
            await journal.aclose()

            async def has_room() -> bool:
                try:
                    await second.append("s", A)
                except JournalError:
                    return False
                return True

            with anyio.fail_after(60):
                while not await has_room():  # the server notices a little later
                    await anyio.sleep(0.01)
            assert len(await second.read("s")) == 4


@pytest.mark.parametrize(
    "said",
    [
        'connection to server at "db", port 5432 failed: FATAL:  sorry, too many clients already',
        "FATAL:  remaining connection slots are reserved for roles with the SUPERUSER attribute",
        'FATAL:  too many connections for database "app"',
        "FATAL:  no more connections allowed (max_client_conn)",
        "FATAL:  MaxClientsInSessionMode: max clients reached",
    ],
)
def test_servers_and_poolers_say_that_they_take_no_more(said: str) -> None:
    error = explain("journal", psycopg.OperationalError(said), connecting=True)
    assert "takes no more connections" in str(error)


@pytest.mark.parametrize("said", ["FATAL:  die Verbindung wurde abgelehnt", "connection refused"])
def test_other_reasons_are_told_apart(said: str) -> None:
    error = explain("journal", psycopg.OperationalError(said), connecting=True)
    assert "cannot be reached" in str(error)
    lost = explain("journal", psycopg.OperationalError("too many clients"))
    assert "lost its connection" in str(lost)
