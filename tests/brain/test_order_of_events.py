"""The order of events where a step is written with what comes next."""

from __future__ import annotations

from collections.abc import AsyncIterator
from enum import Enum
from typing import Any, Literal

import anyio
import pytest

from agent_brain import Brain, Limits, Memory, Message, MessagesMemory, Net, State, tool
from agent_brain.memories import RamJournal
from agent_brain.states import ActionState, Hook, ToolRequest
from agent_brain.stuck import StuckPolicy
from agent_brain.tools import Action

pytestmark = pytest.mark.anyio


class Asking(Enum):
    ASK = "ask"
    ACT = "act"
    FALL_BACK = "fall back"


class Ask(State):
    """Requests a call."""

    async def run(self, memory: Memory) -> AsyncIterator[str]:
        said = "Asking again." if any(m.tool_calls for m in await memory.turn()) else "Asking."
        yield said
        call = Action(name="look", args={})
        await memory.update([Message.assistant(said, tool_calls=[call])])
        memory.control.request_calls([call])

    async def next_state(self, memory: Memory) -> Literal[Asking.ACT]:
        return Asking.ACT


class FallBack(State):
    """Says one text."""

    async def run(self, memory: Memory) -> AsyncIterator[str]:
        yield "Falling back."

    async def next_state(self, memory: Memory) -> None:
        return None


@tool
def look() -> str:
    """Look."""
    return "seen"


OPTIONS: dict[str, dict[str, Any]] = {
    "a limit": {"limits": Limits(max_steps=1)},
    "a refused round": {"limits": Limits(max_tool_calls=1, max_steps=None)},
    "a run that repeats itself": {"stuck": StuckPolicy(threshold=2, hints=0)},
}


async def events_over(memory: Memory, options: dict[str, Any]) -> list[tuple[str, str | None]]:
    states = {
        Asking.ASK: Ask(),
        Asking.ACT: ActionState(Asking.ASK),
        Asking.FALL_BACK: FallBack(),
    }
    net = Net(states, fallback=Asking.FALL_BACK, allow=["no_exit"])
    brain = Brain(net, memory, **options)
    found: list[tuple[str, str | None]] = []
    await read(brain, found)
    return found


async def read(brain: Brain, found: list[tuple[str, str | None]]) -> None:
    async with brain.stream("go") as run:
        async for event in run:
            found.append((event.kind, event.at.state))


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
async def test_a_fallback_state_is_entered_before_its_text(options: dict[str, Any]) -> None:
    events = await events_over(MessagesMemory([look], journal=RamJournal()), options)
    assert events == await events_over(MessagesMemory([look]), options)
    entered = events.index(("state_entered", "FALL_BACK"))
    assert entered < events.index(("text_delta", "FALL_BACK"))


async def test_a_round_that_fails_at_once_is_told_before_the_failure() -> None:
    class Guard(Hook):
        def needs_approval(self, request: ToolRequest) -> bool:
            raise ValueError("nobody knows")

    async def events_of(memory: Memory) -> list[tuple[str, str | None]]:
        states = {Asking.ASK: Ask(), Asking.ACT: ActionState()}
        found: list[tuple[str, str | None]] = []
        with pytest.raises(ValueError, match="nobody knows"):
            await read(Brain(Net(states), memory, hooks=[Guard()]), found)
        return found

    expected = await events_of(MessagesMemory([look]))
    assert ("state_entered", "ACT") in expected
    assert await events_of(MessagesMemory([look], journal=RamJournal())) == expected


@pytest.mark.parametrize("timeout", [None, 5])
async def test_a_step_is_told_to_its_end_before_a_cancelled_run(timeout: float | None) -> None:
    class Cancels(Hook):
        run: Any = None

        async def needs_approval(self, request: ToolRequest) -> bool:
            self.run.cancel()
            await anyio.sleep_forever()
            return True

    async def events_of(memory: Memory) -> list[tuple[str, str | None]]:
        hook = Cancels()
        net = Net({Asking.ASK: Ask(), Asking.ACT: ActionState()})
        brain = Brain(net, memory, hooks=[hook], limits=Limits(timeout=timeout))
        async with brain.stream("go") as run:
            hook.run = run
            return [(event.kind, event.at.state) async for event in run]

    expected = await events_of(MessagesMemory([look]))
    assert ("state_entered", "ACT") in expected
    assert await events_of(MessagesMemory([look], journal=RamJournal())) == expected
