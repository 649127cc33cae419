"""The rates that --fail-under asks for. Private."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from agent_brain.cli.exit_codes import UserError
from agent_brain.errors import ExperimentError
from agent_brain.experiments import Cell, Report
from agent_brain.experiments.report.names import find_cell


class Threshold(NamedTuple):
    """The least rate of passed cases of a cell."""

    cell: Cell
    rate: float


def read_thresholds(texts: Iterable[str], cells: Sequence[Cell]) -> list[Threshold]:
    """Return what ``CELL=RATE`` texts ask for; a rate alone holds for every cell.

    Raises:
        UserError: A text is neither, a rate is not from 0 to 1, or there is no such cell.
    """
    found: list[Threshold] = []
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
        found += [Threshold(cell, rate) for cell in meant]
    return found


def below(report: Report, thresholds: Iterable[Threshold]) -> Iterator[str]:
    """Yield a sentence for each rate that is not reached, or not known yet."""
    tasks = len(report.info.tasks) * report.info.repeat
    for cell, least in thresholds:
        passed = report.cell(str(cell)).passed
        if passed.n < tasks:
            yield f"{cell} did {passed.n} of {tasks} cases: the rest must be done to know its rate"
        elif passed.rate < least:
            yield f"{cell} passed {passed.k} of {passed.n}: {passed.rate:.3g} is below {least:g}"
