"""A net inside a net that repeats itself, or reaches a limit."""

from __future__ import annotations

from enum import Enum
from typing import Any

import pytest

from agent_brain import Brain, Limits, Memory, MessagesMemory, StuckPolicy, react, tool
from agent_brain.memories import RamJournal
from agent_brain.nets import Net, SubnetState
from agent_brain.states import StuckDetected
from agent_brain.testing import ModelCall
from agent_brain.tools import Action
from tests.nets.models import FunctionLLM

pytestmark = pytest.mark.anyio


class Step(Enum):
    SUB = "sub"


@tool
def look() -> str:
    """Look."""
    return "nothing"


@pytest.mark.parametrize("fork", [False, True])
@pytest.mark.parametrize("limits", [Limits(max_steps=5), Limits(max_tool_calls=3), Limits()])
async def test_it_is_told_with_its_path_and_continues_there(fork: bool, limits: Limits) -> None:
    journal, asked, over = RamJournal(), list[int](), list[bool]()

    def reply(call: ModelCall) -> Any:
        asked.append(1)
        return "seen enough" if over else Action(name="look")

    def brain(memory: Memory, limits: Limits) -> Brain:
        net = Net({Step.SUB: SubnetState(react(FunctionLLM(reply)), fork=fork)})
        return Brain(net, memory, [look], limits=limits, stuck=StuckPolicy())

    memory = MessagesMemory(journal=journal)
    async with memory, brain(memory, limits).stream("go") as run:
        stuck = [event.at.path async for event in run if isinstance(event, StuckDetected)]
    before = len(asked)
    over.append(True)
    async with MessagesMemory(journal=journal) as memory:
        result = await brain(memory, Limits()).resume()
    if limits == Limits():  # the net around goes on with what the subnet has found
        assert stuck == [("SUB",)] * 2
        assert run.result.stop_reason == "done"
        assert (len(asked), result.answer) == (before, "nothing")
    else:
        assert run.result.stop_reason.startswith("max_")
        assert (len(asked), result.answer) == (before + 1, "seen enough")
