"""Running the cases of an experiment that have no result, and how far it is."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import anyio

from agent_brain.common.aio import CLEANUP_SECONDS, maybe_await, work_off
from agent_brain.experiments.case import CaseResult
from agent_brain.experiments.choices.memories import MemoryChoice
from agent_brain.experiments.choices.models import ModelChoice
from agent_brain.experiments.choices.nets import NetChoice
from agent_brain.experiments.plan import Case
from agent_brain.experiments.running.case_run import CaseRun
from agent_brain.experiments.settings import Settings
from agent_brain.experiments.store import Store
from agent_brain.hooks.rate_limits import RateLimits
from agent_brain.usage.ledger import UsageLedger


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far an experiment is, after each case.

    Attributes:
        cases_done: Cases that have a result, also from earlier runs.
        cases: All cases that were chosen.
        cells_done: Cells of which all these cases have a result.
        cells: All cells that were chosen.
        passed: Cases that passed.
        cost: US dollars of all that is done, with judges; without calls of unknown price.
        seconds: Seconds since the experiment was started this time.
        seconds_left: Seconds that are left, from how long it took until now; None if unknown.
        last: The case that ended last; None at the start.
    """

    cases_done: int
    cases: int
    cells_done: int
    cells: int
    passed: int
    cost: float
    seconds: float
    seconds_left: float | None
    last: CaseResult | None


OnProgress: TypeAlias = Callable[[Progress], Awaitable[None] | None]


class Runner:
    """Runs the chosen cases that have no result, and keeps their results.

    Args:
        cases: The chosen cases, in order.
        store: The folder.
        settings: The settings of the experiment.
        nets: The nets by name.
        memories: The memories by name.
        models: The models by name.
        on_progress: Called with how far it is, at the start and after each case.

    Attributes:
        client: Returns the client of Chroma of the folder.
        limits: What calls of models wait for, together.
        ledger: Counts what all cases use; None if nobody asks.
    """

    def __init__(
        self,
        cases: Sequence[Case],
        store: Store,
        settings: Settings,
        nets: Mapping[str, NetChoice],
        memories: Mapping[str, MemoryChoice],
        models: Mapping[str, ModelChoice],
        on_progress: OnProgress | None,
    ) -> None:
        self._on_progress = on_progress
        self._cases = cases
        self._left = [case for case in cases if case.id not in store.kept]
        self._store = store
        self.settings = settings
        self.nets, self.memories, self.models = nets, memories, models
        self.client = store.client
        self.limits = RateLimits()
        self.ledger = None if settings.max_cost is None else UsageLedger()
        self._running: Counter[str] = Counter()  # cases by model
        self._judged = 0.0  # US dollars
        self._begun = 0.0
        self._done = [store.kept[case.id] for case in cases if case.id in store.kept]
        self._of_cell = Counter(case.cell for case in cases)
        self._of_cell.subtract(case.cell for case in self._done)

    async def run(self) -> None:
        """Run them, as far as the budgets allow."""
        self._begun = time.monotonic()
        await self._tell(None)
        if not self._left:
            return
        models = [self.models[name] for name in {case.cell.model for case in self._left}]
        try:
            for model in models:
                if model.llm is not None:
                    await model.llm.open()  # not in the time of a case
            await work_off(
                self._left,
                self._run_one,
                at_once=self.settings.at_once,
                may_begin=self._may_begin,
                has_room=self._has_room,
            )
        finally:
            with anyio.CancelScope(shield=True, deadline=anyio.current_time() + CLEANUP_SECONDS):
                for model in models:
                    if model.llm is not None and model.is_ours:
                        await model.llm.aclose()

    async def _run_one(self, case: Case) -> None:
        self._running[case.cell.model] += 1
        try:
            run = CaseRun(case, self)
            result = await run.run()
            self._judged += result.judge_cost
            await self._store.keep(result, run.journal if self.settings.keep_sessions else None)
            self._done.append(result)
            self._of_cell[case.cell] -= 1
            await self._tell(result)
        finally:
            self._running[case.cell.model] -= 1

    def _has_room(self, case: Case) -> bool:
        model = case.cell.model
        return self._running[model] < self.settings.at_once_for(model)

    def _may_begin(self) -> bool:
        most, seconds = self.settings.max_cost, self.settings.max_seconds
        if seconds is not None and time.monotonic() - self._begun >= seconds:
            return False
        used = self.ledger
        return most is None or used is None or used.usage().known_cost + self._judged < most

    async def _tell(self, last: CaseResult | None) -> None:
        if self._on_progress is None:
            return
        seconds = time.monotonic() - self._begun
        left = len(self._cases) - len(self._done)
        ran = len(self._left) - left
        progress = Progress(
            cases_done=len(self._done),
            cases=len(self._cases),
            cells_done=sum(not left for left in self._of_cell.values()),
            cells=len(self._of_cell),
            passed=sum(case.passed for case in self._done),
            cost=sum((case.cost or 0.0) + case.judge_cost for case in self._done),
            seconds=seconds,
            seconds_left=seconds / ran * left if ran else None,
            last=last,
        )
        await maybe_await(self._on_progress(progress))
