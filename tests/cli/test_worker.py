"""``agent-brain worker``: what it is given; tests/workers starts and ends it as a process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.support import invoke


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "app.py"
    path.write_text(
        "from agent_brain import Brain\n"
        "from agent_brain.workers import RunQueue\n"
        "queue = RunQueue('postgresql://me@127.0.0.1:1/app', {'a': Brain()})\n"
        "number = 5\n"
    )
    return path


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("number", "is 5: name a RunQueue"),
        ("other", "there is no 'other' in it"),
        ("", "is not a reference"),
    ],
)
def test_what_is_no_queue_is_refused(program: Path, name: str, problem: str) -> None:
    done = invoke("worker", f"{program}:{name}")

    assert done.exit_code == 2
    assert problem in done.output.replace("\n", " ")


def test_a_database_that_is_not_there_is_reported(program: Path) -> None:
    done = invoke("worker", f"{program}:queue")

    assert done.exit_code == 1
    assert "The database of the queue cannot be used" in done.output
    assert "unexpected" not in done.output


def test_a_server_of_a_queue_takes_no_agent(program: Path) -> None:
    done = invoke("serve", "a", "--queue", f"{program}:queue", "--memory", "windowed")

    assert done.exit_code == 2
    assert "the program of the queue says --memory: leave it out" in done.output.replace("\n", " ")


def test_a_server_of_a_queue_serves_a_brain_of_it(program: Path) -> None:
    done = invoke("serve", "b", "--queue", f"{program}:queue")

    assert done.exit_code == 2
    assert "The queue has no brain 'b'. It has 'a'" in done.output.replace("\n", " ")
