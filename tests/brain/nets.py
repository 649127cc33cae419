"""Small nets shared by the tests of the engine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from enum import Enum
from typing import Any, Literal

import anyio

from agent_brain import LLM, Memory, Net, State, tool
from agent_brain.states import Usage


class Steps(Enum):
    """States of the small nets."""

    ONE = 1
    TWO = 2
    THREE = 3


class Say(State):
    """Yields its text and proposes the next state."""

    def __init__(self, *chunks: str, then: Steps | None = None) -> None:
        self.chunks = chunks
        self.then = then

    async def run(self, memory: Memory) -> AsyncIterator[str]:
        for chunk in self.chunks:
            yield chunk

    async def next_state(self, memory: Memory) -> Enum | None:
        return self.then

    def targets(self) -> tuple[Enum | None]:
        return (self.then,)


class Hang(State):
    """Says one word, then waits until it is cancelled, and notes that it was."""

    def __init__(self, noted: list[str]) -> None:
        self.noted = noted

    async def run(self, memory: Memory) -> AsyncIterator[str]:
        try:
            yield "begun"
            await anyio.sleep_forever()
        finally:
            self.noted.append("left")

    async def on_exit(self, memory: Memory) -> None:
        await anyio.lowlevel.checkpoint()
        self.noted.append("exited")

    async def next_state(self, memory: Memory) -> Literal[None]:
        return None


class Fail(State):
    """Yields one word, then raises."""

    async def run(self, memory: Memory) -> AsyncIterator[str]:
        yield "begun"
        raise KeyError("a bug")

    async def next_state(self, memory: Memory) -> Literal[None]:
        return None


class Endless(State):
    """Loops for ever, with a new text in each step."""

    async def run(self, memory: Memory) -> AsyncIterator[str]:
        yield f"{memory.control.step} "

    async def next_state(self, memory: Memory) -> Literal[Steps.ONE] | None:
        return Steps.ONE


class HangingLLM(LLM):
    """Yields a word, then hangs; notes when it is closed."""

    model = "hanging"

    def __init__(self) -> None:
        self.closed = 0
        self.waiting = anyio.Event()

    async def stream(
        self, messages: Any, *, tools: Any = (), output_type: Any = None
    ) -> AsyncIterator[str | Usage]:
        try:
            yield "word"
            self.waiting.set()
            await anyio.sleep_forever()
        finally:
            self.closed += 1


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def single(state: State, **options: Any) -> Net:
    """A net of one state."""
    return Net({Steps.ONE: state}, **options)
