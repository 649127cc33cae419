"""The original agent-brain, from a checkout (`--original`): its model's function is replaced.

Its limit of 10 steps is lifted, and the pause of 10 ms that it makes after each character of a
tool's result is left out.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from enum import Enum
from typing import Any

from agent_brain import BaseTool, Brain  # type: ignore[attr-defined,unused-ignore]
from agent_brain.net import State  # type: ignore[import-not-found,unused-ignore]
from agent_brain.net.react import action, answer, reasoning  # type: ignore[import-not-found,unused-ignore]

IMPORT = "from agent_brain import Brain"


class Add(BaseTool):  # type: ignore[misc,unused-ignore]
    def __init__(self) -> None:
        super().__init__("add", "Add two numbers.", {"a": "int", "b": "int"})

    async def execute(self, a: int, b: int) -> str:
        return str(a + b)


class NoSleep:
    """Stands for asyncio in the module of the state that acts."""

    @staticmethod
    async def sleep(seconds: float) -> None:
        return


action.asyncio = NoSleep


def install_model(turns: int, pause: float = 0.0, talk: int = 10) -> None:
    async def reason(model_name: str, messages: list[Any]) -> AsyncIterator[str]:
        if pause:
            await asyncio.sleep(pause)
        last = messages[-1].content
        k = int(last) if last.isdigit() else 0
        if k < turns:
            yield json.dumps({"name": "add", "args": {"a": k, "b": 1}})
        else:
            yield "Thought: done"

    async def talking(model_name: str, messages: list[Any]) -> AsyncIterator[str]:
        for _ in range(talk):
            if talk > 10:
                await asyncio.sleep(0)
            yield "word "

    reasoning.stream_response = reason
    answer.llm.stream_response = talking


async def run(turns: int) -> Any:
    brain = Brain("ReAct", "Messages", [Add()])
    brain.loop_limit = 1
    answer = []
    started = False
    async for line in brain.answer("go"):
        if not started:  # answer() sets the limit to 10 when it begins
            brain.loop_limit, started = 10 * turns + 10, True
        answer.append(line)
    assert len(answer) >= turns + 10
    return brain


async def react(turns: int) -> None:
    install_model(turns)
    await run(turns)


async def many(runs: int) -> None:
    install_model(2, 0.01)
    await asyncio.gather(*(run(2) for _ in range(runs)))


async def chunks(count: int) -> AsyncIterator[str]:
    install_model(0, talk=count)
    brain = Brain("ReAct", "Messages", [])
    async for line in brain.answer("go"):
        yield line


class Two(Enum):
    A = "a"
    B = "b"


class Hop(State):  # type: ignore[misc,unused-ignore]
    def __init__(self, other: Two, hops: int) -> None:
        self.other = other
        self.hops = hops

    async def run(self, memory: Any) -> AsyncIterator[str]:
        memory.step = getattr(memory, "step", 0) + 1
        if memory.step == 1:
            yield ""

    async def next_state(self, memory: Any) -> Two:
        memory.done = memory.step >= self.hops
        return self.other


async def hops(count: int) -> None:
    brain = Brain({Two.A: Hop(Two.B, count), Two.B: Hop(Two.A, count)}, "Messages", [])
    async for _ in brain.answer("go"):
        brain.loop_limit = count + 10
    assert brain.memory.step == count


async def sessions(count: int) -> Any:
    install_model(0)
    return [await run(0) for _ in range(count)]
