"""Experiments that are killed, interrupted, or find a folder that is in use or damaged."""

from __future__ import annotations

import errno
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_brain import LLM, Message
from agent_brain.errors import ExperimentError
from agent_brain.experiments import CaseResult, Experiment, Task
from agent_brain.experiments.store import Store, read_cases
from agent_brain.memories import MessagesMemory, SQLiteJournal, list_sessions

ROOT = Path(__file__).parents[2]


def run_program(folder: Path, how: str) -> int:
    return subprocess.run(
        [sys.executable, "-m", "tests.experiments.killed_program", str(folder), how],
        cwd=ROOT,
        check=False,
        capture_output=True,
    ).returncode


def effects(folder: Path) -> Counter[str]:
    file = folder / "effects.txt"
    return Counter(file.read_text().split() if file.exists() else ())


async def sessions_by_case(folder: Path) -> Counter[str | None]:
    async with SQLiteJournal(folder / "sessions.db") as journal:
        return Counter(info.tenant for info in await list_sessions(journal))


def test_a_killed_experiment_goes_on(tmp_path: Path) -> None:
    results = tmp_path / "results"
    finished: list[CaseResult] = []
    for how in ("torn", "write", "call", "torn", "write", "never"):
        before = effects(tmp_path)
        assert run_program(tmp_path, how) == (0 if how == "never" else -9)
        cases = read_cases(results)
        assert (results / "cases.jsonl").read_bytes().endswith(b"\n") == (how != "torn")
        assert cases[: len(finished)] == finished  # nothing is lost
        done = {turn + case.task[1:] for case in finished for turn in "ab"}
        assert not done & set(effects(tmp_path) - before)  # and nothing is done again
        finished = cases

    assert sorted(case.task for case in finished) == ["t0", "t1", "t2", "t3"]
    assert all(case.passed for case in finished)
    last = effects(tmp_path) - before  # those that had not ended began at their beginning
    assert set(last.values()) <= {1}
    assert all(("a" + text[1:] in last) for text in last)
    assert anyio.run(sessions_by_case, results) == Counter(case.id for case in finished)


class Says(LLM):
    """Says what it was told; waits for ever at a certain text."""

    model = "says"

    def __init__(self) -> None:
        self.waits_at = ""
        self.asked = anyio.Event()

    async def stream(self, messages: Sequence[Message], **_: Any) -> AsyncIterator[Any]:
        if messages[-1].content == self.waits_at:
            self.asked.set()
            await anyio.sleep_forever()
        yield messages[-1].content


def experiment(llm: LLM, at_once: int = 1) -> Experiment:
    tasks = [Task(id=f"t{n}", turns=f"Say {n}", expected=str(n)) for n in range(3)]
    return Experiment(nets="react", models=llm, tasks=tasks, at_once=at_once)


@pytest.mark.anyio
async def test_a_cancelled_experiment_goes_on(tmp_path: Path) -> None:
    llm = Says()
    llm.waits_at = "Say 1"
    async with anyio.create_task_group() as group:
        group.start_soon(experiment(llm, at_once=3).run, tmp_path)
        await llm.asked.wait()
        while len(read_cases(tmp_path)) < 2:
            await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()

    first = read_cases(tmp_path)
    assert {case.task for case in first} == {"t0", "t2"}
    report = await experiment(Says()).run(tmp_path)
    assert read_cases(tmp_path)[:2] == first
    assert all(case.passed for case in report.cases)
    assert await sessions_by_case(tmp_path) == Counter(case.id for case in report.cases)


@pytest.mark.anyio
async def test_a_folder_is_used_by_one_at_a_time(tmp_path: Path) -> None:
    async with Store(tmp_path):
        with pytest.raises(ExperimentError, match="Another process"):
            await experiment(Says()).run(tmp_path)

    assert (await experiment(Says()).run(tmp_path)).missing == 0


@pytest.mark.anyio
async def test_a_plan_and_a_report_may_be_read_meanwhile(tmp_path: Path) -> None:
    await experiment(Says()).run(tmp_path)
    async with Store(tmp_path):
        assert experiment(Says()).plan(tmp_path).done == 3


@pytest.mark.anyio
async def test_nothing_is_removed_if_the_sessions_are_damaged(tmp_path: Path) -> None:
    await experiment(Says()).run(tmp_path)
    (tmp_path / "sessions.db").write_bytes(b"broken" * 1000)
    before = (tmp_path / "cases.jsonl").read_bytes()

    with pytest.raises(ExperimentError, match=r"sessions\.db cannot be read"):
        await experiment(Says()).run(tmp_path, only_tasks="t1", fresh=True)
    assert (tmp_path / "cases.jsonl").read_bytes() == before
    assert (await experiment(Says()).run(tmp_path, fresh=True)).missing == 0


@pytest.mark.anyio
async def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    await experiment(Says()).run(tmp_path)
    file = tmp_path / "cases.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([lines[0], "{}\n", lines[2]]))

    with pytest.raises(ExperimentError, match=r"line 2 is damaged \(id: Field required\)"):
        await experiment(Says()).run(tmp_path)
    file.write_text("".join([lines[0], lines[2]]))
    assert (await experiment(Says()).run(tmp_path)).missing == 0
    file.write_text("broken\n")
    assert (await experiment(Says()).run(tmp_path, fresh=True)).missing == 0


@pytest.mark.anyio
async def test_a_full_disk_leaves_no_half_of_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    with monkeypatch.context() as patch:
        patch.setattr("agent_brain.experiments.store.os.fsync", full)
        async with Store(tmp_path) as store:
            with pytest.raises(OSError, match=rf"no space left: '{tmp_path}/cases\.jsonl'"):
                await store.keep(next(iter(await _some_cases(tmp_path / "other", patch))))

    assert (tmp_path / "cases.jsonl").read_bytes() == b""


async def _some_cases(folder: Path, patch: pytest.MonkeyPatch) -> Sequence[CaseResult]:
    with patch.context() as inner:
        inner.setattr("agent_brain.experiments.store.os.fsync", lambda file: None)
        return (await experiment(Says()).run(folder)).cases


@pytest.mark.anyio
async def test_a_full_disk_leaves_no_half_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr("agent_brain.experiments.store.os.fsync", full)
    with pytest.raises(OSError, match=r"no space left: '.*experiment\.json'"):
        await experiment(Says()).run(tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["experiment.lock"]


@pytest.mark.anyio
@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("name", ["sessions.db", "cases.jsonl", "experiment.json"])
async def test_files_that_no_experiment_wrote_are_left_alone(
    tmp_path: Path, name: str, *, fresh: bool
) -> None:
    async with MessagesMemory(journal=tmp_path / "sessions.db", session="chat") as memory:
        await memory.update([Message.user("Keep me")])
    (tmp_path / "sessions.db").rename(tmp_path / name)
    before = (tmp_path / name).read_bytes()

    with pytest.raises(ExperimentError, match=rf"{name} is there, and no experiment wrote it"):
        await experiment(Says()).run(tmp_path, fresh=fresh)

    assert (tmp_path / name).read_bytes() == before


@pytest.mark.anyio
async def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(ExperimentError, match="cannot be made"):
        await experiment(Says()).run(tmp_path / "file")
