"""Which case is begun when. Private."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

import anyio

from agent_brain.experiments.case_plan import Case
from agent_brain.experiments.settings import Settings

RunOne = Callable[[Case], Awaitable[None]]


class Schedule:
    """Runs cases in order, some at once.

    Args:
        cases: The cases, in order.
        settings: How many may run at once.
        run: Runs one. What it raises ends the others.
        may_begin: Returns whether another case may begin, each time before one does.
    """

    def __init__(
        self,
        cases: Sequence[Case],
        settings: Settings,
        run: RunOne,
        may_begin: Callable[[], bool],
    ) -> None:
        self._waiting = dict.fromkeys(range(len(cases)))
        self._cases = cases
        self._settings = settings
        self._run = run
        self._may_begin = may_begin
        self._running: Counter[str] = Counter()
        self._ended = anyio.Event()
        self._failure: BaseException | None = None

    async def work(self) -> None:
        """Run all cases, as far as they may begin."""
        async with anyio.create_task_group() as group:
            for _ in range(min(self._settings.at_once, len(self._cases))):
                group.start_soon(self._work, group.cancel_scope)
        if self._failure is not None:
            raise self._failure

    async def _work(self, scope: anyio.CancelScope) -> None:
        while (case := await self._next()) is not None:
            model = case.cell.model
            try:
                await self._run(case)
            except Exception as error:
                self._failure = self._failure or error
                scope.cancel()
            finally:
                self._running[model] -= 1
                self._ended.set()

    async def _next(self) -> Case | None:
        """Return the next case whose model has room; wait for one; None if there are no more."""
        while self._waiting and self._may_begin():
            for number in self._waiting:
                case = self._cases[number]
                model = case.cell.model
                if self._running[model] < self._settings.at_once_for(model):
                    del self._waiting[number]
                    self._running[model] += 1
                    return case
            if self._ended.is_set():
                self._ended = anyio.Event()
            await self._ended.wait()
        return None
