"""Run the experiment of a file, and say how it ended."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypedDict

from agent_brain.cli.compare.file import make_experiment, read_experiment_file
from agent_brain.cli.compare.progress import shown_progress
from agent_brain.cli.exit_codes import ExitCode, UserError, notify, user_errors
from agent_brain.cli.options import Options
from agent_brain.cli.signals import (
    end_quietly_at_second_ctrl_c,
    signals_wake_loop,
    sigterm_as_ctrl_c,
)
from agent_brain.common.litellm import connections
from agent_brain.common.text import count_of
from agent_brain.errors import ExperimentError
from agent_brain.experiments import Cell, CellReport, Experiment, Outcome, Plan, Progress, Report
from agent_brain.experiments.case import find_cell
from agent_brain.experiments.plan import Fresh, Only

_COMPARED = (
    "gained", "lost", "difference", "low", "high", "p", "p_adjusted", "significant",
    "tasks_needed", "sentence",
)  # fmt: skip


def figures(report: Report) -> dict[str, Any]:
    """Return what a report found, as JSON values; names of cells are whole."""
    return {
        "name": report.info.name,
        "folder": None if report.folder is None else str(report.folder),
        "base": str(report.base),
        "tasks": len(report.info.tasks),
        "repeat": report.info.repeat,
        "missing": report.missing,
        "cells": [_cell(one) for one in report.cells],
        "comparisons": [
            {"a": str(one.a), "b": str(one.b)} | {name: getattr(one, name) for name in _COMPARED}
            for one in report.comparisons
        ],
        "warnings": report.warnings,
    }


def plan_figures(plan: Plan) -> dict[str, Any]:
    """Return what an experiment would do, as JSON values."""
    return {
        "cells": [str(cell) for cell in plan.cells],
        "cases": len(plan.cases),
        "done": plan.done,
        "max_cost": plan.max_cost,
        "unpriced": plan.unpriced,
    }


def _cell(one: CellReport) -> dict[str, Any]:
    passed = one.passed
    others = {field.name: getattr(one, field.name) for field in fields(one)}
    return others | {
        "cell": str(one.cell),
        **one.cell._asdict(),
        "passed": passed.k,
        "cases": passed.n,
        "rate": passed.rate,
        "low": passed.low,
        "high": passed.high,
        "score": asdict(one.score),
    }


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
    except ExperimentError as error:  # others are not mistakes of the user, such as a full disk
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
    experiment: Experiment, folder: Path, show: Callable[[Progress], None] | None, chosen: _Chosen
) -> Report:
    end_quietly_at_second_ctrl_c()
    try:
        with signals_wake_loop():
            return await experiment.run(folder, on_progress=show, **chosen)
    finally:
        await connections.close()  # nobody else can, once the event loop has ended


def _conclude(
    report: Report, options: Options, thresholds: Iterable[tuple[Cell, float]], missing: int
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
        notify(f"{count_of(missing, 'case')} not run: the budget was used up", kind="Stopped")
        return ExitCode.STOPPED
    return ExitCode.ANSWERED


def read_thresholds(texts: Iterable[str], cells: Sequence[Cell]) -> list[tuple[Cell, float]]:
    """Return what ``CELL=RATE`` texts ask for; a rate alone holds for every cell.

    Raises:
        UserError: A text is neither, a rate is not from 0 to 1, or there is no such cell.
    """
    found: list[tuple[Cell, float]] = []
    for text in texts:
        name, _, number = text.rpartition("=")
        try:
            rate = float(number)
        except ValueError:
            rate = -1.0
        if not 0 <= rate <= 1:
            raise UserError(f"--fail-under {text!r}: write CELL=RATE, such as react/vector=0.8")
        try:
            meant = [find_cell(cells, name)] if name else cells
        except ExperimentError as error:
            raise UserError(f"--fail-under {text!r}: {error}") from error
        found += [(cell, rate) for cell in meant]
    return found


def below(report: Report, thresholds: Iterable[tuple[Cell, float]]) -> Iterator[str]:
    """Yield a sentence for each rate that is not reached, or not known yet."""
    tasks = len(report.info.tasks) * report.info.repeat
    for cell, least in thresholds:
        passed = report.cell(str(cell)).passed
        if passed.n < tasks:
            yield f"{cell} did {passed.n} of {tasks} cases: the rest must be done to know its rate"
        elif passed.rate < least:
            yield f"{cell} passed {passed.k} of {passed.n}: {passed.rate:.3g} is below {least:g}"
