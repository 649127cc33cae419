"""``agent-brain sessions`` over PostgreSQL and Redis, by their URLs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from uuid import uuid4

import anyio
import pytest

from tests.cli.stored import converse
from tests.cli.support import in_order, invoke, json_lines
from tests.support.postgres_server import URL, needs_postgres, run_sql
from tests.support.redis_server import own_server


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """The URL of a database of our own."""
    needs_postgres()
    name = f"test_{uuid4().hex}"
    run_sql(f"CREATE DATABASE {name}")
    try:
        yield f"{URL.rpartition('/')[0]}/{name}"
    finally:
        run_sql(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def redis(folder: Path) -> Iterator[str]:
    """The URL of a server of our own."""
    with own_server(folder) as server:
        yield server.url


SERVERS = {"postgres": postgres, "redis": redis}


@pytest.mark.parametrize("server", SERVERS)
def test_sessions_on_a_server_are_listed_shown_copied_and_removed(server, tmp_path):
    start: Callable[[Path], AbstractContextManager[str]] = SERVERS[server]
    with start(tmp_path) as url:
        known = {"AGENT_BRAIN_JOURNAL": url}
        _, call, *_ = anyio.run(converse, url)
        assert in_order(invoke("sessions", "list", env=known).stdout, ["ann", "question 0", "12"])
        shown = invoke("sessions", "show", "ann", env=known).stdout
        assert in_order(shown, ["question 0", "look(number=0)", "look: seen 0", "answer 0"])
        exported = invoke("sessions", "export", "ann", env=known).stdout
        invoke("sessions", "import", "-", "--as", "bob", env=known, stdin=exported)
        assert invoke("sessions", "diff", "ann", "bob", env=known).exit_code == 0
        fork = invoke("sessions", "fork", "ann", "--step", str(call), "--to", "eve", env=known)
        assert f"{url.partition('://')[0]}://…" in fork.stdout
        assert invoke("sessions", "rm", "ann", "--yes", env=known).exit_code == 0
        left = json_lines(invoke("sessions", "list", "--json", env=known).stdout)
        assert {each["session"]: each["status"] for each in left} == {
            "bob": "ended",
            "eve": "running",
        }


def test_reading_a_database_without_a_journal_creates_nothing(tmp_path):
    with postgres(tmp_path) as url:
        done = invoke("sessions", "list", "--journal", url)
        assert done.exit_code == 2
        assert run_sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'agent_brain'", url=url) == [(0,)]  # fmt: skip
