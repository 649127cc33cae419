"""Experiments: nets, memories and models on the same tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio

from agent_brain.common.aio import in_event_loop
from agent_brain.default_model import models_of
from agent_brain.errors import ExperimentError
from agent_brain.experiments.case import Cell, ExperimentInfo, TaskInfo, find_cell
from agent_brain.experiments.choices.axis import Faults
from agent_brain.experiments.choices.memories import read_memories
from agent_brain.experiments.choices.models import ModelChoice, choice_of, read_models
from agent_brain.experiments.choices.nets import NetChoice, read_nets
from agent_brain.experiments.fingerprint import Key, fingerprint
from agent_brain.experiments.origins import commit, versions
from agent_brain.experiments.plan import (
    Case,
    Fresh,
    Only,
    OnlyTasks,
    Plan,
    done_again,
    make_cases,
    most_of_case,
    select,
    shuffled,
    task_key,
    token_price,
)
from agent_brain.experiments.running.runner import OnProgress, Runner
from agent_brain.experiments.settings import Settings
from agent_brain.experiments.store import Store, as_folder, read_cases, read_info
from agent_brain.experiments.task import MakeTools, Task
from agent_brain.limits import Limits
from agent_brain.memories.base import Memory
from agent_brain.nets.net import Net
from agent_brain.states.models.llm import LLM
from agent_brain.stuck import StuckPolicy
from agent_brain.tools.toolset import ToolLike

if TYPE_CHECKING:
    from agent_brain.experiments.report.report import Report

NetGiven: TypeAlias = (
    str
    | PathLike[str]
    | Net
    | tuple[str, Mapping[str, Any]]
    | Callable[[LLM], Net]
    | Callable[[LLM, Any], Net]
)
MemoryGiven: TypeAlias = str | tuple[str, Mapping[str, Any]] | Callable[..., Memory]
ModelGiven: TypeAlias = str | LLM
Tasks: TypeAlias = Task | Iterable[Task]


class Experiment:
    """Compares nets, memories and models on the same tasks.

    ::

        experiment = Experiment(
            nets=["react", "plan_execute"],
            memories={"all": "messages", "short": ("windowed", {"max_messages": 10})},
            models=["openai/gpt-4.1-mini"],
            tasks=[Task(id="sum", turns="What is 17 + 25?", expected=42)],
        )
        report = await experiment.run("results")
        print(report.to_markdown())

    Each combination is a cell, and each cell does each task: a case, with a memory and tools of its
    own. A case that raises an error, reaches a limit, repeats itself or waits for a person counts
    as failed; it never ends the experiment.

    Args:
        nets: A net, a list of nets, or a dict by names of your own. A net is given by its
            registered name, as a tuple ``(name, options)``, as the path of a net file, as
            ``"module:name"``, as a function of a model (and of the output type) that returns a
            net, or as a :class:`Net`, which has its model already.
        memories: The same for memories: a registered name, a tuple ``(name, options)``,
            ``"module:name"``, or a function ``(tools, *, session, journal, tenant)``, of which it
            takes what it needs. A memory is stored in the folder if it is given the journal, and
            ends with the program otherwise.
        models: The same for models: a LiteLLM name or an :class:`LLM`. None for the default model.
        tasks: The tasks.
        tools: Tools for all tasks, or a function that makes them for each case.
        limits: The limits of each turn.
        repeat: How often each cell does each task.
        at_once: How many cases are run at once.
        model_at_once: How many of them with one model: a number, or a dict by model.
        base: The cell that others are compared with, as a :class:`Cell` or a text such as
            ``"react/messages"``. Default: the first.
        seed: The seed of the order of the cases.
        name: The name of the experiment.
        max_cost: US dollars; when they are spent, no new case begins. Counts calls whose price is
            known, in this run of the experiment.
        max_seconds: Seconds after which no new case begins.
        case_max_cost: US dollars that a case may spend, unless its task says otherwise.
        case_seconds: Seconds that a case may take, without those that it waits for the rate limit
            of a model; None for no limit.
        trace: Store what models were sent and returned.
        keep_sessions: Store the sessions of the cases in the folder.
        net_options: Options of all nets that are given by a registered name.
        stuck: What to do about a run that repeats itself; None to do nothing.
        version: A name of your own for what a case depends on and an experiment cannot know, such
            as a file that a state reads. With another version all cases are run again.

    Raises:
        ExperimentError: An argument of a wrong kind, or arguments that do not go together; the
            message lists all that are wrong.
    """

    def __init__(
        self,
        *,
        nets: NetGiven | Sequence[NetGiven] | Mapping[str, NetGiven],
        memories: MemoryGiven | Sequence[MemoryGiven] | Mapping[str, MemoryGiven] = "messages",
        models: ModelGiven | Sequence[ModelGiven] | Mapping[str, ModelGiven] | None = None,
        tasks: Tasks,
        tools: Iterable[ToolLike] | MakeTools = (),
        limits: Limits = Limits(),  # noqa: B008 - frozen
        repeat: int = 1,
        at_once: int = 8,
        model_at_once: int | Mapping[str, int] | None = None,
        base: Cell | str | None = None,
        seed: int = 0,
        name: str = "experiment",
        max_cost: float | None = None,
        max_seconds: float | None = None,
        case_max_cost: float | None = None,
        case_seconds: float | None = 300.0,
        trace: bool = True,
        keep_sessions: bool = True,
        net_options: Mapping[str, Any] | None = None,
        stuck: StuckPolicy | None = StuckPolicy(),  # noqa: B008 - frozen
        version: str | None = None,
    ) -> None:
        self._nets: dict[str, NetChoice] = {}
        faults = Faults()  # all of them are told
        with faults:
            self._nets = read_nets(nets, net_options)
        with faults:
            self._memories = read_memories(memories)
        with faults:
            self._models = _models_for(self._nets, models)
        with faults:
            self._tasks = _read_tasks(tasks)
        with faults:
            self.settings = Settings(
                name=name,
                tools=tools,
                limits=limits,
                stuck=stuck,
                repeat=repeat,
                seed=seed,
                at_once=at_once,
                model_at_once=model_at_once,
                max_cost=max_cost,
                max_seconds=max_seconds,
                case_max_cost=case_max_cost,
                case_seconds=case_seconds,
                trace=trace,
                keep_sessions=keep_sessions,
                version=version,
            )
        faults.refuse()
        self.settings.check_models(self._models)
        for task in self._tasks:
            self.settings.check_tools(task)
        self._cells, keys = self._cell_keys(), self._task_keys()
        self.base = self.cells[0] if base is None else self._find_base(base)
        self._cases = list(make_cases(self._cells, keys, repeat))
        unknown = fingerprint(list(self._cells.values()), [key for _, key in keys]).unknown
        self._unknown = unknown if version is None else ()

    @property
    def cells(self) -> list[Cell]:
        """The cells, in order."""
        return list(self._cells)

    @property
    def tasks(self) -> list[Task]:
        """The tasks, in order."""
        return list(self._tasks)

    def _find_base(self, given: Cell | str) -> Cell:
        try:
            return find_cell(self.cells, given)
        except ExperimentError as error:
            shown = str(given) if isinstance(given, Cell) else given
            raise ExperimentError(f"base={shown!r}: {error}") from error

    def _cell_keys(self) -> dict[Cell, Key]:
        return {
            Cell(net, memory, model): fingerprint(
                (net, memory, model),
                self._nets[net].key,
                self._memories[memory].key,
                self._models[model].key,
            )
            for net in self._nets
            for memory in self._memories
            for model in self._models
        }

    def _task_keys(self) -> list[tuple[Task, Key]]:
        own = self.settings
        common = fingerprint(own.tools, own.stuck, own.case_max_cost, own.case_seconds, own.version)
        return [(task, task_key(task, [common, task.limits or own.limits])) for task in self._tasks]

    def plan(
        self,
        folder: str | PathLike[str] | None = None,
        *,
        only: Only = None,
        only_tasks: OnlyTasks = None,
        fresh: Fresh = False,
    ) -> Plan:
        """Return what :meth:`run` would do. Runs nothing.

        Args:
            folder: The folder whose results count as done.
            only: As for :meth:`run`.
            only_tasks: As for :meth:`run`.
            fresh: As for :meth:`run`: such results do not count as done.

        Raises:
            ExperimentError: The folder cannot be read; or ``only`` fits nothing.
        """
        chosen, again = self._select(only, only_tasks), done_again(fresh)
        kept: set[str] = set()
        if folder is not None and not self._is_new(chosen, fresh):
            kept = {case.id for case in read_cases(as_folder(folder)) if not again(case)}
        left = [case for case in chosen if case.id not in kept]
        prices = {name: token_price(choice.llm) for name, choice in self._models.items()}
        most = [most_of_case(c.task, self.settings, prices[c.cell.model]) for c in left]
        known = [cost for cost in most if cost is not None]
        bound = sum(known) if len(known) == len(most) else None
        if bound and self.settings.max_cost is not None and None not in prices.values():
            running = max(known) * self.settings.at_once
            bound = min(bound, self.settings.max_cost + running)
        return Plan(
            cells=[cell for cell in self._cells if any(case.cell == cell for case in chosen)],
            cases=chosen,
            done=len(chosen) - len(left),
            max_cost=bound,
            unpriced=[name for name, price in prices.items() if price is None],
        )

    async def run(
        self,
        folder: str | PathLike[str],
        *,
        only: Only = None,
        only_tasks: OnlyTasks = None,
        fresh: Fresh = False,
        on_progress: OnProgress | None = None,
    ) -> Report:
        """Run the cases that have no result yet, and return the report of all.

        The folder holds ``experiment.json``, ``cases.jsonl`` with a line for each case that has
        ended, and ``sessions.db`` with what happened in them. A run that was interrupted, in any
        way, is continued by calling this again: cases with a result are not run again, and others
        start from their beginning.

        Args:
            folder: The folder; it is made if it is missing.
            only: Only these cells: texts such as ``"react/vector"``, with ``*`` for any, or their
                names in the report.
            only_tasks: Only the tasks of these IDs, with ``*`` for any part.
            fresh: Do again what the folder holds, or with ``only`` the chosen cases: True for all
                of them, or how those ended that are done again, such as ``"rate-limited"``.
            on_progress: Called with a :class:`Progress` at the start and after each case.

        Raises:
            ExperimentError: The folder cannot be used, is damaged, or belongs to another process;
                or ``only`` fits nothing.
        """
        from agent_brain.experiments.report.report import Report

        chosen, again = self._select(only, only_tasks), done_again(fresh)
        path = as_folder(folder)
        if on_progress is not None and not callable(on_progress):
            raise ExperimentError(f"on_progress={on_progress!r}: a function of the progress")
        async with Store(path, empty=self._is_new(chosen, fresh)) as store:
            known = [store.kept[case.id] for case in chosen if case.id in store.kept]
            if redone := {case.id for case in known if again(case)}:
                await store.forget(redone)
            await store.remove_unfinished()
            info = await self._info(path)
            await store.write_info(info)
            axes = self._nets, self._memories, self._models
            await Runner(chosen, store, self.settings, *axes, on_progress).run()
            info = info.model_copy(update={"finished": datetime.now(UTC)})
            await store.write_info(info)
            kept = [store.kept[case.id] for case in self._cases if case.id in store.kept]
            return Report(info, kept, path)

    def run_sync(
        self,
        folder: str | PathLike[str],
        *,
        only: Only = None,
        only_tasks: OnlyTasks = None,
        fresh: Fresh = False,
        on_progress: OnProgress | None = None,
    ) -> Report:
        """Like :meth:`run`, for programs without an event loop.

        Raises:
            ExperimentError: An event loop is running here; or as for :meth:`run`.
        """
        if in_event_loop():
            raise ExperimentError(
                "run_sync() cannot be used inside a running event loop: use 'await "
                "experiment.run(…)'"
            )
        from agent_brain.common.litellm import run_and_release

        return run_and_release(
            lambda: self.run(
                folder, only=only, only_tasks=only_tasks, fresh=fresh, on_progress=on_progress
            )
        )

    def _select(self, only: Only, only_tasks: OnlyTasks) -> list[Case]:
        return select(shuffled(self._cases, self.settings.seed), only, only_tasks)

    def _is_new(self, chosen: Sequence[Case], fresh: Fresh) -> bool:
        """Return whether nothing that a folder holds is kept."""
        return fresh is True and len(chosen) == len(self._cases)

    async def _info(self, folder: Path) -> ExperimentInfo:
        try:
            started = read_info(folder).started
        except ExperimentError:
            started = datetime.now(UTC)
        return ExperimentInfo(
            name=self.settings.name,
            nets={name: choice.text for name, choice in self._nets.items()},
            memories={name: choice.text for name, choice in self._memories.items()},
            models={name: choice.text for name, choice in self._models.items()},
            rule_based=tuple(n for n, choice in self._models.items() if choice.is_rule_based),
            tasks=tuple(_task_info(task) for task in self._tasks),
            base=self.base,
            repeat=self.settings.repeat,
            seed=self.settings.seed,
            limits=self.settings.limits_in_words(),
            version=self.settings.version,
            unknown=self._unknown,
            versions=versions(),
            commit=await anyio.to_thread.run_sync(commit),
            started=started,
            case_ids=tuple(case.id for case in self._cases),
        )


def _read_tasks(given: object) -> tuple[Task, ...]:
    tasks = [given] if isinstance(given, Task) else given
    if isinstance(tasks, str) or not isinstance(tasks, Iterable):
        raise ExperimentError(f"tasks={given!r}: give a list of tasks, such as basics()")
    found = tuple(tasks)
    seen: set[str] = set()
    for task in found:
        if not isinstance(task, Task):
            raise ExperimentError(f"tasks= has {task!r}, which is not a Task")
        if task.id in seen:
            raise ExperimentError(f"tasks= has two of the ID {task.id!r}: give each its own")
        seen.add(task.id)
    if not found:
        raise ExperimentError("tasks= is empty: give at least one")
    return found


def _task_info(task: Task) -> TaskInfo:
    checks = [turn.check for turn in task.all_turns] + [task.check]
    return TaskInfo(
        id=task.id,
        turns=tuple(turn.text for turn in task.all_turns),
        tags=tuple(task.tags),
        expected="; ".join(str(check) for check in checks if check is not None),
        source=task.source,
    )


def _models_for(nets: Mapping[str, NetChoice], given: object) -> dict[str, ModelChoice]:
    """Return the models by name; a net that was given as an object has its own."""
    own = {name: choice.net for name, choice in nets.items() if choice.net is not None}
    if not own:
        return read_models(given)
    used = {llm for net in own.values() for llm in models_of(net)}
    names = {llm.model for llm in used}
    if given is None and len(own) == len(nets):
        if len(names) <= 1:
            choice = choice_of(next(iter(used), None))
            return {choice.name: choice}
        text = ", ".join(sorted(names))
        return {text: ModelChoice(text, None, fingerprint(text))}
    models = read_models(given)
    first = next(iter(own))
    if len(models) > 1:
        raise ExperimentError(
            f"nets= has the net {first!r}, which has its model already, and models= has several: "
            "give a function of a model that returns the net"
        )
    (model,) = models.values()
    if names - {model.text}:
        raise ExperimentError(
            f"The net {first!r} has the model {', '.join(sorted(names))}, and models= is "
            f"{model.text}: give a function of a model that returns the net"
        )
    return models
