"""Acting: run every call that was asked for, at once, and record the results in order."""

from __future__ import annotations

from collections.abc import AsyncIterator
from enum import Enum

from agent_brain.memories.base import Memory
from agent_brain.states.base import State
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.tool_round import ToolRound
from agent_brain.states.work import StreamItem
from agent_brain.tools.values import is_count


class ActionState(State):
    """Run all pending actions with the tools that the memory offers.

    Several run at once. Results are recorded in the order in which the calls were asked for, each
    tied to its call, in one update. What goes wrong in a call is its result (``is_error``), and the
    run goes on. When the step is cut short, the calls that had finished are recorded, and the
    others are answered with the reason, so that no call stays without a result.

    While a call of the round needs a person's approval and has none, nothing of it runs: the state
    yields ``ApprovalRequested``, and the run waits to be resumed. A tool that raises
    ``InputNeeded`` has the run wait for an answer, which becomes its result; what other calls have
    done by then is kept.

    In a durable memory every call is noted before it begins and again when its result is in: a run
    resumed after a crash neither repeats a finished call nor, unless the tool is ``idempotent``,
    one that may have happened.

    Args:
        on_done: Where to go afterwards.
        max_concurrency: How many calls may run at once, begun in their order; None for all of them.
    """

    def __init__(self, on_done: Enum, *, max_concurrency: int | None = None) -> None:
        if max_concurrency is not None and not is_count(max_concurrency):
            raise StateDefinitionError(
                f"max_concurrency must be at least 1, not {max_concurrency!r}"
            )
        self.on_done = on_done
        self.max_concurrency = max_concurrency

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        """Run the calls; what happens to each streams as it happens."""
        yield ToolRound(memory, ActionState.__name__, self.max_concurrency)

    async def next_state(self, memory: Memory) -> Enum:
        """``on_done``, always."""
        return self.on_done
