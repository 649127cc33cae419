"""A small experiment whose sessions are kept: real runs of scripted models."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio

from agent_brain import Brain, Limits, tool
from agent_brain.experiments.case import CaseResult, Cell, ExperimentInfo, Outcome, TaskInfo
from agent_brain.experiments.report.report import Report
from agent_brain.memories import MessagesMemory, SQLiteJournal
from agent_brain.nets import react
from agent_brain.states import Usage
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action

HOSTILE = (
    "</script><script>document.title = 'run'</script><img src=x onerror=\"document.title = 'run'\">"
)
CALL = Action(name="look", args={"what": HOSTILE})
SPENT = Usage(input_tokens=120, output_tokens=8, cost=0.002, requests=1)


@tool
def look(what: str) -> str:
    """Look something up."""
    if what == "nothing":
        raise OSError("there is nothing")
    return f"It is 41. {what}"


TASKS: dict[str, tuple[str, list[Any], Outcome, dict[str, Any]]] = {
    "seen": ("What is it?", [[CALL, SPENT], ["It is 42.", SPENT]], Outcome.PASSED, {}),
    "hostile": (f"What is {HOSTILE}?", [[CALL, SPENT], [HOSTILE, SPENT]], Outcome.WRONG, {}),
    "nothing": (
        "Look for nothing.",
        [[Action(name="look", args={"what": "nothing"}), SPENT], ["It is gone.", SPENT]],
        Outcome.WRONG,
        {},
    ),
    "short": ("Look twice.", [[CALL, SPENT], "It is 42."], Outcome.LIMIT, {"max_steps": 1}),
    "broken": ("Break.", [RuntimeError("no model is there")], Outcome.CRASHED, {}),
}


async def _case(folder: Path, cell: Cell, name: str) -> CaseResult:
    task, turns, outcome, limits = TASKS[name]
    case = f"{cell.memory}{name}"
    journal = SQLiteJournal(folder / "sessions.db")
    memory = MessagesMemory(journal=journal, session="1", tenant=case)
    answer, error = "", None
    brain = Brain(
        react(ScriptedLLM(turns, model="small")),
        memory,
        [look],
        limits=Limits(**limits),
        trace=True,
    )
    async with brain:
        try:
            answer = (await brain.run(task)).answer
        except RuntimeError as raised:
            error = f"{type(raised).__name__}: {raised}"
        spent = memory.control.spent
    await journal.aclose()
    return CaseResult(
        id=case, net=cell.net, memory=cell.memory, model=cell.model, task=name, tags=("some",),
        outcome=outcome, score=float(outcome is Outcome.PASSED), answer=answer, error=error,
        reason=error or "the answer " + ("has 42" if outcome is Outcome.PASSED else "lacks 42"),
        steps=memory.control.step, cost=spent.cost, sessions=("1",), started=datetime.now(UTC),
        input_tokens=spent.input_tokens, output_tokens=spent.output_tokens, seconds=0.5,
    )  # fmt: skip


def make_report(folder: Path, tasks: Iterable[str] = TASKS, **given: Any) -> Report:
    """Run the tasks with two memories and return the report."""
    names = [*tasks]
    values: dict[str, Any] = {
        "name": "look <b>twice</b>",
        "nets": {"react": "react"},
        "memories": {"messages": "messages", "other": "messages"},
        "models": {"small": "small"},
        "rule_based": ("small",),
        "tasks": tuple(
            TaskInfo(id=name, turns=(TASKS[name][0],), tags=("some",), expected="contains '42'")
            for name in names
        ),
        "base": Cell("react", "messages", "small"),
        "started": datetime.now(UTC),
    }
    info = ExperimentInfo(**values | given)

    async def run() -> list[CaseResult]:
        return [await _case(folder, cell, name) for cell in info.cells for name in names]

    return Report(info, anyio.run(run), folder)
