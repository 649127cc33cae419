"""States for the tests of nets: they propose what their arguments say."""

from __future__ import annotations

from collections.abc import AsyncIterator
from enum import Enum
from typing import Any

from agent_brain.memories import Memory
from agent_brain.states import State


class N(Enum):
    A = 1
    B = 2
    C = 3
    D = 4


class Other(Enum):
    X = 1


class Go(State):
    """Says nothing of its edges: every state is possible."""

    async def run(self, memory: Memory) -> AsyncIterator[str]:
        yield ""

    async def next_state(self, memory: Memory) -> Enum | None:
        raise NotImplementedError


class To(Go):
    """Declares its targets."""

    def __init__(self, *declared: Any) -> None:
        self.declared = declared

    def targets(self) -> Any:
        return self.declared
