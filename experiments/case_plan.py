"""The cases of an experiment, with their IDs."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

from agent_brain.common.suggest import did_you_mean
from agent_brain.errors import ExperimentError
from agent_brain.experiments.case import CaseResult, Outcome
from agent_brain.experiments.cells import Cell, short_names
from agent_brain.experiments.fingerprint import Key, fingerprint
from agent_brain.experiments.task import Task

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
    ids = {case.task.id for case in cases}
    chosen = {*short} if cells is None else set[Cell]()
    for choice in cells or ():
        fitting = {cell for cell, name in short.items() if choice == name or cell.fits(choice)}
        if not fitting:
            names = sorted(map(str, short))
            raise ExperimentError(f"only={str(choice)!r} fits no cell: they are {', '.join(names)}")
        chosen |= fitting
    wanted = ids if tasks is None else set[str]()
    for choice in tasks or ():
        named = {id_ for id_ in ids if choice == id_ or fnmatchcase(id_, str(choice))}
        if not named:
            hint = did_you_mean(choice, ids)
            raise ExperimentError(f"only_tasks={choice!r} fits no task.{hint}")
        wanted |= named
    return [case for case in cases if case.cell in chosen and case.task.id in wanted]


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


def _list(what: str, given: Any) -> list[Any] | None:
    if given is None:
        return None
    several = isinstance(given, Iterable) and not isinstance(given, str | Cell)
    found = list(given) if several else [given]
    if not found:
        raise ExperimentError(f"{what}= is empty: give at least one, or None for all")
    for choice in found:
        if not isinstance(choice, str | Cell):
            raise ExperimentError(f"{what}={choice!r}: give a text")
    return found
