"""What the page of a case shows, as JSON: its steps, and where it went wrong."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from agent_brain.common.secrets import Scrubber
from agent_brain.experiments.case import CaseResult, ExperimentInfo, Outcome
from agent_brain.experiments.report.html.steps import (
    KeptSession,
    Once,
    StepWriter,
    cut_all,
    last_run,
    read_sessions,
)
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
MOST = 10  # troubles that are listed


class Look(NamedTuple):
    """How an outcome is shown.

    Attributes:
        sign: Its sign in the matrix.
        heading: The heading of its column; empty for none.
        words: What the sign means.
        why: What its page says beside the step where the case ended.
    """

    sign: str
    heading: str
    words: str
    why: str


LOOKS = {
    Outcome.PASSED: Look("✓", "", "passed", ""),
    Outcome.WRONG: Look(
        "✗", "Wrong", "wrong answer", "This step gave the answer that a check did not pass."
    ),
    Outcome.CRASHED: Look("!", "Crashed", "crashed", "An error ended the case here."),
    Outcome.RATE_LIMITED: Look(
        "R", "Rate limit", "rate limit of the model", "The model's rate limit did not end in time."
    ),
    Outcome.LIMIT: Look("L", "Limit", "reached a limit", "A limit was reached here."),
    Outcome.STUCK: Look(
        "∞", "Stuck", "repeated itself", "The run was ended here, as it repeated itself."
    ),
    Outcome.WAITING: Look(
        "?",
        "Waits",
        "waits for somebody",
        "The run waits here for a person or a time, and nobody is there.",
    ),
}


def went_wrong(case: CaseResult, steps: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the step where a case went wrong, and why; None if it passed or has no steps.

    Args:
        case: The case.
        steps: The steps of its last run: a case ends with the first turn that goes wrong.
    """
    if case.passed or not steps:
        return None
    followed = case.error is not None and steps[-1].get("stop_reason") == "done"
    if followed or case.outcome is Outcome.WRONG:  # a model wrote an answer, or a state said it
        where = [
            step
            for step in steps
            if any(call.get("text") for call in step.get("models", ()))
            or any(message["role"] == "assistant" for message in step.get("said", ()))
        ]
    else:  # something was done
        where = [s for s in steps if s.get("ran") or s.get("models") or s.get("calls")]
    why = "An error followed this answer." if followed else LOOKS[case.outcome].why
    return {"step": (where or steps)[-1]["n"], "why": why}


def _troubles(steps: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the steps in which something failed, though the run went on."""
    for step in steps:
        for call in step.get("calls", ()):
            if call["state"] in ("failed", "refused"):
                yield {"step": step["n"], "why": f"The call of {call['name']} {call['state']}."}
        if step.get("error"):
            yield {"step": step["n"], "why": f"The state failed: {step['error']}"}
        for call in step.get("models", ()):
            if "error" in call:
                yield {"step": step["n"], "why": f"A model call failed: {call['error']['type']}."}
            elif call.get("cut"):
                yield {"step": step["n"], "why": "A model call was cut off."}


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
        scrubber, cases = Scrubber(), self._report.cases
        file = None if self._report.folder is None else self._report.folder / SESSIONS
        kept = SQLiteJournal(file, readonly=True) if file is not None and file.exists() else None
        async with kept or RamJournal() as journal:
            for case in sorted(cases, key=lambda one: one.passed):
                self.cases[case.id] = scrubber.data(await self._case(case, journal))

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
        parts = [part for session in sessions for part in session.parts]
        run = last_run(sessions)  # it may not be in the last session
        own = () if run is None else {id(part) for part in run.parts}
        last = [step for step, part in zip(steps, parts, strict=True) if id(part) in own]
        found: dict[str, Any] = {
            "sessions": written,
            "wrong": went_wrong(case, last or steps),
            "troubles": [*_troubles(steps)][:MOST],
            "messages": writer.messages.values,
        }
        if case.passed:
            return found
        try:
            return found | {"test": self._make_test(case, run)}
        except ExportError as error:
            return found | {"no_test": str(error)}

    def _make_test(self, case: CaseResult, run: KeptSession | None) -> str:
        """Return a pytest file that repeats the last run of a case.

        Raises:
            ExportError: It cannot be made; the text says why.
        """
        if run is None:
            raise ExportError("The beginning of the run is not kept")
        recorded = run_of_parts(run.parts, run.calls)
        exported = export_run(recorded, net=self._report.info.nets[case.net], answer=case.answer)
        text = write_test(exported, re.sub(r"\W+", "_", f"{case.task}_{case.net}").strip("_"))
        if len(text) > LONGEST:
            raise ExportError(f"It would have {len(text):,} characters")
        expected = self._tasks[case.task].expected
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
