"""A PostgresJournal that may not do something, or cannot."""

from __future__ import annotations

import subprocess
import sys
import traceback
from datetime import timedelta

import anyio
import psycopg
import pytest

from agent_brain.memories import (
    Entry,
    JournalError,
    MemoryDefinitionError,
    MessagesMemory,
    PostgresJournal,
)
from agent_brain.memories.errors import LeaseHeldError
from tests.support.ports import free_port
from tests.support.postgres_server import PASSWORD, URL, new_schema, new_server, run_sql

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.anyio,
    pytest.mark.parametrize("anyio_backend", ["asyncio"]),
]
A = [Entry("a", 1)]


@pytest.fixture
def schema():
    with new_schema() as name:
        yield name


@pytest.fixture
def role(schema):
    """A user who may only connect, named like the schema."""
    run_sql(f"CREATE ROLE {schema} LOGIN")
    yield schema
    run_sql(f"DROP OWNED BY {schema} CASCADE", f"DROP ROLE {schema}")


def url_of(role: str) -> str:
    return f"postgresql://{role}@127.0.0.1:5432/test"


async def test_a_user_who_may_not_create_tables_is_told_the_sql(role) -> None:
    run_sql(f"REVOKE CREATE ON DATABASE test FROM {role}, PUBLIC")
    async with PostgresJournal(url_of(role), schema=role) as journal:
        with pytest.raises(JournalError, match=r"may not create it(.|\n)*CREATE TABLE") as caught:
            await journal.append("s", A)
        run_sql(PostgresJournal.layout_sql(role, role=role))
        assert f'GRANT USAGE ON SCHEMA "{role}" TO' in str(caught.value)
        assert await journal.append("s", A) == 1
        assert await journal.delete("s") == 1  # and is not vacuumed by this user


async def test_a_user_may_create_the_tables_in_a_schema_of_his(role) -> None:
    run_sql(f"CREATE SCHEMA {role} AUTHORIZATION {role}")
    async with PostgresJournal(url_of(role), schema=role) as journal:
        assert await journal.append("s", A) == 1


async def test_a_user_who_may_only_read_is_told(role) -> None:
    async with PostgresJournal(URL, schema=role) as journal:
        await journal.append("s", A)
    run_sql(
        f"GRANT USAGE ON SCHEMA {role} TO {role}",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {role} TO {role}",
    )
    async with PostgresJournal(url_of(role), schema=role) as journal:
        assert len(await journal.read("s")) == 1
        for call in (journal.append("s", A), journal.delete("s"), journal.acquire("s")):
            with pytest.raises(JournalError, match=r"may not be used by this user \(.*layout_sql"):
                await call
    async with PostgresJournal(url_of(role), schema=role, readonly=True) as journal:
        memory = MessagesMemory(journal=journal, session="s", readonly=True)
        assert await memory.dump() == []


async def test_a_user_without_any_right_is_told(role) -> None:
    async with PostgresJournal(URL, schema=role) as journal:
        await journal.append("s", A)
    async with PostgresJournal(url_of(role), schema=role) as journal:
        with pytest.raises(JournalError, match=r"may not be used by this user \(.*layout_sql"):
            await journal.read("s")


async def test_a_read_only_user_is_told(role) -> None:
    async with PostgresJournal(URL, schema=role) as journal:
        await journal.append("s", A)
    run_sql("GRANT" + PostgresJournal.layout_sql(role, role=role).partition("GRANT")[2])
    run_sql(f"ALTER ROLE {role} SET default_transaction_read_only = on")
    async with PostgresJournal(url_of(role), schema=role) as journal:
        assert len(await journal.read("s")) == 1
        with pytest.raises(JournalError, match=r"may not be written to \(.*is a replica"):
            await journal.append("s", A)
        assert len(await journal.read("s")) == 1


async def test_a_journal_that_is_read_only_writes_nothing(schema) -> None:
    async with PostgresJournal(URL, schema=schema, readonly=True) as journal:
        with pytest.raises(JournalError, match="does not exist"):
            await journal.read("s")
        assert run_sql(f"SELECT to_regnamespace('{schema}')") == [(None,)]
        for call in (
            journal.append("s", A), journal.delete("s"), journal.retire("s", [1]), journal.trim("s"),
            journal.load("s", A), journal.acquire("s"), journal.purge(),
        ):  # fmt: skip
            with pytest.raises(JournalError, match="readonly=True"):
                await call


@pytest.fixture(scope="module")
def server():
    with new_server() as running:
        yield running


async def test_what_is_wrong_with_the_address_is_told_without_the_password(server) -> None:
    url = server.url()
    for wrong in (
        server.url(password="wrong-secret"),
        url.replace("postgres:p", "nobody:p"),
        server.url(database="missing"),
        url.replace(f":{server.port}/", f":{free_port()}/"),  # nobody listens
        url.replace("127.0.0.1", "nowhere.invalid"),
    ):
        async with PostgresJournal(wrong) as journal:
            with pytest.raises(
                JournalError, match=r"cannot be reached \(.+\): check that the server runs"
            ) as caught:
                await journal.read("s")
            text = "".join(traceback.format_exception(caught.value)) + repr(journal)
            assert "wrong-secret" not in text
            assert PASSWORD not in text
            assert "p%40ss" not in text
    async with PostgresJournal(url) as journal:
        assert await journal.append("s", A) == 1


async def test_a_server_with_too_many_connections_is_told(server) -> None:
    run_sql("CREATE ROLE few LOGIN CONNECTION LIMIT 1 PASSWORD 'secret'", url=server.url())
    url = server.url().replace("postgres:p%40ss%3Aw%2Frd%251", "few:secret")
    with psycopg.connect(url):
        async with PostgresJournal(url) as journal:
            with pytest.raises(JournalError, match="takes no more connections"):
                await journal.read("s")


async def test_a_database_that_cannot_hold_every_text_is_refused(server) -> None:
    run_sql(
        "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'", url=server.url()
    )
    async with PostgresJournal(server.url(database="latin")) as journal:
        with pytest.raises(JournalError, match="the encoding LATIN1, which cannot hold every text"):
            await journal.append("s", A)


@pytest.mark.parametrize("url", [
    "postgresql://u:se/cret@h/d", "postgresql://u:se@cret@h/d", "postgresql://u:cret%zz@h/d",
    "mysql://u:secret@h/d", "postgresql://u:secret@h:cret/d", "nonsense cret", "postgresql://h/d?cret=1",
])  # fmt: skip
async def test_a_url_that_cannot_be_read_is_not_quoted(url) -> None:
    with pytest.raises(MemoryDefinitionError, match=r"cannot be read: it is like") as caught:
        PostgresJournal(url)
    assert "cret" not in "".join(traceback.format_exception(caught.value)).replace(url, "")


@pytest.mark.parametrize("wrong, said", [
    ({"durability": "os"}, r"'disk': .*; 'memory': .*PostgreSQL cannot leave a commit to the operating"),
    ({"schema": "a b"}, "ASCII letters"), ({"schema": "pg_x"}, "ASCII letters"), ({"schema": ""}, "ASCII"),
    ({"schema": "x" * 64}, "63 ASCII letters"), ({"pool_size": 0}, "number from 1"), ({"timeout": 0}, "seconds from"),
    ({"ttl": 0}, "greater than 0"), ({"ttl": timedelta(seconds=-1)}, "greater than 0"),
])  # fmt: skip
async def test_a_wrong_argument_is_refused(wrong, said) -> None:
    with pytest.raises(MemoryDefinitionError, match=said):
        PostgresJournal(URL, **wrong)


async def test_without_psycopg_the_extra_is_named(monkeypatch) -> None:
    for name in [name for name in sys.modules if name.startswith("psycopg")]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("database",):
        monkeypatch.delitem(sys.modules, f"agent_brain.memories.journal.postgres.{name}")
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(JournalError, match=r"pip install 'agent-brain\[postgres\]'"):
        PostgresJournal(URL)


async def test_psycopg_is_imported_when_a_journal_is_made() -> None:
    program = (
        "import sys; from agent_brain.memories import PostgresJournal; "
        "assert 'psycopg' not in sys.modules; PostgresJournal('postgresql://h/d'); "
        "assert 'psycopg' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


async def test_journals_are_compared_by_where_they_are() -> None:
    journal = PostgresJournal("postgresql://a:secret-1@h:5432/d")
    assert repr(journal) == "PostgresJournal(h:5432/d, schema agent_brain)"
    assert journal.same_as(journal)
    assert journal.same_as(PostgresJournal("postgresql://b:secret-2@h/d"))
    assert journal.same_as(PostgresJournal("host=h dbname=d port=5432"))
    for other in (
        PostgresJournal("postgresql://a@h/e"), PostgresJournal("postgresql://a@i/d"),
        PostgresJournal("postgresql://a@h:1/d"), PostgresJournal("postgresql://a@h/d", schema="x"),
    ):  # fmt: skip
        assert not journal.same_as(other)


async def test_a_newer_layout_is_refused(schema) -> None:
    async with PostgresJournal(URL, schema=schema) as journal:
        await journal.append("s", A)
    run_sql(f"UPDATE {schema}.journal SET version = 99")
    async with PostgresJournal(URL, schema=schema) as journal:
        with pytest.raises(JournalError, match="layout version 99; this library reads version 2"):
            await journal.append("s", A)
    assert run_sql(f"SELECT last FROM {schema}.sessions") == [(1,)]


async def test_tables_of_something_else_are_left_alone(schema) -> None:
    run_sql(f"CREATE SCHEMA {schema}", f"CREATE TABLE {schema}.sessions (id int)")
    async with PostgresJournal(URL, schema=schema) as journal:
        with pytest.raises(JournalError, match="tables of something else"):
            await journal.append("s", A)
    assert run_sql(
        f"SELECT count(*) FROM pg_class WHERE relnamespace = '{schema}'::regnamespace"
    ) == [(1,)]


async def test_many_create_the_tables_at_once(schema) -> None:
    journals = [PostgresJournal(URL, schema=schema) for _ in range(12)]
    async with anyio.create_task_group() as group:
        for number, journal in enumerate(journals):
            group.start_soon(journal.append, f"{number}", A)
    assert len(await journals[0].sessions()) == 12
    assert run_sql(f"SELECT version FROM {schema}.journal") == [(2,)]
    for journal in journals:
        await journal.aclose()


async def test_tables_are_seen_with_what_is_in_them(schema) -> None:
    """Another process creates them while this one looks."""
    async with (
        PostgresJournal(URL, schema=schema) as journal,
        PostgresJournal(URL, schema=schema) as other,
    ):

        def look(tx) -> bool:
            tx.get("SELECT 1")
            other._open()
            return journal._server.layout.is_there(tx, "journal")

        assert journal._server.run("check", look)
        run_sql(f"DROP SCHEMA {schema} CASCADE")
        other._opened = False
        with pytest.raises(JournalError, match="layout version None"):
            journal._server.run("read", look)


async def test_no_session_state_is_left_in_a_connection(schema) -> None:
    """What a pooler that gives each transaction another connection needs."""
    names = "synchronous_commit", "lock_timeout", "statement_timeout", "enable_sort", "jit"
    show = "SELECT " + ", ".join(f"current_setting('{name}')" for name in names)
    async with PostgresJournal(URL, schema=schema, durability="memory") as journal:
        lease = await journal.acquire("s")
        await journal.append("s", A, lease=lease)
        await journal.read("s")
        await journal.release(lease)
        held = await journal.acquire("s")
        with pytest.raises(LeaseHeldError):
            await journal.append("s", A)
        await journal.delete("s")
        [connection] = journal._server._idle
        assert [connection.execute(show.encode()).fetchone()] == run_sql(show)
        for what in ("pg_prepared_statements", "pg_cursors"):
            count = f"SELECT count(*) FROM {what} WHERE name <> ''"
            assert connection.execute(count.encode()).fetchone() == (0,)
        mine = (
            "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'"
        )
        assert connection.execute(mine.encode()).fetchone() == (0,)
        await journal.release(held)


async def test_a_commit_waits_for_the_disk_as_it_is_told(schema, monkeypatch) -> None:
    from agent_brain.memories.journal.postgres import database

    seen: list[str] = []

    class Watched(database.PostgresTransaction):
        def commit(self) -> None:
            if not self._begin:
                seen.append(self.get_one("SELECT current_setting('synchronous_commit')")[0])
            super().commit()

    monkeypatch.setattr(database, "PostgresTransaction", Watched)
    url = f"{URL}?options=-csynchronous_commit%3D"
    for durability, default, wanted in [
        ("disk", "on", "on"), ("disk", "off", "on"), ("disk", "remote_apply", "remote_apply"),
        ("memory", "on", "off"),
    ]:  # fmt: skip
        async with PostgresJournal(url + default, schema=schema, durability=durability) as journal:  # type: ignore[arg-type]
            await journal.append("s", A)
            seen.clear()
            await journal.append("s", A)
            assert {*seen} == {wanted}
            lease = await journal.acquire("s")
            assert seen[-1] == "off"
            await journal.release(lease)
