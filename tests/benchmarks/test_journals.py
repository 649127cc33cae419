"""What durability costs, as far as it needs no other library."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.journals.contenders import CONTENDERS, Contender
from benchmarks.journals.measure import GROUPS, TINY
from benchmarks.journals.places import new_place
from benchmarks.journals.tables import Table, lines
from benchmarks.journals.texts import text
from tests.project.repository import ROOT
from tests.support.postgres_server import URL, needs_postgres
from tests.support.redis_server import redis_url

pytestmark = pytest.mark.thorough

OURS = [contender for contender in CONTENDERS if contender.program == "ours"]
DISK = Contender("ours", "sqlite", "disk")
PEER = Contender("langgraph", "sqlite", "sync")


def server_of(storage: str) -> str:
    if storage == "postgres":
        needs_postgres()
        return URL
    return redis_url() if storage == "redis" else ""


@pytest.mark.parametrize(
    "contender, group",
    [(each, group) for each in OURS for group in GROUPS if each.offers(group)],
    ids=lambda each: each.title if isinstance(each, Contender) else each,
)
def test_a_group_is_measured(contender: Contender, group: str) -> None:
    server = server_of(contender.storage)
    with new_place(contender.storage, server) as place:
        found = asyncio.run(GROUPS[group](contender.task(group, TINY, server), place))

    assert found
    assert all(value > 0 for name, value in found.items() if not name.endswith("_size"))


def test_servers_that_do_not_answer_are_left_out_of_the_table() -> None:
    command = [sys.executable, "-m", "benchmarks.journals", "resume", "--quick", "--no-peers"]
    command += [
        "--rounds",
        "1",
        "--postgres",
        "postgresql://127.0.0.1:1/no",
        "--redis",
        "redis://127.0.0.1:1",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert "Resuming at step 3, milliseconds" in done.stdout
    assert "| SQLite, disk | Agent Brain |" in done.stdout
    assert "postgres is left out" in done.stderr
    assert "redis is left out" in done.stderr


def test_a_group_that_does_not_exist_is_refused_with_those_that_do() -> None:
    command = [sys.executable, "-m", "benchmarks.journals", "nothing"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert all(group in done.stderr for group in GROUPS)


def test_the_best_peer_over_the_same_storage_is_set_beside_ours() -> None:
    other = Contender("langgraph", "postgres", "sync")
    found = {DISK: {"say": 2.0}, PEER: {"say": 30.0}, other: {"say": 1.0}, OURS[0]: {}}

    rows = [*lines(Table("A table", {"wall": "say", "CPU": "say_cpu"}, "wall"), found)]

    assert rows[3:] == [
        "| SQLite, disk | Agent Brain | 2 | – | 15x |",
        "| SQLite, sync | langgraph 1.2.22 | 30 | – |  |",
        "| PostgreSQL, sync | langgraph 1.2.22 | 1 | – |  |",
    ]


def test_a_table_without_figures_is_left_out() -> None:
    assert [*lines(Table("A table", {"wall": "say"}, "wall"), {DISK: {"hop": 1.0}})] == []


def test_texts_differ_and_have_their_length() -> None:
    made = {text(number, 200) for number in range(1000)}

    assert len(made) == 1000
    assert {len(each) for each in made} == {200}


def test_a_file_is_removed_with_its_place() -> None:
    with new_place("sqlite", "") as place:
        path = Path(place.address)
        before = place.written()
        path.write_text("12345")

        assert place.size() == 5
        assert place.written() - before >= 5
    assert not path.parent.exists()
