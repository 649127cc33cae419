"""The cases of an experiment with their IDs, and the most that they can cost."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

from agent_brain.common.suggest import did_you_mean
from agent_brain.common.text import count_of
from agent_brain.errors import ExperimentError
from agent_brain.experiments.case import CaseResult, Cell, Outcome, short_names
from agent_brain.experiments.fingerprint import Key, fingerprint
from agent_brain.experiments.rule_based.llm import RuleBasedLLM
from agent_brain.experiments.settings import Settings
from agent_brain.experiments.task import Task
from agent_brain.states.models.llm import LLM

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


def select(cases: Sequence[Case], only: Only, only_tasks: OnlyTasks) -> list[Case]:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What an experiment would do.

    ::

        print(experiment.plan("results"))

    Attributes:
        cells: The chosen cells.
        cases: All cases of these, in the order in which they are run.
        done: How many of them have a result in the folder.
        max_cost: The most that the cases without a result can cost in US dollars, without judges;
            None if nothing bounds it, or a price is unknown. A budget may be exceeded by the calls
            that are in progress when it is reached.
        unpriced: The models whose prices are unknown.
    """

    cells: list[Cell]
    cases: list[Case]
    done: int
    max_cost: float | None
    unpriced: list[str]

    def __str__(self) -> str:
        per_cell = len(self.cases) // max(len(self.cells), 1)
        width = max((len(str(cell)) for cell in self.cells), default=0)
        lines = [f"{cell!s:<{width}}  {count_of(per_cell, 'case')}" for cell in self.cells]
        left = len(self.cases) - self.done
        lines.append(f"{count_of(len(self.cases), 'case')}: {self.done} done, {left} to run")
        lines.append(self._cost())
        return "\n".join(lines)

    def _cost(self) -> str:
        if self.max_cost is not None:
            return f"At most ${self.max_cost:.2f}"
        if self.unpriced:
            return f"The cost is unknown: no price of {', '.join(self.unpriced)}"
        return "Nothing bounds the cost of a case: give case_max_cost= or Limits(max_tokens=…)"


def token_price(llm: LLM | None) -> float | None:
    """Return US dollars for the dearest token of a model; None if its price is unknown."""
    if isinstance(llm, RuleBasedLLM):
        return max(llm.price) / 1e6
    if llm is None or getattr(llm, "rule_based", False):
        return 0.0
    from agent_brain.states.models.litellm.adapter import LiteLLM

    if not isinstance(llm, LiteLLM):
        return None
    from agent_brain.common.litellm import model_entry

    names = "input_cost_per_token", "output_cost_per_token"
    entry: dict[str, Any] = llm.params
    if not all(name in entry for name in names):  # litellm takes seconds to import
        entry = {**(model_entry(entry.get("base_model") or llm.model) or {}), **entry}
    known = [float(entry[name]) for name in names if isinstance(entry.get(name), int | float)]
    return max(known) if len(known) == len(names) else None


def most_of_case(task: Task, settings: Settings, price: float | None) -> float | None:
    """Return the most that a case can cost in US dollars; None if nothing bounds it.

    A budget may be exceeded by the calls that are in progress when it is reached.

    Args:
        task: The task.
        settings: The settings of the experiment.
        price: Of the dearest token of its model.
    """
    if price is None:
        return None
    if price == 0:
        return 0.0
    limits, turns = task.limits or settings.limits, len(task.all_turns)
    budget = task.max_cost or settings.case_max_cost
    known = [] if budget is None else [budget]
    if limits.max_cost is not None:
        known.append(limits.max_cost * turns)
    if limits.max_tokens is not None:
        known.append(limits.max_tokens * price * turns)
    return min(known, default=None)
