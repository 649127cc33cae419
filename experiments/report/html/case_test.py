"""The text of a test that repeats a run of a case."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agent_brain.experiments.case import CaseResult, ExperimentInfo
from agent_brain.experiments.report.html.kept_sessions import FILE, KeptSession, last_run
from agent_brain.recording.reading import run_of_parts
from agent_brain.testing.export import write_test
from agent_brain.testing.exported_run import ExportError, export_run

LONGEST = 60_000  # characters of a test


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
    last = case.sessions[-1]
    where = f"--journal {FILE} --tenant {_word(case.id)}"
    shown = [f"agent-brain sessions show {_word(name)} {where} --full" for name in case.sessions]
    export = f"agent-brain sessions export {_word(last)} {where} -o "
    net = "" if info.nets[case.net] == "react" else f" --net {_word(info.nets[case.net])}"
    return [*shown, f"{export}test_case.py --as test{net}", f"{export}case.json --as cassette"]


def _word(text: str) -> str:
    """Return a text as one word of a shell's command."""
    return text if re.fullmatch(r"[\w./:-]+", text) else "'{}'".format(text.replace("'", "'\\''"))
