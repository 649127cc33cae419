"""Agents that the tests of protocols serve."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from agent_brain import Brain
from agent_brain.serving.sessions import Sessions
from agent_brain.serving.web.app import make_app
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import BaseTool, ToolContext, tool
from agent_brain.tools.builtin import ask_user
from tests.support.web_server import served


class Ask(Enum):
    """The state of a net that asks others."""

    BOTH = "both"


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(requires_approval=True)
def pay(amount: int) -> dict[str, int]:
    """Pay an amount."""
    return {"paid": amount}


@tool
def fail() -> str:
    """Fail."""
    raise ValueError("out of paper")


@tool
async def about_the_request(context: ToolContext) -> Any:
    """Return what the client sent with the task."""
    goal = (await context.memory.goal())[-1]
    return {"user": context.deps.user, **goal.metadata}


class Seat(BaseModel):
    """What is asked for in a form."""

    row: int = Field(ge=1, le=30)
    side: Literal["window", "aisle"] = "aisle"


@tool
def reserve(context: ToolContext) -> str:
    """Reserve a seat: asks for a form, then for a number that may be left open."""
    seat = context.ask("Which seat?", Seat)
    return f"{seat.row} {seat.side}, tip {context.ask('Which tip?', int | None)}"


TOOLS: list[BaseTool] = [add, pay, fail, about_the_request, ask_user]


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent that is being served.

    Attributes:
        url: The URL of the server.
        sessions: Its sessions.
        llm: The model, if it plays a script.
    """

    url: str
    sessions: Sessions
    llm: ScriptedLLM = field(default_factory=ScriptedLLM)


@contextmanager
def agent_server(
    script: Iterable[Any], *, tools: Iterable[BaseTool] = (), **options: Any
) -> Iterator[Agent]:
    """Serve an agent whose model says ``script``; ``options`` are those of ``make_app``."""
    options.setdefault("show_tools", True)
    llm = ScriptedLLM(script)
    with brain_server(Brain("react", tools=[*TOOLS, *tools], llm=llm), **options) as agent:
        yield Agent(agent.url, agent.sessions, llm)


@contextmanager
def brain_server(
    brain: Brain[Any], *, journal: Path | None = None, **options: Any
) -> Iterator[Agent]:
    """Serve ``brain``; ``options`` are those of ``make_app``."""
    sessions = Sessions(brain, journal=journal)
    with served(make_app(sessions, **options)) as url:
        yield Agent(url, sessions)


def eventually(condition: Callable[[], object]) -> bool:
    """Return whether ``condition`` becomes true within ten seconds, in another thread."""
    end = time.monotonic() + 60
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)
    return bool(condition())
