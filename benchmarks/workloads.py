"""What is measured: runs of the library, and hand-written loops ("floors") that do the same work.

A floor is a plain async loop with the same event objects and no framework. Only public names are
used, so that the same code measures older commits.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from enum import Enum
from typing import Any, Literal

from agent_brain import LLM, Brain, Limits, Message, MessagesMemory, Net, State, react, tool
from agent_brain.memories import RamJournal
from agent_brain.states import Event, Position, StateEntered, StateExited, TextDelta
from agent_brain.tools import Action, BaseTool

UNLIMITED = Limits(max_steps=None)


class Two(Enum):
    A = "a"
    B = "b"


class Hop(State):
    """Does nothing, a given number of times."""

    def __init__(self, other: Two, hops: int) -> None:
        self.other = other
        self.hops = hops

    async def run(self, memory: Any) -> AsyncIterator[str]:
        for _ in range(0):
            yield ""

    async def next_state(self, memory: Any) -> Two | None:
        return self.other if memory.control.step < self.hops else None


class Talk(State):
    """Streams a given number of chunks."""

    def __init__(self, chunks: int, *, turn_of_the_loop: bool) -> None:
        self.chunks = chunks
        self.turn_of_the_loop = turn_of_the_loop

    async def run(self, memory: Any) -> AsyncIterator[str]:
        if self.turn_of_the_loop:
            for _ in range(self.chunks):
                await asyncio.sleep(0)
                yield "word "
        else:
            for _ in range(self.chunks):
                yield "word "

    async def next_state(self, memory: Any) -> Literal[None]:
        return None


class FloorMemory:
    def __init__(self) -> None:
        self.step = 0


async def floor_hops(hops: int) -> None:
    """The floor of a transition: states, a table and two events a step."""
    states = {Two.A: Hop(Two.B, hops), Two.B: Hop(Two.A, hops)}

    class Shim:
        control = FloorMemory()

    memory = Shim()

    async def loop() -> AsyncIterator[Event]:
        key: Two | None = Two.A
        while key is not None:
            at = Position("run", memory.control.step, key.name)
            yield StateEntered(at=at)
            async for chunk in states[key].run(memory):
                yield TextDelta(chunk, at=at)
            key = await states[key].next_state(memory)
            memory.control.step += 1
            yield StateExited(None if key is None else key.name, at=at)

    async for _ in loop():
        pass


async def ours_hops(hops: int) -> None:
    net = Net({Two.A: Hop(Two.B, hops), Two.B: Hop(Two.A, hops)})
    async with Brain(net, limits=UNLIMITED).stream("go") as run:
        async for _ in run:
            pass


async def floor_chunks(chunks: int, turn_of_the_loop: bool) -> float:
    state = Talk(chunks, turn_of_the_loop=turn_of_the_loop)

    async def loop() -> AsyncIterator[Event]:
        at = Position("run", 0, "A")
        yield StateEntered(at=at)
        async for chunk in state.run(None):
            yield TextDelta(chunk, at=at)
        await state.next_state(None)
        yield StateExited(None, at=at)

    start = time.perf_counter()
    first = 0.0
    async for event in loop():
        if not first and type(event) is TextDelta:
            first = time.perf_counter() - start
    return first


async def ours_chunks(chunks: int, turn_of_the_loop: bool) -> float:
    brain = Brain(Net({Two.A: Talk(chunks, turn_of_the_loop=turn_of_the_loop)}), limits=UNLIMITED)
    start = time.perf_counter()
    first = 0.0
    async with brain.stream("go") as run:
        async for event in run:
            if not first and type(event) is TextDelta:
                first = time.perf_counter() - start
    return first


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Counting(LLM):
    """Requests ``add(k, 1)`` until k is ``turns``; takes k from the messages that it is sent."""

    def __init__(self, turns: int, pause: float = 0.0) -> None:
        self.turns = turns
        self.pause = pause

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[BaseTool] = (),
        output_type: Any = None,
    ) -> AsyncIterator[Any]:
        if self.pause:
            await asyncio.sleep(self.pause)
        last = messages[-1].content
        k = int(last) if last.isdigit() else 0
        if k < self.turns:
            yield Action(name="add", args={"a": k, "b": 1})
        else:
            for _ in range(10):
                yield "word "


class Bare:
    """The memory of a hand-written loop: a list."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
        self.call: dict[str, Any] | None = None


async def bare_model(
    messages: list[dict[str, Any]], turns: int, pause: float
) -> AsyncIterator[Any]:
    if pause:
        await asyncio.sleep(pause)
    last = messages[-1]["content"]
    k = int(last) if last.isdigit() else 0
    if k < turns:
        yield {"id": f"call_{k}", "name": "add", "args": json.dumps({"a": k, "b": 1})}
    else:
        for _ in range(10):
            yield "word "


class BareReasoning:
    def __init__(self, turns: int, pause: float) -> None:
        self.turns = turns
        self.pause = pause

    async def run(self, memory: Bare) -> AsyncIterator[str]:
        text = ""
        memory.call = None
        async for piece in bare_model(memory.messages, self.turns, self.pause):
            if isinstance(piece, str):
                text += piece
                yield piece
            else:
                memory.call = piece
        memory.messages.append({"role": "assistant", "content": text, "call": memory.call})

    async def next_state(self, memory: Bare) -> str | None:
        return "act" if memory.call else None


class BareAction:
    async def run(self, memory: Bare) -> AsyncIterator[str]:
        call = memory.call
        assert call is not None
        result = str(await bare_add(**json.loads(call["args"])))
        memory.messages.append({"role": "tool", "id": call["id"], "content": result})
        yield result

    async def next_state(self, memory: Bare) -> str | None:
        return "reason"


async def bare_add(a: int, b: int) -> int:
    return a + b


async def floor_react(turns: int, pause: float = 0.0) -> None:
    """Reason and act with dicts and a list, written by hand."""
    states: dict[str, Any] = {"reason": BareReasoning(turns, pause), "act": BareAction()}
    memory = Bare()

    async def loop() -> AsyncIterator[str]:
        key: str | None = "reason"
        while key is not None:
            async for chunk in states[key].run(memory):
                yield chunk
            key = await states[key].next_state(memory)

    async for _ in loop():
        pass
    assert len(memory.messages) == 2 * turns + 2


async def floor_many(runs: int) -> None:
    await asyncio.gather(*(floor_react(2, 0.01) for _ in range(runs)))


async def ours_react(turns: int) -> None:
    brain = Brain(react(Counting(turns)), tools=[add], limits=UNLIMITED)
    result = await brain.run("go")
    assert result.steps == 2 * turns + 2, result


async def ours_recorded(turns: int) -> None:
    """The same as :func:`ours_react` over a journal in RAM: what recording costs without a disk."""
    memory = MessagesMemory([add], journal=RamJournal())
    result = await Brain(react(Counting(turns)), memory, limits=UNLIMITED).run("go")
    assert result.steps == 2 * turns + 2, result


async def ours_many(runs: int) -> None:
    net = react(Counting(2, pause=0.01))

    async def one() -> None:
        result = await Brain(net, MessagesMemory([add])).run("go")
        assert result.answer == "word " * 10

    await asyncio.gather(*(one() for _ in range(runs)))
