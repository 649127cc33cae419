"""A brain as a tool of another brain."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from agent_brain import Brain, Limits, Memory, StopReason, react, tool
from agent_brain.memories import Role
from agent_brain.states import ActionFinished, FunctionState, TextDelta, Usage
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action, ToolError, Toolset
from tests.brain.nets import HangingLLM, add, single

pytestmark = pytest.mark.anyio


def helper(*turns: Any, **options: Any) -> Brain:
    return Brain(react(ScriptedLLM(turns)), **options)


def ask(task: str, name: str = "expert") -> Action:
    return Action(name=name, args={"task": task})


async def results(memory: Memory) -> list[str]:
    return [m.content for m in await memory.dump() if m.role is Role.TOOL]


async def test_its_answer_is_the_result_and_its_events_carry_its_path():
    inner = helper([Usage(5, 5), Action(name="add", args={"a": 1, "b": 2})], ["three"], tools=[add])
    expert = inner.as_tool("expert", "Knows sums.")
    brain = Brain(react(ScriptedLLM([[ask("1+2?"), SUM], ["It is three."]])), tools=[expert, add])
    async with brain.stream("go") as run:
        events = [event async for event in run]
    assert await results(brain.memory) == ["three", "3"]
    assert run.result.answer == "It is three."
    assert [e.text for e in events if isinstance(e, TextDelta) and not e.thought] == [
        "It is three."
    ]
    inside = [e for e in events if e.path]
    assert {e.path for e in inside} == {("ACTION", "expert")}
    assert any(isinstance(e, ActionFinished) for e in inside)
    assert run.result.usage.input_tokens == 5
    assert brain.memory.control.spent.tool_calls == 3
    assert await inner.memory.dump() == []


SUM = Action(name="add", args={"a": 1, "b": 2})


async def test_several_calls_run_at_once_and_know_nothing_of_each_other():
    started = anyio.Event()

    class Meeting(ScriptedLLM):
        async def stream(self, messages: Any, **options: Any) -> AsyncIterator[Any]:
            self.calls.append(list(messages))  # type: ignore[arg-type]
            if len(self.calls) == 2:
                started.set()
            await started.wait()
            yield f"re: {messages[-1].content}"

    llm = Meeting()
    expert = Brain(react(llm)).as_tool("expert", "Knows all.")
    brain = Brain(react(ScriptedLLM([[ask("a"), ask("b")], ["done"]])), tools=[expert])
    async with brain.stream("go") as run:
        paths = {event.path async for event in run}
    assert await results(brain.memory) == ["re: a", "re: b"]
    assert paths >= {("ACTION", "expert"), ("ACTION", "expert#2")}


@pytest.mark.parametrize("limit", [1, 2])
async def test_no_more_of_them_run_at_once_than_max_concurrency_says(limit: int):
    now = most = 0

    async def work(memory: Memory) -> str:
        nonlocal now, most
        now += 1
        most = max(most, now)
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        now -= 1
        return "done"

    expert = Brain(single(FunctionState(work))).as_tool("expert", "Knows all.")
    calls = [*(ask(str(number)) for number in range(5)), SUM]
    net = react(ScriptedLLM([calls, "Done."]), max_concurrency=limit)
    brain = Brain(net, tools=[expert, add])
    await brain.run("go")
    assert most == limit
    assert await results(brain.memory) == [*["done"] * 5, "3"]


async def test_one_that_fails_is_reported_to_the_model():
    expert = helper(ValueError("no idea")).as_tool("expert", "Knows all.")
    brain = Brain(react(ScriptedLLM([[ask("a")], ["done"]])), tools=[expert])
    async with brain.stream("go") as run:
        [finished] = [e async for e in run if isinstance(e, ActionFinished)]
    assert finished.result.is_error
    assert isinstance(finished.exception, ValueError)
    assert finished.result.content.startswith("'expert' failed with ValueError: no idea")


async def test_its_usage_counts_towards_the_limits_of_the_run_that_calls():
    loop = [[Usage(10, 0), Action(name="add", args={"a": k, "b": 1})] for k in range(9)]
    expert = helper(*loop, tools=[add]).as_tool("expert", "Knows all.")
    brain = Brain(
        react(ScriptedLLM([[ask("a")], ["done"]])), tools=[expert], limits=Limits(max_tokens=30)
    )
    result = await brain.run("go")
    assert (result.stop_reason, result.usage.input_tokens) == (StopReason.MAX_TOKENS, 30)
    assert (await results(brain.memory))[0].endswith("['expert' was stopped early: max_tokens]")


async def test_cancelling_the_caller_ends_it():
    llm = HangingLLM()
    expert = Brain(react(llm)).as_tool("expert", "Knows all.")
    brain = Brain(react(ScriptedLLM([[ask("a")]])), tools=[expert])
    async with anyio.create_task_group() as group:
        group.start_soon(brain.run, "go")
        await llm.waiting.wait()
        group.cancel_scope.cancel()
    assert llm.closed == 1
    assert "interrupted" in (await results(brain.memory))[0]


async def test_it_may_be_renamed_denied_and_called_wrongly():
    expert = helper("x").as_tool("expert", "Knows all.", requires_approval=True)
    tools = Toolset([expert]).prefixed("my_")
    turns: list[Any] = [
        [Action(name="my_expert", args={"question": "a"}), ask("b", "my_expert")],
        ["done"],
    ]
    brain = Brain(react(ScriptedLLM(turns)), tools=[tools])
    assert (await brain.run("go")).stop_reason is StopReason.APPROVAL
    [waiting] = brain.memory.control.human_requests.approvals  # type: ignore[union-attr]
    await brain.resume(deny=[waiting])
    told = await results(brain.memory)
    assert "Invalid arguments for tool 'my_expert'" in told[0]
    assert "refused" in told[1]


async def test_outside_of_a_run_it_is_a_tool_like_others():
    expert = helper("one", "two").as_tool("expert", "Knows all.")
    assert await expert.invoke({"task": "a"}) == "one"
    limited = helper([SUM], tools=[add], limits=Limits(max_steps=1)).as_tool("expert", "Knows.")
    with pytest.raises(ToolError, match="stopped early, max_steps"):
        await limited.execute(task="a")


async def test_a_tool_may_call_a_brain():
    expert = helper("inner").as_tool("expert", "Knows all.")

    @tool
    async def indirect() -> Any:
        """Ask the expert."""
        return await expert.execute(task="a")

    brain = Brain(react(ScriptedLLM([[Action(name="indirect")], ["done"]])), tools=[indirect])
    await brain.run("go")
    assert await results(brain.memory) == ["inner"]
