"""Calls under way: progress, time, cancellation."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from agent_brain import Brain, Limits, Result
from agent_brain.states.events import ActionFinished, ToolProgress
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action, report_progress
from agent_brain.tools.context import ToolContext, current_call
from agent_brain.tools.mcp import McpTools
from tests.support.clock import clock_backend, fake_clock
from tests.tools.mcp.support import call, config, script, until

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.also_on_trio,
    pytest.mark.usefixtures("nothing_leaks"),
]


HOUR = 3600.0


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    return clock_backend(request.param)


def with_timeout(shared, seconds):
    """The shared tools, as a brain that gives their calls so much time sees them."""
    import copy

    tools = [copy.copy(tool) for tool in shared.tools]
    for tool in tools:
        tool.timeout = seconds
    return tools


async def late(brain: Brain, others: int = 0) -> Result:
    """Run until the server has begun to wait and the other calls have ended, then for an hour."""
    begun = ended = 0
    with fake_clock(threshold=60) as clock:
        async with brain.stream("Wait.") as run:
            async for event in run:
                begun += isinstance(event, ToolProgress)
                ended += isinstance(event, ActionFinished)
                if (begun, ended) == (1, others):
                    clock.advance(HOUR)
    return run.result


async def test_progress_becomes_events_before_the_call_is_finished(shared):
    actions = [Action(name="count", args={"to": 3}), Action(name="add", args={"a": 1, "b": 2})]
    model = ScriptedLLM([actions, "Done."])
    async with Brain(tools=shared.tools, llm=model).stream("Count.") as run:
        events = [event async for event in run]

    told = [event for event in events if isinstance(event, ToolProgress | ActionFinished)]
    told = [event for event in told if event.action.name == "count"]  # add may end at any moment
    assert [type(event).__name__ for event in told] == ["ToolProgress"] * 3 + ["ActionFinished"]
    assert [(e.done, e.total, e.message) for e in told if isinstance(e, ToolProgress)] == [
        (1, 3, "at 1"),
        (2, 3, "at 2"),
        (3, 3, "at 3"),
    ]
    assert told[0].to_dict() | {"run_id": "", "action": {}} == {
        "kind": "tool_progress",
        "run_id": "",
        "step": 1,
        "state": "ACTION",
        "path": [],
        "action": {},
        "done": 1.0,
        "total": 3.0,
        "message": "at 1",
    }


async def test_a_call_that_takes_too_long_is_cancelled_on_the_server(shared):
    model = ScriptedLLM([[Action(name="wait")], "Done."])
    result = await late(Brain(tools=with_timeout(shared, HOUR), llm=model))

    [answer] = [m for m in result.messages if m.role == "tool"]
    assert answer.content == "Tool 'wait' took longer than 3600 s and was stopped"
    assert (await call(shared, "was_cancelled")).content == "true"


async def test_a_server_that_never_answers_is_given_up_in_time():
    async with await McpTools.open([config(s=script("odd", "plain", timeout=0.2))]) as mcp:
        outcome = await call(mcp, "silence")

    assert outcome.content == "Tool 'silence' took longer than 0.2 s and was stopped"


async def test_cancelling_a_run_cancels_the_call_on_the_server(shared, monkeypatch):
    begun: list[Any] = []
    [wait] = [tool for tool in shared.tools if tool.name == "wait"]
    send = wait._send

    async def watched(tool, args, sink):
        return await send(tool, args, ToolContext(on_progress=begun.append))

    monkeypatch.setattr(wait, "_send", watched)
    brain = Brain(tools=shared.tools, llm=ScriptedLLM([[Action(name="wait")]]))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(brain.run, "Wait.")
        await until(lambda: begun)
        tasks.cancel_scope.cancel()

    assert (await call(shared, "was_cancelled")).content == "true"
    assert brain.memory.control.stop_reason == "cancelled"


async def test_a_run_that_is_out_of_time_cancels_the_call_on_the_server(shared):
    model = ScriptedLLM([[Action(name="wait")]])
    brain = Brain(tools=shared.tools, llm=model, limits=Limits(timeout=HOUR))

    result = await late(brain)

    assert result.stop_reason == "timeout"
    assert (await call(shared, "was_cancelled")).content == "true"


async def test_100_calls_at_once_are_answered_in_order(shared):
    actions = [Action(name="add", args={"a": n, "b": n}) for n in range(100)]
    model = ScriptedLLM([actions, "Done."])
    result = await Brain(tools=shared.tools, llm=model).run("Add.")

    answers = [m for m in result.messages if m.role == "tool"]
    assert [m.tool_call_id for m in answers] == [action.id for action in actions]
    assert [m.content for m in answers] == [str(2 * n) for n in range(100)]


async def test_a_slow_call_runs_out_of_time_alone(shared):
    add = Action(name="add", args={"a": 1, "b": 2})
    model = ScriptedLLM([[Action(name="wait"), add], "Done."])
    result = await late(Brain(tools=with_timeout(shared, HOUR), llm=model), others=1)

    answers = [m for m in result.messages if m.role == "tool"]
    assert [m.is_error for m in answers] == [True, False]


async def test_a_local_tool_reports_its_progress_too():
    def dig(depth: int) -> str:
        """Dig."""
        for metre in range(depth):
            report_progress(metre + 1, depth)
        return "dug"

    model = ScriptedLLM([[Action(name="dig", args={"depth": 2})], "Done."])
    async with Brain(tools=[dig], llm=model).stream("Dig.") as run:
        events = [event async for event in run if isinstance(event, ToolProgress)]

    assert [(event.done, event.total) for event in events] == [(1, 2), (2, 2)]
    assert current_call() is None


async def test_progress_streams_in_order(shared):
    model = ScriptedLLM([[Action(name="count", args={"to": 120})], "Done."])
    async with Brain(tools=shared.tools, llm=model).stream("Count.") as run:
        events = [event async for event in run if isinstance(event, ToolProgress)]

    assert [event.done for event in events] == [float(n) for n in range(1, 121)]
