"""Cells and cases of an experiment: their names, and the data that is stored and reported."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from agent_brain.common.text import clean
from agent_brain.errors import ExperimentError


class Cell(NamedTuple):
    """A net, a memory and a model, by their names in the experiment."""

    net: str
    memory: str
    model: str

    def __str__(self) -> str:
        return "/".join(self)

    def fits(self, pattern: str | Cell) -> bool:
        """Return whether a pattern of the first parts fits, such as ``"*/vector"``."""
        parts = pattern if isinstance(pattern, Cell) else pattern.split("/", 2)
        pairs = zip(self, parts, strict=False)
        return all(name == part or fnmatchcase(name, part) for name, part in pairs)


def short_names(cells: Sequence[Cell]) -> dict[Cell, str]:
    """Return each cell's name without the parts that are the same in all cells."""
    varies = [index for index in range(3) if len({cell[index] for cell in cells}) > 1]
    return {cell: "/".join(cell[index] for index in varies or [0]) for cell in cells}


def find_cell(
    cells: Sequence[Cell], net: str | Cell, memory: str | None = None, model: str | None = None
) -> Cell:
    """Return the only cell with these parts.

    Args:
        cells: The cells to choose from.
        net: The name of the net; or a cell; or a text of several parts, such as
            ``"react/messages"`` or the name of the cell in the report.
        memory: The name of the memory; None if it need not be said.
        model: The name of the model; None if it need not be said.

    Raises:
        ExperimentError: No cell is meant, or several are.
    """
    names = short_names(cells)
    if isinstance(net, Cell):
        text, ways = str(net), [[cell for cell in cells if cell == net]]
    elif wrong := [part for part in (net, memory or "", model or "") if not isinstance(part, str)]:
        raise ExperimentError(f"{wrong[0]!r} is not a cell: give a text such as 'react/messages'")
    else:
        text = "/".join(part for part in (net, memory, model) if part)
        parts = (net, memory, model)
        ways = [
            [cell for cell in cells if str(cell) == text],
            [cell for cell in cells if _has(cell, parts)],
            [cell for cell in cells if names[cell] == text or f"{cell}/".startswith(f"{text}/")],
        ]
    for found in ways:
        if len(found) == 1:
            return found[0]
    problem = "several cells are" if any(ways) else "no cell is"
    raise ExperimentError(f"{problem} {text!r}; the cells are {', '.join(map(str, cells))}")


def _has(cell: Cell, parts: Sequence[str | None]) -> bool:
    return all(part is None or part == own for part, own in zip(parts, cell, strict=True))


class Outcome(StrEnum):
    """How a case ended. All but ``PASSED`` count as failed."""

    PASSED = "passed"
    WRONG = "wrong"  # it ended, and a check did not pass
    CRASHED = "crashed"  # a run raised an error
    RATE_LIMITED = "rate-limited"  # a model's rate limit did not end in time
    LIMIT = "limit"  # a run reached a limit or a budget
    STUCK = "stuck"  # a run repeated itself
    WAITING = "waiting"  # a run waits for a person or a time, and nobody is there


Text = Annotated[str, AfterValidator(clean)]  # a model may write what JSON cannot hold


class CaseResult(BaseModel):
    """The result of one case: a task, done once by a cell. A line of ``cases.jsonl``.

    Attributes:
        id: Identifies the case: the same net, memory, model, task, limits and repeat, made of the
            same code, have the same ID in every program.
        net: The name of the net in the experiment.
        memory: The name of the memory.
        model: The name of the model.
        task: The ID of the task.
        tags: The tags of the task.
        repeat: Which repeat, from 0.
        outcome: How it ended.
        score: From 0 to 1; 0 unless it ended. The lowest score of its checks.
        judged: Whether a model judged it.
        reason: Why it passed or did not, in a sentence.
        answer: The last answer.
        stop_reason: Why the last run ended; None if it raised an error.
        error: The class and text of the error.
        turns: Number of turns that were begun.
        steps: Steps of all its runs.
        model_calls: Model calls.
        tool_calls: Tool calls.
        input_tokens: Tokens read by models.
        output_tokens: Tokens written by models.
        cost: US dollars; None if the price of a call is unknown. Without the judge.
        judge_cost: What judges cost, in US dollars.
        seconds: Seconds from its begin to its end, without waiting for its turn.
        seconds_waiting: Seconds of it that it waited for a model's rate limit.
        started: When it began (aware, UTC).
        sessions: Its sessions in ``sessions.db``, in order, of the tenant ``id``; empty if they are
            not kept.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    net: str
    memory: str
    model: str
    task: str
    tags: tuple[str, ...] = ()
    repeat: int = 0
    outcome: Outcome
    score: float = Field(ge=0, le=1)
    judged: bool = False
    reason: Text = ""
    answer: Text = ""
    stop_reason: str | None = None
    error: Text | None = None
    turns: int = 1
    steps: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    judge_cost: float = 0.0
    seconds: float = 0.0
    seconds_waiting: float = 0.0
    started: datetime
    sessions: tuple[str, ...] = ()

    @property
    def cell(self) -> Cell:
        """The cell that did the task."""
        return Cell(self.net, self.memory, self.model)

    @property
    def passed(self) -> bool:
        """Whether the case passed."""
        return self.outcome is Outcome.PASSED


class TaskInfo(BaseModel):
    """What a report says about a task."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    turns: tuple[Text, ...]
    tags: tuple[str, ...] = ()
    expected: Text = ""  # in words
    source: Text = ""


class ExperimentInfo(BaseModel):
    """What an experiment compares, and with what: ``experiment.json``.

    Attributes:
        name: The name of the experiment.
        nets: The nets by their names in the experiment, each in words: what was given.
        memories: The memories, the same.
        models: The models, the same; the name that the provider knows, if there is one.
        rule_based: The names of those models that are rules and not language models.
        tasks: The tasks, in order.
        base: The cell that others are compared with.
        repeat: How often each task is done by each cell.
        seed: The seed of the order of cases, and of resampling.
        limits: The limits of each turn.
        version: The version that the user named; None for none.
        unknown: What its cases depend on that cannot be known, in words, unless there is a version.
        versions: Versions of Python, of this library and of the libraries that it uses.
        commit: The commit of the repository the experiment was run in, with ``"+"`` if files were
            changed; None outside of one.
        started: When it began (aware, UTC).
        finished: When the last case ended.
        case_ids: The IDs of its cases, in order. Other results in its folder are of other
            experiments, such as of one with other limits.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str = "experiment"
    nets: dict[str, str]
    memories: dict[str, str]
    models: dict[str, str]
    rule_based: tuple[str, ...] = ()
    tasks: tuple[TaskInfo, ...]
    base: Cell
    repeat: int = 1
    seed: int = 0
    limits: dict[str, Any] = {}
    version: str | None = None
    unknown: tuple[str, ...] = ()
    versions: dict[str, str] = {}
    commit: str | None = None
    started: datetime
    finished: datetime | None = None
    case_ids: tuple[str, ...] = ()

    @property
    def cells(self) -> list[Cell]:
        """All cells, in order."""
        return [Cell(n, m, o) for n in self.nets for m in self.memories for o in self.models]
