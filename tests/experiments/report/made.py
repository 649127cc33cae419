"""Results of cases made by hand, for tests of reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from agent_brain.experiments.case import CaseResult, Cell, ExperimentInfo, Outcome, TaskInfo
from agent_brain.experiments.report.report import Report

STARTED = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
MESSAGES, VECTOR = Cell("react", "messages", "small"), Cell("react", "vector", "small")


def info_of(
    nets: Sequence[str] = ("react",),
    memories: Sequence[str] = ("messages", "vector"),
    models: Sequence[str] = ("small",),
    tasks: int = 20,
    **given: Any,
) -> ExperimentInfo:
    values: dict[str, Any] = {
        "name": "memories",
        "nets": {name: name for name in nets},
        "memories": {name: name for name in memories},
        "models": {name: f"openai/{name}" for name in models},
        "tasks": tuple(
            TaskInfo(id=f"t{n}", turns=("?",), tags=("even" if n % 2 == 0 else "odd",))
            for n in range(tasks)
        ),
        "base": Cell(nets[0], memories[0], models[0]),
        "seed": 7,
        "versions": {"python": "3.11.9", "agent-brain": "0.1.0"},
        "commit": "0123abc",
        "started": STARTED,
    }
    return ExperimentInfo(**values | given)


def case(cell: Cell, task: str, passed: bool = True, **given: Any) -> CaseResult:
    values: dict[str, Any] = {
        "id": f"{cell}-{task}-{given.get('repeat', 0)}",
        **cell._asdict(),
        "task": task,
        "tags": ("even" if int(task[1:]) % 2 == 0 else "odd",),
        "outcome": Outcome.PASSED if passed else Outcome.WRONG,
        "score": float(passed),
        "steps": 3,
        "input_tokens": 100,
        "output_tokens": 20,
        "cost": 0.001,
        "seconds": 2.0,
        "started": STARTED,
    }
    return CaseResult(**values | given)


def report_of(passes: Mapping[Cell, str], **given: Any) -> Report:
    """A report of cells with a sign for each task: ``+`` passed, ``-`` wrong, a space not run."""
    info = info_of(tasks=max(map(len, passes.values()), default=0), **given)
    cases = [
        case(cell, f"t{n}", sign == "+")
        for cell, signs in passes.items()
        for n, sign in enumerate(signs)
        if sign != " "
    ]
    return Report(info, cases)
