"""Helpers of the tests of states."""

from __future__ import annotations

from enum import Enum
from typing import Any

from agent_brain.memories import Control
from agent_brain.states import LLM, ActionState, ReasoningState
from agent_brain.testing import FakeMemory
from agent_brain.tools import tool


class N(Enum):
    REASON = 1
    ACT = 2
    ANSWER = 3


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def reasoning(llm: LLM, **options: Any) -> ReasoningState:
    return ReasoningState(llm, on_action=N.ACT, on_answer=N.ANSWER, **options)


def acting(**options: Any) -> ActionState:
    return ActionState(N.REASON, **options)


class DurableMemory(FakeMemory):
    """Keeps the control of every checkpoint, as a journal would."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.saved: list[Control] = []

    async def checkpoint(self) -> None:
        self.saved.append(Control.model_validate_json(self.control.model_dump_json()))

    def after_a_crash(self) -> DurableMemory:
        """The memory as the next process finds it."""
        memory = type(self)(tools=self.available_tools.values())
        memory.control = self.saved[-1].model_copy(deep=True)
        return memory
