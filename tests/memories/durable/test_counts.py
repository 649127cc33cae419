"""Limits hold, and usage is counted once, although runs are killed in their branches."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from enum import Enum
from itertools import count
from typing import Any

import anyio
import pytest

from agent_brain import Brain, Limits, Memory, Message, MessagesMemory, State, react, tool
from agent_brain.memories import RamJournal
from agent_brain.nets import Net, ParallelState
from agent_brain.states import LLM, Usage
from agent_brain.tools import Action
from tests.support.clock import fake_clock
from tests.support.journals import Killed, MortalJournal

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]


class Step(Enum):
    ALL = "all"


class Endless(LLM):
    """Calls a tool again and again; a call costs a dollar."""

    model = "endless"

    def __init__(self, numbers: Any) -> None:
        self.numbers = numbers

    async def stream(
        self, messages: Sequence[Message], *, tools: Any = (), output_type: Any = None
    ) -> AsyncIterator[Action | Usage]:
        yield Action(name="look", args={"number": next(self.numbers)})
        yield Usage(1, 1, cost=1.0)


class Life:
    """A run of three agents without end, killed and resumed until a limit is reached."""

    def __init__(self, limits: Limits) -> None:
        self.limits, self.store = limits, RamJournal()
        self.looked = self.calls = 0
        self.numbers = count()
        self.result: Any = None

        @tool
        async def look(number: int) -> str:
            """Look."""
            self.looked += 1
            return f"seen {number}"

        self.tools = [look]

    def brain(self, memory: Memory) -> Brain:
        work = react(Endless(self.numbers))
        net = Net({Step.ALL: ParallelState([work, work, work])})
        return Brain(net, memory, self.tools, limits=self.limits)

    async def live(self, writes: int | None) -> bool:
        """Live until a number of writes; return whether the run has ended."""
        journal = MortalJournal(self.store, writes, after=True)
        try:
            async with MessagesMemory(journal=journal) as memory:
                brain = self.brain(memory)
                if memory.control.status == "ended":  # the last life was over after its end
                    self.result = await brain.stored_result()
                elif memory.control.run_id is not None:
                    self.result = await brain.resume()
                else:
                    self.result = await brain.run("go")
                self.calls = memory.control.spent.tool_calls
        except BaseException as error:
            if not (isinstance(error, Killed) or journal.dead):
                raise
            return False
        return True


LIMITS = [Limits(max_steps=15), Limits(max_tool_calls=7), Limits(max_cost=9.0)]


@pytest.mark.parametrize("limits", LIMITS, ids=["steps", "calls", "cost"])
async def test_limits_hold_although_the_run_is_killed_in_its_branches(limits: Limits) -> None:
    for every in (7, 12, 20):
        life, lives = Life(limits), 1
        while not await life.live(every):
            lives += 1
            assert lives < 40, "it does not get on"
        assert lives > 1
        result = life.result
        assert result.stop_reason.startswith("max_")
        assert life.looked - 3 * lives <= life.calls <= life.looked + 3 * lives
        if result.stop_reason == "max_steps":
            assert 15 <= result.steps <= 15 + 2
        elif result.stop_reason == "max_tool_calls":
            assert 7 - 3 < life.calls <= 7 + 2
        else:
            assert 9 <= result.usage.cost <= 9 + 2


class Waiting(Enum):
    FIRST = "first"
    SECOND = "second"


class Wait(State):
    """Waits for a second."""

    def __init__(self, then: Waiting | None, dies: MortalJournal | None = None) -> None:
        self.then = then
        self.dies = dies

    async def run(self, memory: Memory) -> AsyncIterator[str]:
        if self.dies is not None:
            self.dies.die()
            raise Killed
        await anyio.sleep(1)
        yield "waited"

    async def next_state(self, memory: Memory) -> Waiting | None:
        return self.then

    def targets(self) -> tuple[Waiting | None]:
        return (self.then,)


async def test_the_time_before_a_kill_counts() -> None:
    store = RamJournal()
    journal = MortalJournal(store)

    def brain(memory: Memory, dies: MortalJournal | None) -> Brain:
        states = {Waiting.FIRST: Wait(Waiting.SECOND), Waiting.SECOND: Wait(None, dies)}
        return Brain(Net(states), memory, limits=Limits(timeout=1.5))

    with fake_clock():
        with pytest.raises(Killed):
            await brain(MessagesMemory(journal=journal), journal).run("go")
        memory = MessagesMemory(journal=store)
        result = await brain(memory, None).resume()
    assert result.stop_reason == "timeout"
    assert memory.control.spent.seconds == pytest.approx(1.5, abs=0.1)
