"""The cases of an experiment, with their IDs. Private."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

from agent_brain.errors import ExperimentError
from agent_brain.experiments.case import CaseResult, Cell, Outcome
from agent_brain.experiments.fingerprint import Key, fingerprint
from agent_brain.experiments.report.names import short_names
from agent_brain.experiments.task import Task
from agent_brain.tools.suggest import did_you_mean

Only: TypeAlias = str | Cell | Sequence[str | Cell] | None
OnlyTasks: TypeAlias = str | Sequence[str] | None
Fresh: TypeAlias = bool | str | Sequence[str]


@dataclass(frozen=True, slots=True)
class Case:
    """A task that a cell is to do.

    Attributes:
        id: Identifies it; see :class:`CaseResult`.
        cell: The cell.
        task: The task.
        repeat: Which repeat, from 0.
    """

    id: str
    cell: Cell
    task: Task
    repeat: int


def task_key(task: Task, settings: Sequence[object]) -> Key:
    """Return what stands for a task, done within ``settings``."""
    turns = [(turn.text, turn.session, turn.restart, turn.expected) for turn in task.all_turns]
    messages = [(m.role, m.content, m.name, m.tool_calls, m.tool_call_id) for m in task.messages]
    parts = task.expected, task.tools, task.output_type, task.prepare, task.max_cost, task.deps
    return fingerprint(task.id, turns, messages, *parts, *settings)


def make_cases(
    cells: dict[Cell, Key], tasks: Sequence[tuple[Task, Key]], repeat: int
) -> Iterator[Case]:
    """Yield all cases.

    Args:
        cells: The cells, each with what stands for it.
        tasks: The tasks, the same.
        repeat: How often each task is done.
    """
    for cell, cell_key in cells.items():
        for task, key in tasks:
            for number in range(repeat):
                yield Case(fingerprint(cell_key, key, number).digits, cell, task, number)


def shuffled(cases: Sequence[Case], seed: int) -> list[Case]:
    """Return the cases in the order in which they are run."""
    found = list(cases)
    random.Random(seed).shuffle(found)
    return found


def read_cell(text: Cell | str, cells: Sequence[Cell], what: str) -> Cell:
    """Return the cell that a text names; parts may be left out if one cell fits.

    Raises:
        ExperimentError: No cell fits, or several do.
    """
    _check_choices(what, [text])
    found = [cell for cell in cells if _fits(text, cell, exact=True)]
    if len(found) == 1:
        return found[0]
    many = f"{len(found)} cells fit" if found else "there is no such cell"
    names = [str(cell) for cell in cells]
    raise ExperimentError(
        f"{what}={str(text)!r}: {many}. The cells are {', '.join(names)}."
        f"{'' if found else did_you_mean(str(text), names)}"
    )


def _fits(text: Cell | str, cell: Cell, *, exact: bool = False) -> bool:
    parts = tuple(text) if isinstance(text, Cell) else text.split("/", 2)
    if exact:
        return tuple(cell[: len(parts)]) == tuple(parts)
    return all(
        name == part or fnmatchcase(name, part) for name, part in zip(cell, parts, strict=False)
    )


def select(
    cases: Sequence[Case],
    only: Only,
    only_tasks: OnlyTasks,
) -> list[Case]:
    """Return the chosen cases.

    Args:
        cases: All cases.
        only: Cells, their names in the report, or patterns with ``*`` of their parts; None for
            all.
        only_tasks: IDs of tasks, or patterns with ``*``; None for all.

    Raises:
        ExperimentError: A choice fits nothing.
    """
    cells, tasks = _list("only", only), _list("only_tasks", only_tasks)
    short = short_names(list({case.cell: None for case in cases}))
    for choice in cells or ():
        if not any(_is_chosen(choice, *each) for each in short.items()):
            names = sorted(map(str, short))
            raise ExperimentError(f"only={str(choice)!r} fits no cell: they are {', '.join(names)}")
    for choice in tasks or ():
        if not any(_is_of(choice, case) for case in cases):
            hint = did_you_mean(choice, {case.task.id for case in cases})
            raise ExperimentError(f"only_tasks={choice!r} fits no task.{hint}")
    return [
        case
        for case in cases
        if (
            cells is None
            or any(_is_chosen(choice, case.cell, short[case.cell]) for choice in cells)
        )
        and (tasks is None or any(_is_of(choice, case) for choice in tasks))
    ]


def done_again(fresh: Fresh) -> Callable[[CaseResult], bool]:
    """Return whether a kept result does not count, by what ``run`` was given.

    Raises:
        ExperimentError: ``fresh`` is neither a bool nor outcomes.
    """
    if isinstance(fresh, bool):
        return lambda case: fresh
    given: Any = [fresh] if isinstance(fresh, str) else fresh
    outcomes = [*given] if isinstance(given, Iterable) else [given]
    known = [outcome.value for outcome in Outcome]
    if any(one not in known for one in outcomes):
        raise ExperimentError(f"fresh={fresh!r}: True, or outcomes: {', '.join(known)}")
    return lambda case: case.outcome in outcomes


def _is_of(task: object, case: Case) -> bool:
    return task == case.task.id or fnmatchcase(case.task.id, str(task))


def _is_chosen(choice: Cell | str, cell: Cell, name: str) -> bool:
    return choice == name or _fits(choice, cell)


def _list(what: str, given: Any) -> list[Any] | None:
    if given is None:
        return None
    several = isinstance(given, Iterable) and not isinstance(given, str | Cell)
    found = list(given) if several else [given]
    if not found:
        raise ExperimentError(f"{what}= is empty: give at least one, or None for all")
    _check_choices(what, found)
    return found


def _check_choices(what: str, given: Iterable[object]) -> None:
    for choice in given:
        if not isinstance(choice, str | Cell):
            raise ExperimentError(f"{what}={choice!r}: give a text")
