"""Run the experiment of a file, and say what came of it. Private."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypedDict

from agent_brain.cli.compare.figures import figures, plan_figures
from agent_brain.cli.compare.progress import shown_progress
from agent_brain.cli.compare.resolve import make_experiment
from agent_brain.cli.compare.settings import read_experiment_file
from agent_brain.cli.compare.thresholds import Threshold, below, read_thresholds
from agent_brain.cli.exit_codes import ExitCode, UserError, notify, user_errors
from agent_brain.cli.options import Options
from agent_brain.cli.sanitize import count
from agent_brain.cli.signals import (
    end_quietly_at_second_ctrl_c,
    signals_wake_loop,
    sigterm_as_ctrl_c,
)
from agent_brain.errors import ExperimentError
from agent_brain.experiments import Experiment, Outcome, Progress, Report
from agent_brain.experiments.case_plan import Fresh, Only
from agent_brain.tools.litellm.connections import connections


class _Chosen(TypedDict):
    only: Only
    fresh: Fresh


def compare_file(
    path: Path,
    options: Options,
    *,
    plan: bool,
    only: Sequence[str],
    fresh: bool,
    again: Sequence[str],
    fail_under: Sequence[str],
    quiet: bool,
) -> ExitCode:
    """Run the experiment of a file, or show its plan; the parameters are those of the command."""
    experiment = make_experiment(read_experiment_file(path))
    folder = options.folder or path.with_name(f"{path.stem}-results")
    thresholds = read_thresholds(fail_under, experiment.cells)
    if unknown := [one for one in again if one not in list(Outcome)]:
        raise UserError(f"--again {unknown[0]!r}: the outcomes are {', '.join(Outcome)}")
    chosen: _Chosen = {"only": only or None, "fresh": fresh or again}
    if plan:
        with user_errors():
            planned = experiment.plan(folder, **chosen)
        print(json.dumps(plan_figures(planned), indent=2) if options.as_json else planned)
        return ExitCode.ANSWERED
    try:
        with sigterm_as_ctrl_c(), shown_progress(quiet=quiet) as show:
            report = asyncio.run(_run(experiment, folder, show, chosen))
    except ExperimentError as error:  # others are no mistakes of the user, such as a full disk
        raise UserError(str(error)) from error
    except KeyboardInterrupt:
        notify(
            f"The cases that ended are kept in {folder}: the same command continues", kind="Stopped"
        )
        return ExitCode.CANCELLED
    missing = report.missing
    if missing and only:
        planned = experiment.plan(folder, only=only)
        missing = len(planned.cases) - planned.done
    return _conclude(report, options, thresholds, missing)


async def _run(
    experiment: Experiment,
    folder: Path,
    show: Callable[[Progress], None] | None,
    chosen: _Chosen,
) -> Report:
    end_quietly_at_second_ctrl_c()
    try:
        with signals_wake_loop():
            return await experiment.run(folder, on_progress=show, **chosen)
    finally:
        await connections.close()  # nobody else can, once the event loop has ended


def _conclude(
    report: Report, options: Options, thresholds: Sequence[Threshold], missing: int
) -> ExitCode:
    if options.as_json:
        print(json.dumps(figures(report), indent=2, ensure_ascii=False))
    else:
        print(report)
    folder = report.save()
    if not options.as_json:
        print("\n".join(f"{folder / name}" for name in ("report.md", "report.html")))
    failed = list(below(report, thresholds))
    for sentence in failed:
        notify(sentence)
    if failed:
        return ExitCode.FAILED
    if missing:
        notify(f"{count(missing, 'case')} not run: the budget was used up", kind="Stopped")
        return ExitCode.STOPPED
    return ExitCode.ANSWERED
