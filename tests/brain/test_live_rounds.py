"""The events of a round of tool calls stream when they happen."""

from __future__ import annotations

import threading
from typing import Any

import anyio
import pytest

from agent_brain import Brain, MessagesMemory, react, tool
from agent_brain.memories import RamJournal
from agent_brain.states import (
    ActionFinished,
    ActionRequested,
    ActionStarted,
    ToolProgress,
)
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action, report_progress

pytestmark = [pytest.mark.anyio, pytest.mark.also_on_trio]


class Kitchen:
    """A fast tool, and a slow one that continues when the reader of the stream allows it."""

    def __init__(self) -> None:
        self.go_on = anyio.Event()

        @tool
        async def quick() -> str:
            """Return at once."""
            return "quick"

        @tool
        async def slow() -> str:
            """Report, wait, return."""
            report_progress(1, 2, "half of it")
            await self.go_on.wait()
            return "slow"

        self.tools = [quick, slow]


def asks(*names: str) -> ScriptedLLM:
    return ScriptedLLM([[Action(name=name, id=name) for name in names], "Done."])


@pytest.mark.parametrize("durable", [False, True])
async def test_the_end_of_a_quick_call_comes_while_a_slow_one_runs(durable: bool) -> None:
    kitchen = Kitchen()
    memory = MessagesMemory(kitchen.tools, journal=RamJournal() if durable else None)
    seen: list[tuple[str, str]] = []
    with anyio.fail_after(60):
        async with Brain(react(asks("slow", "quick")), memory).stream("go") as run:
            async for event in run:
                if isinstance(event, ActionStarted | ActionFinished | ToolProgress):
                    seen.append((event.kind, event.action.id))
                if len(seen) == 4:  # both began, one has reported, the quick one has finished
                    kitchen.go_on.set()
    assert sorted(seen[:4]) == [
        ("action_finished", "quick"),
        ("action_started", "quick"),
        ("action_started", "slow"),
        ("tool_progress", "slow"),
    ]
    assert seen[4:] == [("action_finished", "slow")]
    results = [m.content for m in await memory.dump() if m.role == "tool"]
    assert results == ["slow", "quick"]  # recorded in the order of the calls


async def test_a_call_starts_after_it_was_asked_for_and_before_it_ends() -> None:
    kitchen = Kitchen()
    kitchen.go_on.set()
    async with Brain(react(asks("quick", "slow")), tools=kitchen.tools).stream("go") as run:
        kinds = [
            (type(event), event.action.id)
            async for event in run
            if isinstance(event, ActionRequested | ActionStarted | ActionFinished)
        ]
    for name in ("quick", "slow"):
        order = [kind for kind, call in kinds if call == name]
        assert order == [ActionRequested, ActionStarted, ActionFinished]


async def test_one_call_at_a_time_starts_when_the_one_before_has_ended() -> None:
    kitchen = Kitchen()
    kitchen.go_on.set()
    net = react(asks("slow", "quick", "slow2"), max_concurrency=1)
    seen = []
    async with Brain(net, tools=kitchen.tools).stream("go") as run:
        async for event in run:
            if isinstance(event, ActionStarted | ActionFinished):
                seen.append((event.kind.removeprefix("action_"), event.action.id))
    assert seen == [
        ("started", "slow"),
        ("finished", "slow"),
        ("started", "quick"),
        ("finished", "quick"),
        ("started", "slow2"),
        ("finished", "slow2"),
    ]


async def test_progress_comes_from_a_thread_while_it_works() -> None:
    seen_by_reader = threading.Event()

    @tool
    def dig() -> str:
        """Dig."""
        report_progress(1, 2, "digging")
        assert seen_by_reader.wait(60)
        return "a hole"

    progress: list[Any] = []
    async with Brain(react(asks("dig")), tools=[dig]).stream("go") as run:
        async for event in run:
            if isinstance(event, ToolProgress):
                progress.append(event)
                seen_by_reader.set()
    assert [(p.done, p.total, p.message) for p in progress] == [(1, 2, "digging")]
    assert run.result.answer == "Done."


async def test_a_reader_that_falls_behind_loses_old_progress_and_nothing_else() -> None:
    @tool
    async def count() -> str:
        """Count."""
        for n in range(5000):
            report_progress(n)
        return "counted"

    events = []
    async with Brain(react(asks("count", "count2")), tools=[count]).stream("go") as run:
        async for event in run:
            events.append(event)
    told = [event.done for event in events if isinstance(event, ToolProgress)]
    assert len(told) < 300
    assert told == sorted(told)
    assert told[-1] == 4999
    assert sum(isinstance(event, ActionStarted) for event in events) == 2
    assert sum(isinstance(event, ActionFinished) for event in events) == 2


async def test_a_run_that_nobody_watches_has_the_same_result() -> None:
    kitchen = Kitchen()
    kitchen.go_on.set()
    result = await Brain(react(asks("slow", "quick")), tools=kitchen.tools).run("go")
    assert [m.content for m in result.messages[2:]] == ["slow", "quick", "Done."]


@pytest.mark.parametrize("durable", [False, True])
async def test_a_brain_tool_runs_concurrently_with_other_calls(durable: bool) -> None:
    kitchen = Kitchen()
    expert = Brain(react(ScriptedLLM([["I ", "know."]] * 2))).as_tool("expert", "Knows.")
    memory = MessagesMemory([*kitchen.tools, expert], journal=RamJournal() if durable else None)
    calls = [Action(name="slow", id="slow")]
    calls += [Action(name="expert", args={"task": "Tell."}, id=f"expert{n}") for n in (1, 2)]
    llm = ScriptedLLM([calls, "Done."])
    seen: list[tuple[str, str]] = []
    with anyio.fail_after(60):
        async with Brain(react(llm), memory).stream("go") as run:
            async for event in run:
                if isinstance(event, ActionStarted | ActionFinished) and not event.path:
                    seen.append((event.kind.removeprefix("action_"), event.action.id))
                if ("finished", "expert1") in seen and ("finished", "expert2") in seen:
                    kitchen.go_on.set()  # the slow call runs all the while
    assert sorted(seen[:3]) == [("started", "expert1"), ("started", "expert2"), ("started", "slow")]
    assert seen[-1] == ("finished", "slow")
    results = [m.content for m in await memory.dump() if m.role == "tool"]
    assert results == ["slow", "I know.", "I know."]
    assert memory.control.spent.tool_calls == 3
