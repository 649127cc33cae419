"""How many Python calls the library makes: the same on every machine, so a change that adds some shows.

A list comprehension is a call before Python 3.12, so the numbers hold for 3.11.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from types import FrameType
from typing import Any

import pytest

from agent_brain import AutoMemory, Brain, Message, MessagesMemory, Net, WindowedMemory, react
from agent_brain.memories import RamJournal
from agent_brain.serving import Sessions
from agent_brain.serving.web import make_app
from benchmarks.workloads import UNLIMITED, Counting, Hop, Talk, Two, add

pytestmark = pytest.mark.skipif(sys.version_info >= (3, 12), reason="the numbers are for 3.11")


def calls(work: Callable[[], Awaitable[Any]]) -> int:
    """Return how many functions of the library are called, or continued, by ``work``."""
    counted = 0

    def profile(frame: FrameType, event: str, _: object) -> None:
        nonlocal counted
        module = frame.f_globals.get("__name__", "")
        counted += event == "call" and module.startswith("agent_brain")

    async def measure() -> None:
        gc.collect()  # what other tests have left would be closed meanwhile
        gc.disable()
        sys.setprofile(profile)
        try:
            await work()
        finally:
            sys.setprofile(None)
            gc.enable()

    asyncio.run(measure())
    return counted


def each(work: Callable[[int], Awaitable[Any]]) -> float:
    """Return the calls of one more of what ``work`` is told to do so many times of."""
    calls(lambda: work(2))  # what is done once in a process
    return (calls(lambda: work(22)) - calls(lambda: work(2))) / 20


async def steps(number: int) -> None:
    await Brain(react(Counting(number)), MessagesMemory([add]), limits=UNLIMITED).run("go")


async def turns(kind: type[MessagesMemory | AutoMemory], number: int) -> None:
    memory, net = kind([add]), react(Counting(1))
    for _ in range(number):
        await Brain(net, memory, limits=UNLIMITED).run("go")


async def durable_steps(number: int) -> None:
    memory = WindowedMemory([add], max_messages=10, journal=RamJournal(), history="all")
    await Brain(react(Counting(number)), memory, limits=UNLIMITED).run("go")


async def chunks(number: int) -> None:
    brain = Brain(Net({Two.A: Talk(number, turn_of_the_loop=False)}), limits=UNLIMITED)
    async for _ in brain.answer("go"):
        pass


async def transitions(number: int) -> None:
    brain = Brain(Net({Two.A: Hop(Two.B, number), Two.B: Hop(Two.A, number)}), limits=UNLIMITED)
    await brain.run("go")


async def appends(number: int) -> None:
    memory = MessagesMemory(journal=RamJournal())
    for _ in range(number):
        await memory.update([Message.user("text")])


async def served_chunks(number: int) -> None:
    """Let a server stream an answer to nowhere."""
    brain = Brain(Net({Two.A: Talk(number, turn_of_the_loop=False)}), limits=UNLIMITED)
    async with Sessions(brain) as sessions:
        await ask(make_app(sessions, user="ann"), "/sessions/s/runs")


async def ask(app: Any, path: str) -> None:
    body = [{"type": "http.request", "body": b'{"task": "go"}', "more_body": False}]

    async def receive() -> Any:
        return body.pop() if body else await asyncio.Event().wait()

    async def send(message: Any) -> None:
        assert message.get("status", 200) == 200

    head = {"type": "http", "method": "POST", "path": path, "query_string": b"", "scheme": "http"}
    json = [(b"content-type", b"application/json")]
    await app({**head, "headers": json, "server": ("127.0.0.1", 80)}, receive, send)


@pytest.mark.parametrize(
    ("work", "most"),
    [
        (steps, 109),
        (durable_steps, 228),
        (chunks, 6),
        (transitions, 4),
        (appends, 21),
        (served_chunks, 10),
    ],
)
def test_what_is_done_often_makes_no_more_calls(
    work: Callable[[int], Awaitable[Any]], most: float
) -> None:
    found = each(work)
    assert found <= most, f"{work.__name__}: {found} calls; if that is worth it, change the number"
    assert found > most - 3, f"{work.__name__}: only {found} calls: lower the number"


def test_what_fits_costs_at_most_a_tenth_more_in_the_memory_that_shows_less_by_itself() -> None:
    usual, auto = (each(partial(turns, kind)) for kind in (MessagesMemory, AutoMemory))
    assert auto <= 1.1 * usual
