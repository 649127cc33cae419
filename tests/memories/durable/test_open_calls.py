"""Runs that are left while calls of branches and nested brains are open, then resumed."""

from __future__ import annotations

from collections import Counter
from enum import Enum
from typing import Any

import anyio
import pytest

from agent_brain import Brain, Limits, Memory, MessagesMemory, Run, react, tool
from agent_brain.memories import RamJournal
from agent_brain.nets import Net, ParallelState
from agent_brain.states import ActionStarted
from agent_brain.testing import ModelCall
from agent_brain.tools import Action
from tests.nets.models import FunctionLLM

pytestmark = pytest.mark.anyio

TIMEOUT = 0.5  # seconds, which a call that is cut off takes
IN_DOUBT = "may or may not have taken effect"


class Step(Enum):
    ALL = "all"


class Work:
    """An agent in a branch or a nested brain: it looks, then pays, which takes until it is left.

    Args:
        kind: ``"branch"`` or ``"nested"``.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.begun: Counter[str] = Counter()
        self.paying = anyio.Event()
        self.left = anyio.Event()

        @tool
        async def pay() -> str:
            """Pay."""
            self.begun["pay"] += 1
            self.paying.set()
            await self.left.wait()
            return "paid"

        @tool(idempotent=True)
        async def look() -> str:
            """Look."""
            self.begun["look"] += 1
            return "seen"

        self.tools = [pay, look]

    def _work(self, call: ModelCall) -> Any:
        results = [m.content for m in call.messages if m.role == "tool"]
        if len(results) == 2:
            return " / ".join(results)
        return Action(name="pay", id="pay") if results else Action(name="look", id="look")

    def _lead(self, call: ModelCall) -> Any:
        results = [m.content for m in call.messages if m.role == "tool"]
        return results[-1] if results else Action(name="agent", args={"task": "do"}, id="agent")

    def brain(self, memory: Memory, **options: Any) -> Brain:
        work = react(FunctionLLM(self._work))
        if self.kind == "branch":
            return Brain(Net({Step.ALL: ParallelState([work])}), memory, self.tools, **options)
        agent = Brain(work, tools=self.tools).as_tool("agent", "Do it.")
        return Brain(react(FunctionLLM(self._lead)), memory, [agent], **options)

    async def leave(self, memory: Memory, how: str) -> None:
        """Begin a run, and end it while the payment is under way."""
        limits = Limits(timeout=TIMEOUT) if how == "timeout" else Limits()
        brain = self.brain(memory, limits=limits)
        async with brain.stream("go") as run, anyio.create_task_group() as group:
            group.start_soon(self._interrupt, run, how, group.cancel_scope)
            async for event in run:
                if how == "leaving" and isinstance(event, ActionStarted):
                    if event.action.name == "pay":
                        break
            await run.aclose()
            self.left.set()
            self.paying.set()

    async def _interrupt(self, run: Run[Any], how: str, scope: anyio.CancelScope) -> None:
        await self.paying.wait()
        if how == "cancel":
            run.cancel()
        elif how == "task":
            scope.cancel()
        elif how in ("stop", "pause"):
            getattr(run, how)()
            self.left.set()


@pytest.mark.parametrize("how", ["cancel", "timeout", "task", "leaving", "stop", "pause"])
@pytest.mark.parametrize("kind", ["branch", "nested"])
async def test_an_open_call_inside_is_neither_lost_nor_repeated(kind: str, how: str) -> None:
    journal, work = RamJournal(), Work(kind)
    async with MessagesMemory(journal=journal) as memory:
        await work.leave(memory, how)
    begun = work.begun["pay"]
    work.left.set()
    async with MessagesMemory(journal=journal) as memory:
        result = await work.brain(memory).resume()
        spent = memory.control.spent
    ends = how in ("stop", "pause")
    assert ("paid" in result.answer) == (ends or not begun)
    assert (IN_DOUBT in result.answer) == (not ends and bool(begun))
    assert work.begun["pay"] == 1
    assert work.begun["look"] == 1
    finished = 1 if IN_DOUBT in result.answer else 2 if kind == "branch" else 3
    assert spent.tool_calls == finished
