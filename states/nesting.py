"""Tools that are nets: the Brain runs them as branches of the run that calls them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

from agent_brain.memories.base import Memory
from agent_brain.states.events import Event
from agent_brain.tools.base import BaseTool


class NestedRun(Protocol):
    """What came of a nested call, as the Brain writes it down."""

    memory: Memory
    answer: str
    stop_reason: str | None
    error: Exception | None


class NestedTool(BaseTool):
    """A tool whose calls are branches of the run: events, limits and cancellation reach into them.

    Outside of a run it is a tool like others, through ``execute``.
    """

    nested: ClassVar[bool] = True

    @abstractmethod
    async def prepare(self, name: str, args: Mapping[str, Any]) -> NestedRun:
        """A branch that is ready to run, on a memory of its own.

        Args:
            name: What the branch is called in the path of its events.
            args: Arguments that fit the schema.
        """

    @staticmethod
    @abstractmethod
    def order(runs: Sequence[NestedRun]) -> Event:
        """The event that has the Brain run the branches; failures are reported on them."""
