"""Research: several searches at once, one report, and a person who says whether it is published.

Run it with::

    python examples/research.py

Without a model in ``AGENT_BRAIN_MODEL`` scripts answer in its place. The run is kept in
``research.db`` while it waits for the person: end the program and start it again, and it asks the
same question. The report is written to ``report.txt``.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum
from pathlib import Path
from typing import Literal

import anyio

from agent_brain import (
    LLM,
    AnswerState,
    Brain,
    LiteLLM,
    Memory,
    MessagesMemory,
    Net,
    Run,
    State,
    react,
)
from agent_brain.errors import ResumeError
from agent_brain.nets import ParallelState
from agent_brain.states import Ask, StreamItem
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action, tool

QUESTION = "Publish this report?"
TOPICS = ("history", "prices")
LIBRARY = {
    "history": "Oslo was founded around 1048 and burned down in 1624.",
    "prices": "Rents in Oslo rose by 4 % last year.",
}


@tool
def search(topic: str) -> str:
    """Search the library.

    Args:
        topic: One word, such as "history".
    """
    return LIBRARY.get(topic, "Nothing found.")


class Study(Enum):
    RESEARCH = "research"
    WRITE = "write"
    PUBLISH = "publish"


class Publish(State):
    """Ask a person, then write the report to a file. The model has no part in this."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        publish = Ask(QUESTION, bool)
        yield publish
        if publish.value:
            report = (await memory.dump())[-1].content
            await anyio.Path(self.path).write_text(report, encoding="utf-8")
            yield f"Published as {self.path.name}."
        else:
            yield "Not published."

    async def next_state(self, memory: Memory) -> Literal[None]:
        return None


def research(searchers: dict[str, LLM], writer: LLM, path: Path) -> Net:
    """Build the net: one branch for each topic, at the same time, then a report from all."""
    branches = {
        topic: react(llm, prompt=f"Find out about the {topic} of what the user asks for. Search.")
        for topic, llm in searchers.items()
    }
    return Net(
        {
            Study.RESEARCH: ParallelState(branches, on_error="report", on_done=Study.WRITE),
            Study.WRITE: AnswerState(
                writer, ask=True, prompt="Write one paragraph.", on_done=Study.PUBLISH
            ),
            Study.PUBLISH: Publish(path),
        }
    )


def models() -> tuple[dict[str, LLM], LLM]:
    """Return the model that ``AGENT_BRAIN_MODEL`` names for all, or scripts."""
    if name := os.environ.get("AGENT_BRAIN_MODEL"):
        return dict.fromkeys(TOPICS, LiteLLM(name)), LiteLLM(name)
    searchers: dict[str, LLM] = {
        topic: ScriptedLLM([Action(name="search", args={"topic": topic}), LIBRARY[topic]])
        for topic in TOPICS
    }
    return searchers, ScriptedLLM(["Oslo, founded around 1048, is getting dearer."])


async def show(run: Run) -> None:
    """Print what happens, each state and each branch under its name."""
    async with run:
        async for event in run:
            if event.kind == "state_entered" and not event.path:
                print(f"\n--- {event.state}")
            elif event.kind == "action_finished":
                print(f"[{event.path[-1]}] {event.action.name}: {event.result.content}")
            elif event.kind == "text_delta" and not event.path and not event.thought:
                print(event.text, end="", flush=True)
            elif event.kind == "input_requested":
                print(event.prompt)


@asynccontextmanager
async def kept() -> AsyncIterator[Brain]:
    """Open the run that ``research.db`` holds, or a new one."""
    net = research(*models(), path=Path("report.txt"))
    async with (
        MessagesMemory([search], journal="research.db") as memory,
        Brain(net, memory) as brain,
    ):
        yield brain


async def ask() -> None:
    """Work until the person is asked, or repeat the question of an earlier start."""
    async with kept() as brain:
        if brain.memory.control.status == "waiting":
            print((await brain.memory.dump())[-1].content, QUESTION, sep="\n")
        else:
            await show(brain.stream("Report on Oslo."))


async def finish(answer: str) -> None:
    """Continue with what the person said."""
    async with kept() as brain:
        try:
            await show(brain.stream_resume(input=answer))
        except ResumeError as error:  # it still waits
            print(error)
        print()


def main() -> None:
    try:
        anyio.run(ask)
        answer = input("yes or no> ")  # no event loop runs meanwhile: Ctrl-C ends the wait
        anyio.run(finish, answer)
    except (EOFError, KeyboardInterrupt):
        print("\nEnded. A report that waits is kept in research.db: start the program again.")


if __name__ == "__main__":
    main()
