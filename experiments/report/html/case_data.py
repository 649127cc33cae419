"""What the page of a case shows, as JSON."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from typing import Any

from agent_brain.experiments.case import CaseResult, ExperimentInfo, TaskInfo
from agent_brain.experiments.report.html.kept_sessions import (
    KeptSession,
    last_run,
    read_sessions,
)
from agent_brain.experiments.report.html.outcomes import troubles, went_wrong
from agent_brain.experiments.report.html.steps import StepWriter
from agent_brain.experiments.report.html.texts import Once, cut_all, hide_secrets
from agent_brain.experiments.report.report import Report
from agent_brain.experiments.store import SESSIONS
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.journal.ram import RamJournal
from agent_brain.memories.journal.sqlite.journal import SQLiteJournal
from agent_brain.recording.run import run_of_parts
from agent_brain.testing.export import write_test
from agent_brain.testing.exported_run import ExportError, export_run

MOST_BYTES = 20_000_000
"""Of the steps of all cases in a report's file."""
LONGEST = 60_000  # characters of a test


class CaseData:
    """What the pages of a report's cases show.

    Attributes:
        cases: The cases, by ID.
        shared: System messages, tools and schemas that several cases have.
        left_out: How many cases are without their steps, as the file would be too large.
    """

    def __init__(self, report: Report, *, most_bytes: int = MOST_BYTES) -> None:
        self.cases: dict[str, dict[str, Any]] = {}
        self.shared = Once()
        self.left_out = 0
        self._report = report
        self._free = most_bytes
        self._tasks = {task.id: task for task in report.info.tasks}

    def blocks(self) -> dict[str, Any]:
        """Return the blocks of JSON that the page has, by the IDs of their elements."""
        cases = {f"data-{name}": case for name, case in self.cases.items()}
        return {"shared": self.shared.values, **cases}

    async def read(self) -> None:
        """Read the sessions of the cases: of those that failed first, then of the others."""
        cases = self._report.cases
        file = None if self._report.folder is None else self._report.folder / SESSIONS
        kept = SQLiteJournal(file, readonly=True) if file is not None and file.exists() else None
        async with kept or RamJournal() as journal:
            for case in sorted(cases, key=lambda one: one.passed):
                self.cases[case.id] = hide_secrets(await self._case(case, journal))

    async def _case(self, case: CaseResult, journal: Journal) -> dict[str, Any]:
        about = self._about(case)
        if not case.sessions:
            return about | {"missing": "The sessions of this case were not kept."}
        if self._free <= 0:
            self.left_out += 1
            return about | {"missing": "The steps are left out, to keep this file small."}
        try:
            sessions = await read_sessions(journal, case)
        except Exception as error:  # a damaged file does not hide the figures
            return about | {"missing": f"The sessions cannot be read: {error}"}
        if not sessions:
            gone = "The sessions of this case are not kept any more."
            return about | {"missing": gone, "commands": []}
        steps = self._steps(case, sessions)
        self._free -= len(json.dumps(steps, ensure_ascii=False))
        return about | steps

    def _about(self, case: CaseResult) -> dict[str, Any]:
        task = self._tasks[case.task]
        data = case.model_dump(mode="json", exclude={"sessions", "net", "memory", "model"})
        more = {
            "cell": self._report.names[case.cell],
            "place": [*case.cell],
            "said": [*task.turns],
            "expected": task.expected,
            "source": task.source,
            "commands": commands(self._report.info, case),
        }
        found: dict[str, Any] = cut_all(data | more)
        return found

    def _steps(self, case: CaseResult, sessions: Sequence[KeptSession]) -> dict[str, Any]:
        writer = StepWriter(self.shared)
        written = writer.sessions(sessions)
        steps = [step for session in written for step in session["steps"]]
        return {
            "sessions": written,
            "wrong": went_wrong(case, _of_last_run(steps, sessions)),
            "troubles": troubles(steps),
            "messages": writer.messages.values,
            **self._test(case, sessions, self._tasks[case.task]),
        }

    def _test(
        self, case: CaseResult, sessions: Sequence[KeptSession], task: TaskInfo
    ) -> dict[str, str]:
        if case.passed:
            return {}
        try:
            return {"test": make_test(self._report.info, case, sessions, task.expected)}
        except ExportError as error:
            return {"no_test": str(error)}


def _of_last_run(
    steps: Sequence[dict[str, Any]], sessions: Sequence[KeptSession]
) -> Sequence[dict[str, Any]]:
    """Return the steps of the run that was begun last; it may not be in the last session."""
    parts = [part for session in sessions for part in session.parts]
    run = last_run(sessions)
    last = [
        step
        for step, part in zip(steps, parts, strict=True)
        if run and part.step is not None and part.step.run_id == run.run_id
    ]
    return last or steps


def make_test(
    info: ExperimentInfo, case: CaseResult, sessions: Sequence[KeptSession], expected: str
) -> str:
    """Return a pytest file that repeats the last run of a case.

    Raises:
        ExportError: It cannot be made; the text says why.
    """
    if (run := last_run(sessions)) is None:
        raise ExportError("The beginning of the run is not kept")
    recorded = run_of_parts(run.parts, run.calls)
    exported = export_run(recorded, net=info.nets[case.net], answer=case.answer)
    text = write_test(exported, re.sub(r"\W+", "_", f"{case.task}_{case.net}").strip("_"))
    if len(text) > LONGEST:
        raise ExportError(f"It would have {len(text):,} characters")
    told = " ".join(f"The experiment expected: {expected}".split())[:400]
    return (
        f"# Task {case.task!r}, done by {case.cell}: {case.outcome.value}.\n# {told}\n"
        "# Change what is asserted to what should have happened, and it fails until it does.\n"
        f"{text}"
    )


def commands(info: ExperimentInfo, case: CaseResult) -> list[str]:
    """Return the commands that show a case's sessions and make a test of the last one."""
    if not case.sessions:
        return []
    names = [*map(shlex.quote, case.sessions)]
    where = f"--journal {SESSIONS} --tenant {shlex.quote(case.id)}"
    shown = [f"agent-brain sessions show {name} {where} --full" for name in names]
    export = f"agent-brain sessions export {names[-1]} {where} -o "
    net = "" if info.nets[case.net] == "react" else f" --net {shlex.quote(info.nets[case.net])}"
    return [*shown, f"{export}test_case.py --as test{net}", f"{export}case.json --as cassette"]
