"""Stored sessions for the tests of ``agent-brain sessions``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio

from agent_brain import Brain, Message, tool
from agent_brain.memories import Journal, MessagesMemory, SummaryMemory
from agent_brain.memories.journal.opening import open_journal
from agent_brain.states import Usage
from agent_brain.testing import ScriptedLLM, Turn
from agent_brain.tools import Action


@tool
def look(number: int) -> str:
    """Look something up."""
    return f"seen {number}"


@tool(requires_approval=True)
def send(to: str) -> str:
    """Send a letter."""
    return "sent"


def turns(number: int) -> list[Turn]:
    """A call and an answer: the steps are the question, the call, its result, the answer."""
    used = Usage(input_tokens=100, output_tokens=10, cost=0.01)
    return [[Action(name="look", args={"number": number}), used], [f"answer {number}", used]]


def summarizing(**options: Any) -> SummaryMemory:
    """A memory whose summary counts what it was given."""

    async def summarize(summary: str, messages: list[Message]) -> str:
        return f"{summary} {len(messages)}"

    return SummaryMemory(summarize=summarize, **options)


async def converse(
    place: str | Path | Journal,
    session: str = "ann",
    count: int = 1,
    *,
    script: Sequence[Turn] | None = None,
    memory: Callable[..., Any] = MessagesMemory,
    question: str = "question",
    **options: Any,
) -> list[int]:
    """Hold a conversation of ``count`` questions; return the numbers of its steps."""
    journal = place if isinstance(place, Journal) else open_journal(place)
    opened = memory(journal=journal, session=session, **options)
    llm = ScriptedLLM(script or [turn for number in range(count) for turn in turns(number)])
    brain = Brain("react", opened, [look, send], llm=llm)
    for number in range(count):
        await brain.run(Message.user(f"{question} {number}"))
    steps = [step.number for step in await opened.steps()]
    if journal is not place:
        await journal.aclose()
    return steps


def store(path: Path, *args: Any, **options: Any) -> list[int]:
    """As :func:`converse`, outside of an event loop."""

    async def run() -> list[int]:
        return await converse(path, *args, **options)

    return anyio.run(run)
