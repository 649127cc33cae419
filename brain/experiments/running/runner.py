"""Running the cases of an experiment that have no result. Private."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

import anyio

from agent_brain.experiments.case import CaseResult, Cell
from agent_brain.experiments.case_plan import Case
from agent_brain.experiments.choices.memories import MemoryChoice
from agent_brain.experiments.choices.models import ModelChoice
from agent_brain.experiments.choices.nets import NetChoice
from agent_brain.experiments.progress import OnProgress, Progress
from agent_brain.experiments.running.case_run import CaseRun
from agent_brain.experiments.running.pace import Pace
from agent_brain.experiments.running.program import Equipment
from agent_brain.experiments.running.schedule import Schedule
from agent_brain.experiments.settings import Settings
from agent_brain.experiments.store import Store
from agent_brain.tools.aio import CLEANUP_SECONDS, maybe_await
from agent_brain.usage_ledger import UsageLedger


class Runner:
    """Runs the chosen cases that have no result, and keeps their results.

    Args:
        cases: The chosen cases, in order.
        store: The folder.
        settings: The settings of the experiment.
        nets: The nets by name.
        memories: The memories by name.
        models: The models by name.
    """

    def __init__(
        self,
        cases: Sequence[Case],
        store: Store,
        settings: Settings,
        nets: Mapping[str, NetChoice],
        memories: Mapping[str, MemoryChoice],
        models: Mapping[str, ModelChoice],
    ) -> None:
        self._cases = cases
        self._left = [case for case in cases if case.id not in store.kept]
        self._store = store
        self._settings = settings
        self._nets = nets
        self._memories = memories
        self._models = models
        self._paces: dict[str, Pace] = {}
        self._ledger = None if settings.max_cost is None else UsageLedger()
        self._judged = 0.0  # US dollars
        self._begun = 0.0
        self._done = [store.kept[case.id] for case in cases if case.id in store.kept]
        self._of_cell = Counter(case.cell for case in cases)
        self._of_cell.subtract(case.cell for case in self._done)

    async def run(self, on_progress: OnProgress | None) -> None:
        """Run them, as far as the budgets allow."""
        self._begun = time.monotonic()
        await self._tell(on_progress, None)
        if not self._left:
            return
        models = [self._models[name] for name in {case.cell.model for case in self._left}]
        try:
            for model in models:
                if model.llm is not None:
                    await model.llm.open()  # not in the time of a case
            one = partial(self._run_one, on_progress=on_progress)
            await Schedule(self._left, self._settings, one, self._may_begin).work()
        finally:
            with anyio.CancelScope(shield=True, deadline=anyio.current_time() + CLEANUP_SECONDS):
                for model in models:
                    if model.llm is not None and model.is_ours:
                        await model.llm.aclose()

    async def _run_one(self, case: Case, on_progress: OnProgress | None) -> None:
        run = CaseRun(case, self._equipment(case.cell), self._settings)
        result = await run.run()
        self._judged += result.judge_cost
        await self._store.keep(result, run.journal if self._settings.keep_sessions else None)
        self._done.append(result)
        self._of_cell[case.cell] -= 1
        await self._tell(on_progress, result)

    def _equipment(self, cell: Cell) -> Equipment:
        return Equipment(
            net=self._nets[cell.net],
            memory=self._memories[cell.memory],
            model=self._models[cell.model],
            client=self._store.client,
            pace_of=self._pace_of,
            ledger=self._ledger,
        )

    def _pace_of(self, model: str) -> Pace:
        pace = self._paces.get(model)
        if pace is None:
            pace = self._paces[model] = Pace()
        return pace

    def _may_begin(self) -> bool:
        most, seconds = self._settings.max_cost, self._settings.max_seconds
        if seconds is not None and time.monotonic() - self._begun >= seconds:
            return False
        if most is None or self._ledger is None:
            return True
        return self._ledger.usage().known_cost + self._judged < most

    async def _tell(self, on_progress: OnProgress | None, last: CaseResult | None) -> None:
        if on_progress is not None:
            await maybe_await(on_progress(self._progress(last)))

    def _progress(self, last: CaseResult | None) -> Progress:
        seconds = time.monotonic() - self._begun
        left = len(self._cases) - len(self._done)
        ran = len(self._left) - left
        return Progress(
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
