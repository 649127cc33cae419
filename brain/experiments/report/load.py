"""Reading a report from the folder of an experiment."""

from __future__ import annotations

from pathlib import Path

from agent_brain.experiments.folder import as_folder
from agent_brain.experiments.report.report import Report
from agent_brain.experiments.store import read_cases, read_info


def load_report(folder: Path | str) -> Report:
    """Return the report of what an experiment keeps in a folder, finished or not.

    Args:
        folder: The folder that the experiment was run in.

    Returns:
        The report; ``report.missing`` says how many cases were not run.

    Raises:
        ExperimentError: ``folder`` is no path, there is no experiment in it, or a file of it
            is damaged.
    """
    folder = as_folder(folder)
    info = read_info(folder)
    ids = set(info.case_ids)
    cases = [case for case in read_cases(folder) if case.id in ids or not ids]
    return Report(info, cases, folder)
