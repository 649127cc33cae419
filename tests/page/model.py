"""A model and tools that wait where a test wants to look at the page."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

from agent_brain.memories.message import Message
from agent_brain.states.models.llm import LLM, Piece
from agent_brain.tools import BaseTool

PATIENCE = 60.0  # seconds


class Pause:
    """A place where a model or a tool waits, on the loop of the server, for the test."""

    def __init__(self) -> None:
        self._reached = threading.Event()
        self._released = False
        self._go: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def wait(self) -> None:
        """Wait until the test calls :meth:`release`."""
        self._loop, self._go = asyncio.get_running_loop(), asyncio.Event()
        self._reached.set()
        if not self._released:
            await self._go.wait()

    def wait_until_reached(self) -> None:
        """Wait, in the test, until somebody waits here."""
        assert self._reached.wait(PATIENCE), "nobody has come to the pause"

    def release(self) -> None:
        """Let whoever waits here continue, now or later."""
        if self._released:
            return
        self._released = True
        if self._loop is not None and self._go is not None:
            self._loop.call_soon_threadsafe(self._go.set)


Step = Piece | Pause | Exception


class Script(LLM):
    """A model that plays turns, one for each call, and waits at each :class:`Pause` in them."""

    model = "scripted/model"
    supports_tools = True

    def __init__(self, *turns: Iterable[Step]) -> None:
        self._turns = iter(turns)
        self.asked: list[list[Message]] = []

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[BaseTool] = (),
        output_type: Any = None,
    ) -> AsyncIterator[Piece]:
        """Play the next turn."""
        self.asked.append(list(messages))
        for step in next(self._turns):
            if isinstance(step, Pause):
                await step.wait()
            elif isinstance(step, Exception):
                raise step
            else:
                yield step


def words(start: int, end: int) -> list[str]:
    """Return pieces of text that show whether one is missing, doubled or in the wrong place."""
    return [f"w{number} " for number in range(start, end)]
