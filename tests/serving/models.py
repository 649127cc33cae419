"""Models for tests of sessions: they wait where a test says."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import anyio

from agent_brain import LLM, Action, Message


class Gate:
    """Where a model waits until it is opened; on one event loop.

    Attributes:
        reached: How often it was reached.
        left: How often the wait was cancelled.
    """

    def __init__(self) -> None:
        self.reached = 0
        self.left = 0
        self._news = anyio.Event()
        self._open = anyio.Event()

    def open(self) -> None:
        """Let everybody through."""
        self._open.set()

    async def until_reached(self, times: int = 1) -> None:
        """Wait until it was reached so often."""
        while self.reached < times:
            await self._news.wait()

    async def wait(self) -> None:
        """Wait until it is open."""
        self.reached += 1
        self._news.set()
        self._news = anyio.Event()
        try:
            await self._open.wait()
        except BaseException:
            self.left += 1
            raise


class PartsLLM(LLM):
    """Answers each call with the same parts: texts, actions, exceptions, and gates to wait at."""

    supports_tools = True
    model = "parts"

    def __init__(self, *parts: Any) -> None:
        self.parts = parts
        self.asked: list[list[str]] = []

    async def stream(self, messages: Sequence[Message], **_: object) -> AsyncIterator[str | Action]:
        self.asked.append([message.content for message in messages])
        for part in self.parts:
            if isinstance(part, BaseException):
                raise part
            if isinstance(part, str | Action):
                yield part
            else:
                await part.wait()
        if end := self.ending(messages):
            yield end

    def ending(self, messages: Sequence[Message]) -> str:
        """What it says at the end; nothing."""
        return ""


class EchoLLM(PartsLLM):
    """Repeats the last message of the user, after ``parts``."""

    def ending(self, messages: Sequence[Message]) -> str:
        """What it says at the end."""
        return f"You said: {[m.content for m in messages if m.role == 'user'][-1]}"
