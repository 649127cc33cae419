"""Tools that are nets: the Brain runs them as branches of the run that calls them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Any, ClassVar, Protocol, TypeAlias

from agent_brain.memories.base import Memory
from agent_brain.states.events import Event
from agent_brain.states.work import Work
from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool


class NestedRun(Protocol):
    """A nested call, and its outcome once the Brain has run it."""

    call_id: str
    memory: Memory
    answer: str
    stop_reason: str | None
    error: Exception | None


OnEnd: TypeAlias = Callable[[Any], Awaitable[Iterable[Event]]]  # takes the NestedRun


class NestedTool(BaseTool):
    """A tool whose calls are branches of the run: events, limits and cancellation reach into them.

    Outside of a run it is a tool like others, through ``execute``.
    """

    nested: ClassVar[bool] = True

    @abstractmethod
    async def prepare(self, name: str, action: Action, memory: Memory) -> NestedRun:
        """A branch that is ready to run, on a memory of its own.

        Args:
            name: The name of the branch in the path of its events.
            action: The call, with arguments that fit the schema.
            memory: The memory of the net that calls.
        """

    @staticmethod
    @abstractmethod
    def order(
        runs: Sequence[NestedRun],
        *,
        beside: AsyncIterator[Event],
        on_end: OnEnd,
        max_concurrency: int | None = None,
    ) -> Work:
        """Return the work that runs the branches; failures are reported on them.

        Args:
            runs: The branches.
            beside: Events of the other calls of the round, which stream meanwhile.
            on_end: Called when a branch has ended; the events that it returns stream then.
            max_concurrency: How many run at once; None for all.
        """
