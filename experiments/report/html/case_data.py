"""What the page of a case shows, as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from agent_brain.experiments.case import CaseResult, TaskInfo
from agent_brain.experiments.report.html.case_test import commands, make_test
from agent_brain.experiments.report.html.kept_sessions import KeptSession, KeptSessions, last_run
from agent_brain.experiments.report.html.outcomes import troubles, went_wrong
from agent_brain.experiments.report.html.steps import StepWriter
from agent_brain.experiments.report.html.texts import Once, cut_all, hide_secrets
from agent_brain.experiments.report.report import Report
from agent_brain.testing.exported_run import ExportError

MOST_BYTES = 20_000_000
"""Of the steps of all cases in a report's file."""


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
        kept = KeptSessions(self._report.folder)
        try:
            for case in sorted(cases, key=lambda one: one.passed):
                self.cases[case.id] = hide_secrets(await self._case(case, kept))
        finally:
            await kept.aclose()

    async def _case(self, case: CaseResult, kept: KeptSessions) -> dict[str, Any]:
        about = self._about(case)
        if not case.sessions:
            return about | {"missing": "The sessions of this case were not kept."}
        if self._free <= 0:
            self.left_out += 1
            return about | {"missing": "The steps are left out, to keep this file small."}
        try:
            sessions = await kept.of(case)
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
