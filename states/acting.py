"""Acting: run all requested tool calls at once and record the results in order."""

from __future__ import annotations

from collections.abc import AsyncIterator
from enum import Enum

from agent_brain.common.values import check_count
from agent_brain.memories.base import Memory
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.routed import Choose, RoutedState
from agent_brain.states.tool_round import ToolRound
from agent_brain.states.work import StreamItem


class ActionState(RoutedState):
    """Run all requested tool calls with the tools that the memory offers.

    Calls run at once. Results are recorded in the order of the requests, in one update. An error in
    a call becomes its result (``is_error``), and the run continues. When the step is interrupted,
    finished calls are recorded and the others get a result that says why they did not run.

    While a call needs a person's approval and has none, no call runs: the state yields
    ``ApprovalRequested``, and the run waits to be resumed. If a tool raises ``InputNeeded``, the
    run waits for an answer, which becomes the result; the results of other calls are kept.

    A durable memory records every call before it begins, and its result: the last of a round with
    the step. A run resumed after a crash repeats neither a call whose result is recorded nor,
    unless the tool is ``idempotent``, one that may have taken effect.

    Args:
        on_done: The next state; None ends the run.
        choose: Returns the next state (:class:`RoutedState`).
        max_concurrency: Maximum number of calls that run at once; None for no maximum. Brains that
            are called as tools are counted apart.
    """

    def __init__(
        self,
        on_done: Enum | None = None,
        *,
        choose: Choose | None = None,
        max_concurrency: int | None = None,
    ) -> None:
        super().__init__(on_done, choose)
        check_count(StateDefinitionError, "max_concurrency", max_concurrency, optional=True)
        self.max_concurrency = max_concurrency

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        """Run the calls; what happens to each streams as it happens."""
        yield ToolRound(memory, ActionState.__name__, self.max_concurrency, ends_step=True)

    run.begins_with_record = True  # type: ignore[attr-defined] # of the step before, and the calls
