"""Agents that the tests of protocols serve."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from agent_brain import Brain
from agent_brain.serving.sessions import Sessions
from agent_brain.serving.web.app import make_app
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import BaseTool, tool
from agent_brain.tools.builtin import ask_user
from tests.support.web_server import served


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(requires_approval=True)
def pay(amount: int) -> dict[str, int]:
    """Pay an amount."""
    return {"paid": amount}


TOOLS: list[BaseTool] = [add, pay, ask_user]


@contextmanager
def agent_server(script: Iterable[Any], **options: Any) -> Iterator[str]:
    """Serve an agent whose model says ``script``; ``options`` are those of ``make_app``."""
    options.setdefault("show_tools", True)
    with brain_server(Brain("react", tools=TOOLS, llm=ScriptedLLM(script)), **options) as url:
        yield url


@contextmanager
def brain_server(brain: Brain[Any], **options: Any) -> Iterator[str]:
    """Serve ``brain``; ``options`` are those of ``make_app``, and ``journal``."""
    sessions = Sessions(brain, journal=options.pop("journal", None))
    with served(make_app(sessions, **options)) as url:
        yield url
