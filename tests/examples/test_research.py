"""The research example: branches at once, and a person in the loop."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent_brain import Brain, MessagesMemory
from examples.research import models, research, search
from tests.examples.ending import interrupt
from tests.project.repository import ROOT


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGENT_BRAIN_MODEL", raising=False)


@pytest.mark.anyio
async def test_both_branches_search_and_the_report_waits_for_a_person(tmp_path: Path) -> None:
    path = tmp_path / "report.txt"
    brain = Brain(research(*models(), path=path), MessagesMemory([search]))
    async with brain.stream("Report on Oslo.") as run:
        events = [event async for event in run]
    found = {event.path[-1] for event in events if event.kind == "action_finished"}
    assert found == {"history", "prices"}
    assert run.result.stop_reason == "input"
    assert not path.exists()


@pytest.mark.anyio
@pytest.mark.parametrize(("answer", "published"), [("yes", True), ("no", False)])
async def test_it_is_published_only_when_the_person_says_yes(
    tmp_path: Path, answer: str, published: bool
) -> None:
    path = tmp_path / "report.txt"
    brain = Brain(research(*models(), path=path), MessagesMemory([search]))
    await brain.run("Report on Oslo.")

    result = await brain.resume(input=answer)

    assert result.answer == ("Published as report.txt." if published else "Not published.")
    assert path.exists() is published
    if published:
        assert path.read_text() == "Oslo, founded around 1048, is getting dearer."


def test_a_program_that_was_ended_asks_again(tmp_path: Path) -> None:
    def start(answer: str | None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(ROOT / "examples/research.py")],
            cwd=tmp_path, env=dict(os.environ), input=answer, text=True,
            capture_output=True, timeout=120, check=False,
        )  # fmt: skip

    first = start("")  # no answer: the program ends
    assert "[history] search" in first.stdout
    assert (first.returncode, first.stderr) == (0, "")
    again = start("yes\n")
    assert "search" not in again.stdout
    assert (again.returncode, again.stderr) == (0, "")
    assert (tmp_path / "report.txt").exists()


def test_ctrl_c_at_the_question_ends_the_program(tmp_path: Path) -> None:
    code, said = interrupt("research.py", tmp_path, at="> ")
    assert (code, "Traceback" in said) == (0, False)
    assert "kept in research.db" in said
