"""A run is killed repeatedly; the next process continues, and nothing is lost or repeated."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import anyio
import pytest

from agent_brain.memories import Message, SQLiteJournal, WindowedMemory
from agent_brain.memories.views.groups import group, is_whole
from tests.support.thorough import thorough

PROGRAM = Path(__file__).parent / "program.py"
ROUNDS = 8


async def everything(folder: Path, session: str = "default") -> list[Message]:
    async with SQLiteJournal(folder / "journal.db") as journal:
        return await WindowedMemory(journal=journal, session=session).history()


@pytest.mark.parametrize(
    "name", ["messages", *thorough(["windowed", "summary", "layered", "todo"])]
)
def test_a_run_survives_being_killed(name: str, tmp_path: Path) -> None:
    rng = random.Random(name)
    after = [*range(4, 16), *(rng.randrange(16, 60) for _ in range(60)), 100_000]
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path), name, *map(str, after)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    effects = Counter((tmp_path / "effects.txt").read_text(encoding="utf-8").split("\n"))
    assert effects[f"ended {-signal.SIGKILL}"] >= 15
    told = anyio.run(everything, tmp_path)
    goals = [message for message in told if message.role == "user"]
    assert [goal.id for goal in goals] == ["goal"]
    asked = [call.id for message in told for call in message.tool_calls]
    assert asked == [f"{what}-{n}" for n in range(ROUNDS) for what in ("count", "look")]
    assert all(is_whole(members) for members in group(told)), "half a group was written"
    assert told[-1].content == "all counted"
    assert all(effects[f"count {n}"] <= 1 for n in range(ROUNDS)), "something was done twice"
    results = {m.tool_call_id: m for m in told if m.role == "tool"}
    for number in range(ROUNDS):
        if not results[f"count-{number}"].is_error:
            assert effects[f"count {number}"] == 1
        assert not results[f"look-{number}"].is_error
