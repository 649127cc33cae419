"""A program for workers: agents whose tool leaves a trace that can be counted.

The environment says where: ``WORKERS_PLACE`` (the queue), ``WORKERS_TRACE`` (a file, to which each
call appends its session and key), ``WORKERS_VERSION`` and ``WORKERS_OPTIONS`` (of the queue).
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Sequence
from datetime import date, timedelta
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import anyio

from agent_brain import Brain, Memory, Message, State, tool
from agent_brain.memories import Role
from agent_brain.nets import Net, react
from agent_brain.states import LLM, Ask, FunctionState, Sleep, StreamItem
from agent_brain.tools import Action, ToolContext

CALLS = 3  # of a run


class Clerk(LLM):
    """Calls the tool ``CALLS`` times, then answers; slowly, as models do.

    A task may say how many seconds to ``pause`` before each word, and ``until`` which file is there.
    """

    model = "clerk"

    async def stream(
        self, messages: Sequence[Message], *, tools: Any = (), output_type: Any = None
    ) -> AsyncIterator[str | Action]:
        turn = [*messages]
        while turn and turn[0].role is not Role.USER:
            turn.pop(0)
        goal = max(at for at, message in enumerate(turn) if message.role is Role.USER)
        done = sum(message.role is Role.TOOL for message in turn[goal:])
        words = turn[goal].content.split()
        pause = float(words[words.index("pause") + 1]) if "pause" in words else 0.01
        awaited = anyio.Path(words[words.index("until") + 1] if "until" in words else "/")
        for word in ("I ", "am ", "working. "):
            await anyio.sleep(pause)
            while not await awaited.exists():  # noqa: ASYNC110 - of processes
                await anyio.sleep(0.01)
            yield word
        if "charge" in words and not done:
            yield Action(name="charge", args={"euros": 30})
        elif "fail" in words:
            raise ValueError("the clerk is ill")
        elif done < CALLS and "charge" not in words:
            yield Action(name="note", args={"number": done})
        else:
            yield f"Done after {done} calls."


def leave_trace(*what: Any) -> None:
    with Path(os.environ["WORKERS_TRACE"]).open("a") as trace:
        trace.write(json.dumps(what) + "\n")


@tool(idempotent=True)
async def note(number: int, context: ToolContext) -> str:
    """Leave a trace."""
    leave_trace(context.memory.session, number, context.key)
    await anyio.sleep(0.01)
    return f"noted {number}"


@tool(requires_approval=True)
def charge(euros: int) -> str:
    """Charge the customer."""
    leave_trace("charge", euros, "")
    return "charged"


class Nap(Enum):
    """The states of the agent that sleeps."""

    SLEEP = "sleep"
    TELL = "tell"


class Sleeper(State):
    """Sleeps for ``WORKERS_NAP`` seconds. It hangs before that, once, if the task says so."""

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        await hang_once(memory, "hang first")
        yield Sleep(timedelta(seconds=float(os.environ.get("WORKERS_NAP", "1"))))

    async def next_state(self, memory: Memory) -> Literal[Nap.TELL]:
        return Nap.TELL


class Teller(State):
    """Answers. It hangs before that, once, if the task says so."""

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        await hang_once(memory, "hang later")
        leave_trace("told", "", "")
        yield "It is time."

    async def next_state(self, memory: Memory) -> None:
        return None


async def book(memory: Memory) -> AsyncIterator[StreamItem]:
    """Ask for a day and a number, and answer."""
    day = Ask("Which day?", date)
    yield day
    guests = Ask("How many guests?", int)
    yield guests
    yield f"{guests.value} guests on {day.value:%d.%m.}"


class Booking(Enum):
    """The state of the agent that asks."""

    BOOK = "book"


async def hang_once(memory: Memory, task: str) -> None:
    """Wait for ever, if it is the task, and nobody has done so."""
    if (await memory.goal())[-1].content == task and not has_hung():
        leave_trace("hangs", "", "")
        await anyio.sleep_forever()


def has_hung() -> bool:
    path = Path(os.environ["WORKERS_TRACE"])
    return path.exists() and '"hangs"' in path.read_text()


def make_queue() -> Any:
    """Return the queue that the environment describes."""
    from agent_brain.workers import RunQueue

    return RunQueue(
        os.environ["WORKERS_PLACE"],
        {
            "clerk": Brain(react(Clerk()), "windowed", tools=[note, charge]),
            "asker": Brain(Net({Booking.BOOK: FunctionState(book)}), "windowed"),
            "sleeper": Brain({Nap.SLEEP: Sleeper(), Nap.TELL: Teller()}, "windowed"),
        },
        version=os.environ.get("WORKERS_VERSION", "1"),
        **json.loads(os.environ.get("WORKERS_OPTIONS", "{}")),
    )


def __getattr__(name: str) -> Any:
    if name != "queue":
        raise AttributeError(name)
    return make_queue()
