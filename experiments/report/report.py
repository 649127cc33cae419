"""The report of an experiment, made or read from its folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain, combinations
from pathlib import Path

from agent_brain.errors import ExperimentError
from agent_brain.experiments.case import CaseResult, Cell, ExperimentInfo, find_cell, short_names
from agent_brain.experiments.report.figures import (
    CellReport,
    Comparison,
    Rate,
    adjust,
    compare,
    passed_rate,
    report_cell,
)
from agent_brain.experiments.report.tables import markdown, terminal
from agent_brain.experiments.report.words import warnings_of
from agent_brain.experiments.store import as_folder, read_cases, read_info


class Report:
    """What an experiment found: figures of each cell, comparisons, and what can be concluded.

    ::

        report = load_report("results")
        print(report)
        print(report.cell("react/vector").passed.rate)
        for comparison in report.comparisons:
            print(comparison.sentence)

    A case that crashed, got stuck, reached a limit or waits for somebody is a failed case, and is
    shown as what it is. ``str(report)`` is a table for a terminal.

    Args:
        info: What was compared.
        cases: The results. Those of other cells, tasks or repeats than ``info`` has are left out;
            of several results of the same case the last counts.
        folder: Where the experiment keeps its results; None if nowhere.

    Attributes:
        groups: The cases of each cell, by task.
    """

    def __init__(
        self, info: ExperimentInfo, cases: Sequence[CaseResult], folder: Path | None = None
    ) -> None:
        self.info = info
        self.folder = folder
        order = {task.id: place for place, task in enumerate(info.tasks)}
        known = set(info.cells)
        latest = {
            (case.cell, case.task, case.repeat): case
            for case in cases
            if case.cell in known and case.task in order and case.repeat < info.repeat
        }
        self.groups: dict[Cell, dict[str, list[CaseResult]]] = {cell: {} for cell in info.cells}
        for case in sorted(latest.values(), key=lambda case: (order[case.task], case.repeat)):
            self.groups[case.cell].setdefault(case.task, []).append(case)

    @property
    def cases(self) -> list[CaseResult]:
        """The cases, in the order of cells, tasks and repeats."""
        return [case for tasks in self.groups.values() for case in chain(*tasks.values())]

    @property
    def missing(self) -> int:
        """How many cases were not run, or not to their end."""
        return len(self.info.cells) * len(self.info.tasks) * self.info.repeat - len(self.cases)

    @property
    def base(self) -> Cell:
        """The cell that others are compared with."""
        return self.info.base

    @property
    def names(self) -> Mapping[Cell, str]:
        """The name of each cell in the report: without the parts that all cells share."""
        return short_names(self.info.cells)

    @cached_property
    def cells(self) -> list[CellReport]:
        """The figures of each cell, in order; also of cells without cases."""
        against = {one.a: (one.gained, one.lost) for one in self.comparisons}
        return [
            report_cell(cell, [*chain(*tasks.values())], *against.get(cell, ((), ())))
            for cell, tasks in self.groups.items()
        ]

    def cell(
        self, net: str | Cell, memory: str | None = None, model: str | None = None
    ) -> CellReport:
        """Return the figures of a cell.

        Args:
            net: The name of its net; or a cell; or a text such as ``"react/messages"``.
            memory: The name of its memory; None if it need not be said.
            model: The name of its model; None if it need not be said.

        Raises:
            ExperimentError: No cell is meant, or several are.
        """
        cell = find_cell(self.info.cells, net, memory, model)
        return self.cells[self.info.cells.index(cell)]

    @cached_property
    def comparisons(self) -> list[Comparison]:
        """Each cell compared with the base, adjusted for all these comparisons (Holm)."""
        others = [cell for cell in self.info.cells if cell != self.base]
        return adjust([self._compare(cell, self.base) for cell in others])

    def versus(self, a: str | Cell, b: str | Cell | None = None) -> Comparison:
        """Compare two cells.

        Args:
            a: A cell, or its name.
            b: Another one; None for the base. If it is not the base, the comparison is adjusted for
                all pairs of cells, as any pair could have been chosen.

        Raises:
            ExperimentError: A name means no cell, or several, or both are the same.
        """
        cells = self.info.cells
        first, second = find_cell(cells, a), self.base if b is None else find_cell(cells, b)
        if first == second:
            raise ExperimentError(f"{first} cannot be compared with itself")
        if second == self.base:
            return next(one for one in self.comparisons if one.a == first)
        others = [pair for pair in combinations(cells, 2) if {*pair} != {first, second}]
        return adjust([self._compare(*pair) for pair in ((first, second), *others)])[0]

    @property
    def failures(self) -> list[CaseResult]:
        """The cases that did not pass, in the order of :attr:`cases`."""
        return [case for case in self.cases if not case.passed]

    def by_tag(self) -> dict[str, dict[Cell, Rate]]:
        """Return, for each tag of the tasks, how many of its cases each cell passed."""
        tasks: dict[str, set[str]] = {}
        for task in self.info.tasks:
            for tag in task.tags:
                tasks.setdefault(tag, set()).add(task.id)
        return {
            tag: {
                one.cell: passed_rate([case for case in one.cases if case.task in tagged])
                for one in self.cells
            }
            for tag, tagged in tasks.items()
        }

    @property
    def warnings(self) -> list[str]:
        """What to know before believing the figures: few tasks, missing cases, and others."""
        return warnings_of(self.info, self.cells, self.missing)

    def to_markdown(self) -> str:
        """Return the report as Markdown, such as for a pull request."""
        return markdown(self)

    def to_html(self) -> str:
        """Return the report as one page of HTML that needs no other file and no network."""
        from agent_brain.experiments.report.html.page import html_page

        return html_page(self)

    def to_jsonl(self) -> str:
        """Return the cases as JSON, a line each."""
        return "".join(f"{case.model_dump_json()}\n" for case in self.cases)

    def save(self, folder: Path | str | None = None) -> Path:
        """Write ``report.md`` and ``report.html``, and return their folder.

        Args:
            folder: Where to write; it is made if need be. None for the folder of the experiment.

        Raises:
            ExperimentError: No folder is given, and the report has none.
            OSError: A file cannot be written.
        """
        where = folder or self.folder
        if where is None:
            raise ExperimentError("the report has no folder: save(folder) says where to write")
        where = as_folder(where)
        where.mkdir(parents=True, exist_ok=True)
        (where / "report.md").write_text(self.to_markdown(), encoding="utf-8")
        (where / "report.html").write_text(self.to_html(), encoding="utf-8")
        return where

    def __str__(self) -> str:
        return terminal(self)

    def __repr__(self) -> str:
        return f"<Report of {self.info.name!r}: {len(self.cases)} cases, {self.missing} missing>"

    def _compare(self, a: Cell, b: Cell) -> Comparison:
        names = self.names
        first, second = self.groups[a], self.groups[b]
        return compare((a, b), (names[a], names[b]), first, second)


def load_report(folder: Path | str) -> Report:
    """Return the report of what an experiment keeps in a folder, finished or not.

    Args:
        folder: The folder that the experiment was run in.

    Returns:
        The report; ``report.missing`` says how many cases were not run.

    Raises:
        ExperimentError: ``folder`` is not a path, there is no experiment in it, or a file of it
            is damaged.
    """
    folder = as_folder(folder)
    info = read_info(folder)
    ids = set(info.case_ids)
    cases = [case for case in read_cases(folder) if case.id in ids or not ids]
    return Report(info, cases, folder)
