"""Servers that cannot be used as asked are refused, with what to do."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path

import anyio
import pytest
import redis

from agent_brain.memories import Entry, JournalError, RedisJournal
from agent_brain.memories.errors import MemoryDefinitionError
from tests.support.ports import free_port
from tests.support.redis_server import (
    URL,
    OwnServer,
    journal_prefix,
    own_server,
    redis_url,
)

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]

ALWAYS = ("--appendonly", "yes", "--appendfsync", "always")
PASSWORD = "correct-horse-battery"


async def refused(url: str, match: str, **options: object) -> str:
    async with RedisJournal(url, **options) as journal:  # type: ignore[arg-type]
        with pytest.raises(JournalError, match=match) as caught:
            await journal.append("s", [Entry("a", 1)])
    return str(caught.value)


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ((), "appendonly no, appendfsync everysec"),
        (("--appendonly", "yes"), "it has appendfsync everysec"),
        ((*ALWAYS, "--no-appendfsync-on-rewrite", "yes"), "no-appendfsync-on-rewrite yes"),
    ],
)
async def test_a_server_that_does_not_write_to_its_disk_is_refused(
    tmp_path: Path, options: tuple[str, ...], wrong: str
) -> None:
    with own_server(tmp_path, *options) as server:
        await refused(server.url, wrong, durability="disk")
        async with RedisJournal(server.url) as journal:
            await journal.append("s", [Entry("a", 1)])


async def test_a_server_that_writes_to_its_disk_is_used(tmp_path: Path) -> None:
    with own_server(tmp_path, *ALWAYS) as server:
        async with RedisJournal(server.url, durability="disk") as journal:
            assert await journal.append("s", [Entry("a", 1)]) == 1


async def test_a_server_that_forbids_to_ask_is_refused_for_the_disk_only(tmp_path: Path) -> None:
    with own_server(tmp_path, *ALWAYS) as server:
        with server.client() as client:
            client.execute_command("ACL SETUSER a on >b ~* +@all -config")
        url = server.url.replace("//", "//a:b@")
        await refused(url, "CONFIG GET is forbidden", durability="disk")
        async with RedisJournal(url) as journal:
            await journal.append("s", [Entry("a", 1)])


@pytest.mark.parametrize("durability", ["os", "", None])
def test_a_durability_that_redis_has_not_is_refused(durability, anyio_backend: str) -> None:
    with pytest.raises(MemoryDefinitionError, match=r"'memory' .* and 'disk'"):
        RedisJournal(URL, durability=durability)


async def test_a_server_that_evicts_keys_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with own_server(tmp_path, "--maxmemory", "50mb") as server:
        async with RedisJournal(server.url) as journal:
            await journal.last("s")
        assert caplog.records == []
        with server.client() as client:
            client.config_set("maxmemory-policy", "allkeys-lru")
        async with RedisJournal(server.url) as journal:
            await journal.last("s")
    assert "maxmemory-policy allkeys-lru" in caplog.text


async def test_info_may_be_forbidden(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with own_server(tmp_path) as server:
        with server.client() as client:
            client.execute_command("ACL SETUSER a on >b ~agent-brain:* +@all -@dangerous")
        async with RedisJournal(server.url.replace("//", "//a:b@")) as journal:
            await journal.append("s", [Entry("a", 1)])
            assert await journal.sessions() == ["s"]
            await journal.release(await journal.acquire("s"))
    assert "INFO is forbidden" in caplog.text


async def test_the_permissions_that_the_error_asks_for_are_enough(tmp_path: Path) -> None:
    with own_server(tmp_path) as server:
        url = server.url.replace("//", "//a:b@")
        with server.client() as client:
            client.execute_command("ACL SETUSER a on >b ~agent-brain:* +get")
            said = await refused(url, "does not permit")
            rights = said.partition("give the user ")[2].partition(" on the keys")[0]
            client.execute_command(f"ACL SETUSER a {rights}")
        async with RedisJournal(url, ttl=60) as journal:
            lease = await journal.acquire("s")
            await journal.append("s", [Entry("a", 1), Entry("a", 2)], lease=lease)
            await journal.retire("s", [1])
            await journal.trim("s")
            await journal.load("t", await journal.read("s"))
            await journal.records()
            await journal.delete("s")
            await journal.purge()
            await journal.release(lease)


async def test_a_full_server_writes_nothing(tmp_path: Path) -> None:
    with own_server(tmp_path) as server:
        async with RedisJournal(server.url) as journal:
            entries = [Entry("a", "x" * 100_000)] * 2
            await journal.append("s", entries)
            with server.client() as client:
                client.config_set("maxmemory", "1mb")
            with pytest.raises(JournalError, match="no memory left"):
                await journal.append("s", entries)
            assert len(await journal.read("s")) == 2


async def test_a_full_server_lets_data_be_deleted(tmp_path: Path) -> None:
    with own_server(tmp_path) as server:
        async with RedisJournal(server.url) as journal:
            for session in "stuv":
                await journal.append(session, [Entry("a", "x" * 100_000)] * 2)
            lease = await journal.acquire("v")
        with server.client() as client:
            client.config_set("maxmemory", "1mb")
        async with RedisJournal(server.url) as journal:  # opened while it is full
            assert await journal.delete("s") == 2
            assert await journal.delete("t", [1]) == 1
            assert await journal.retire("u", [1]) == 1
            assert await journal.trim("u") == 1
            assert await journal.delete("v", scrub=False) == 2
            assert await journal.purge() == 0
            await journal.release(lease)
            assert await journal.sessions() == ["t", "u"]
            with server.client() as client:
                client.config_set("maxmemory", "0")
            assert await journal.append("s", [Entry("a", 1)]) == 3  # no number is used again


async def test_a_replica_is_refused(tmp_path: Path) -> None:
    with own_server(tmp_path) as server:
        with server.client() as client:
            client.replicaof("127.0.0.1", 1)
        await refused(server.url, "read-only replica")


async def test_a_cluster_is_refused(tmp_path: Path) -> None:
    bus = str(free_port())
    with own_server(tmp_path, "--cluster-enabled", "yes", "--cluster-port", bus) as server:
        await refused(server.url, "is a Redis Cluster")


async def test_a_wrong_password_is_told_and_none_is_shown(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with own_server(tmp_path, "--requirepass", PASSWORD) as server:
        for user in ("", ":wrong-horse-battery@", "someone:wrong-horse-battery@"):
            said = await refused(server.url.replace("//", f"//{user}"), "refused the user or the p")
            assert "horse" not in said
        async with RedisJournal(server.url.replace("//", f"//:{PASSWORD}@")) as journal:
            await journal.append("s", [Entry("a", 1)])
            await journal.release(await journal.acquire("s", seconds=0.1))
            server.kill()
            with pytest.raises(JournalError) as caught:
                await journal.read("s")
            server.start()
            assert PASSWORD not in f"{journal!r} {caught.value} {caught.value.__cause__!r}"
    assert "horse" not in caplog.text


@pytest.mark.parametrize(
    "url",
    ["http://:secret-horse@localhost", f"redis://:{PASSWORD}/x@localhost", "", "localhost:6379"],
)
def test_a_url_that_cannot_be_read_is_refused(url: str, anyio_backend: str) -> None:
    with pytest.raises(MemoryDefinitionError, match="cannot be read") as caught:
        RedisJournal(url)
    assert "horse" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("timeout", [0, -1.0])
def test_a_timeout_that_makes_no_sense_is_refused(timeout: float, anyio_backend: str) -> None:
    with pytest.raises(MemoryDefinitionError, match="timeout"):
        RedisJournal(URL, timeout=timeout)


def test_the_missing_package_is_named(anyio_backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis.connection", None)
    with pytest.raises(JournalError, match=r"pip install 'agent-brain\[redis\]'"):
        RedisJournal(URL)


async def test_a_newer_layout_is_refused() -> None:
    redis_url()
    with journal_prefix() as prefix:
        with redis.Redis.from_url(URL) as client:
            client.set(f"{prefix}:layout", "2")
        await refused(URL, "has layout version '2'; this library reads version '1'", prefix=prefix)


async def test_many_journals_may_begin_at_once() -> None:
    redis_url()
    with journal_prefix() as prefix:
        journals = [RedisJournal(URL, prefix=prefix) for _ in range(10)]
        entries = [Entry("a", 1)]
        await asyncio.gather(*(journal.append("s", entries) for journal in journals))
        assert len(await journals[0].read("s")) == 10
        for journal in journals:
            await journal.aclose()


async def test_journals_of_one_place_are_the_same() -> None:
    one = RedisJournal("redis://user:password@localhost:6379/0")
    assert one.same_as(RedisJournal("redis://localhost"))
    assert not one.same_as(RedisJournal("redis://localhost", prefix="other"))
    assert not one.same_as(RedisJournal("redis://localhost/1"))
    assert not one.same_as(RedisJournal("redis://elsewhere"))


def files_with(folder: Path, word: bytes) -> list[str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return [path.name for path in files if word in path.read_bytes()]


async def test_deleted_data_leaves_the_memory_at_once_and_the_files_when_they_are_rewritten(
    tmp_path: Path,
) -> None:
    with own_server(tmp_path, *ALWAYS) as server:
        async with RedisJournal(server.url, durability="disk") as journal:
            await journal.append("s", [Entry("a", "first secret"), Entry("a", "kept")])
            await journal.append("t", [Entry("a", "second secret")])
            await journal.delete("s", [1])
            await journal.delete("t")
            with server.client() as client:
                dumps = [client.dump(key) for key in client.scan_iter()]
                assert not [dump for dump in dumps if b"secret" in dump]
                client.bgrewriteaof()
                wait(client)
            assert files_with(tmp_path, b"kept")
            assert not files_with(tmp_path, b"secret")
            server.kill()
            server.start()
            assert [entry.data for entry in await journal.read("s")] == ["kept"]


def wait(client: redis.Redis) -> None:
    """Wait for the end of a rewriting, also for the removal of the old files."""
    while True:
        facts = client.info("persistence")
        if not facts["aof_rewrite_in_progress"] and not facts["aof_rewrite_scheduled"]:
            return


async def test_a_server_with_tls_is_not_confused_with_one_without(tmp_path: Path) -> None:
    server = OwnServer(tmp_path)
    assert repr(RedisJournal(server.url.replace("redis:", "rediss:"))).startswith(
        "RedisJournal('rediss://127.0.0.1:"
    )


async def test_a_socket_of_unix_can_be_used(tmp_path: Path) -> None:
    path = tmp_path / "redis.sock"
    with own_server(tmp_path, "--unixsocket", str(path)):
        async with RedisJournal(f"unix://{path}") as journal:
            await journal.append("s", [Entry("a", 1)])
            await journal.release(await journal.acquire("s", seconds=0.1))
            assert repr(journal) == f"RedisJournal('unix://{path}?db=0', prefix='agent-brain')"


async def test_options_in_the_url_do_not_change_what_the_journal_reads() -> None:
    redis_url()
    with journal_prefix() as prefix:
        url = f"{URL}?decode_responses=true&protocol=3&encoding=latin-1&socket_timeout=5"
        async with RedisJournal(url, prefix=prefix) as journal:
            await journal.append("汉", [Entry("a", "汉")])
            assert [e.data for e in await journal.read("汉")] == ["汉"]
            assert await journal.sessions() == ["汉"]


def test_logs_name_no_password(anyio_backend: str, caplog: pytest.LogCaptureFixture) -> None:
    from agent_brain.memories.journal.redis.server import log

    with caplog.at_level(logging.WARNING):
        log.warning("redis://user:%s@localhost", PASSWORD)
    assert PASSWORD not in caplog.text


async def test_no_connection_to_a_server_that_became_a_replica_is_kept(tmp_path: Path) -> None:
    with own_server(tmp_path) as server:
        async with RedisJournal(server.url) as journal:
            await journal.append("s", [Entry("k", 1)])
            with server.client() as client:
                client.replicaof("127.0.0.1", 1)
                with pytest.raises(JournalError, match="read-only replica"):
                    await journal.append("s", [Entry("k", 2)])
                with anyio.fail_after(10):
                    while len(client.client_list(_type="normal")) > 1:  # more than this one
                        await anyio.sleep(0.01)
