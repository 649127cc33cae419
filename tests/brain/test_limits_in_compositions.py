"""Limits and budgets hold in branches, items and nested brains, and are never their errors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import anyio
import pytest

from agent_brain import (
    LLM,
    Brain,
    Limits,
    Memory,
    Message,
    MessagesMemory,
    Net,
    ParallelState,
    StopReason,
    UsageBudget,
    UsageLedger,
    react,
    tool,
)
from agent_brain.errors import InputNeeded, LimitCheckError
from agent_brain.nets import MapState, SubnetState
from agent_brain.states import FunctionState, GuardedState, Hook, StreamItem, ToolRequest, Usage
from agent_brain.states.concurrency import Report, Together
from agent_brain.states.models.llm import Piece
from agent_brain.states.tool_round import ToolRound
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from tests.brain.nets import Endless, Steps, add, single
from tests.support.clock import fake_clock

pytestmark = [pytest.mark.anyio, pytest.mark.also_on_trio]


class Dollar(LLM):
    """A model whose calls cost a dollar each and say what they were asked."""

    def __init__(self) -> None:
        self.model = "dollar"
        self.asked: list[str] = []

    async def stream(
        self, messages: Sequence[Any], *, tools: Sequence[Any] = (), output_type: Any = None
    ) -> AsyncIterator[Piece]:
        self.asked.append(messages[-1].content)
        await anyio.lowlevel.checkpoint()
        yield f"about {messages[-1].content}"
        yield Usage(1, 1, cost=1.0)


def ask_each(llm: LLM) -> Callable[[int], Any]:
    return lambda item: llm.call([Message.user(str(item))])


def net_of(llm: LLM, body: str, count: int, **options: Any) -> Net:
    made = ask_each(llm) if body == "function" else react(llm)
    return single(MapState(lambda memory: range(count), made, **options))


FORMS = [(body, limit) for body in ("function", "net") for limit in ("max_cost", "budget")]


def limited(net: Net, memory: Memory, limit: str, dollars: float) -> Brain:
    if limit == "max_cost":
        return Brain(net, memory, limits=Limits(max_cost=dollars))
    return Brain(net, memory, hooks=[UsageLedger([UsageBudget("run", cost=dollars)])])


@pytest.mark.parametrize(("body", "limit"), FORMS)
@pytest.mark.parametrize("on_item_error", ["raise", "collect"])
async def test_a_limit_ends_a_map_and_a_resumed_run_pays_for_the_rest_only(
    body: str, limit: str, on_item_error: str
) -> None:
    llm, joined = Dollar(), []

    def join(memory: Memory, results: Sequence[Any]) -> str:
        joined.append([result.error for result in results])
        return " ".join(result.value for result in results)

    net = net_of(llm, body, 8, max_concurrency=2, on_item_error=on_item_error, join=join)
    memory = MessagesMemory()
    result = await limited(net, memory, limit, 3).run("go")

    assert result.stop_reason == limit
    assert len(llm.asked) in (3, 4)  # the limit, and what was in flight
    assert joined == []

    result = await limited(net, memory, limit, 100).resume()
    assert (result.stop_reason, joined) == (StopReason.DONE, [[None] * 8])
    assert sorted(llm.asked) == [str(item) for item in range(8)]


@pytest.mark.parametrize("body", ["function", "net"])
async def test_a_map_of_fifty_items_costs_at_most_the_limit_and_what_is_in_flight(
    body: str,
) -> None:
    llm = Dollar()
    result = await Brain(net_of(llm, body, 50), limits=Limits(max_cost=3)).run("go")
    assert result.stop_reason is StopReason.MAX_COST
    assert len(llm.asked) <= 3 + 10


async def test_parallel_branches_beyond_the_default_concurrency_do_not_begin_at_a_limit() -> None:
    llm = Dollar()
    net = single(ParallelState([react(llm) for _ in range(40)]))
    result = await Brain(net, limits=Limits(max_tokens=6)).run("go")
    assert result.stop_reason is StopReason.MAX_TOKENS
    assert len(llm.asked) <= 3 + 10


async def test_an_item_that_does_not_begin_gets_no_memory_and_no_goal() -> None:
    goals: list[int] = []

    def goal(item: int) -> str:
        goals.append(item)
        return str(item)

    net = single(MapState(lambda m: range(9), react(Dollar()), goal=goal, max_concurrency=1))
    await Brain(net, limits=Limits(max_cost=2)).run("go")
    assert goals == [0, 1]


async def test_calls_of_one_step_stop_at_a_limit_and_those_that_run_are_completed() -> None:
    llm = Dollar()
    calls = [ask_each(llm)(number) for number in range(6)]
    seen: list[str] = []

    async def think(memory: Memory) -> AsyncIterator[StreamItem]:
        try:
            yield Together(calls, max_concurrency=2)
        except Exception as error:
            seen.append(repr(error))

    brain = Brain(single(FunctionState(think)), limits=Limits(max_cost=1))
    result = await brain.run("go")
    assert (result.stop_reason, seen) == (StopReason.MAX_COST, [])
    assert len(llm.asked) == 2
    assert result.usage.cost == 2.0  # the second one was completed


async def test_a_function_of_a_step_does_not_begin_at_a_limit() -> None:
    begun: list[str] = []

    async def note(report: Report) -> None:
        begun.append("begun")

    async def think(memory: Memory) -> AsyncIterator[StreamItem]:
        yield Together([*map(ask_each(Dollar()), range(2)), note], max_concurrency=1)

    result = await Brain(single(FunctionState(think)), limits=Limits(max_cost=1)).run("go")
    assert (result.stop_reason, begun) == (StopReason.MAX_COST, [])


@pytest.mark.parametrize("limit", ["max_cost", "budget"])
async def test_no_guard_retry_or_error_edge_takes_a_limit_for_an_error(limit: str) -> None:
    llm, handled = Dollar(), []

    async def think(memory: Memory) -> AsyncIterator[StreamItem]:
        for number in range(5):
            yield ask_each(llm)(number)

    def ignore(memory: Memory, error: Exception) -> bool:
        handled.append(error)
        return True

    guarded = GuardedState(
        FunctionState(think), retries=3, backoff=0, on_error=ignore, retry_on=Exception
    )

    async def rescue(memory: Memory) -> str:
        return "rescued"

    net = Net(
        {Steps.ONE: guarded, Steps.TWO: FunctionState(rescue)},
        on_error={Steps.ONE: Steps.TWO},
    )
    result = await limited(net, MessagesMemory(), limit, 2).run("go")
    assert (result.stop_reason, handled, len(llm.asked)) == (limit, [], 2)


async def test_a_fallback_may_call_the_model_that_reached_the_limit() -> None:
    llm = Dollar()

    async def think(memory: Memory) -> AsyncIterator[StreamItem]:
        for number in range(5):
            yield ask_each(llm)(number)

    async def close(memory: Memory) -> AsyncIterator[StreamItem]:
        yield ask_each(llm)(99)

    net = Net(
        {Steps.ONE: FunctionState(think, on_done=Steps.TWO), Steps.TWO: FunctionState(close)},
        fallback=Steps.TWO,
    )
    result = await Brain(net, limits=Limits(max_cost=2)).run("go")
    assert (result.stop_reason, result.answer) == (StopReason.MAX_COST, "about 99")


async def test_a_strict_limit_that_cannot_count_a_call_is_not_the_error_of_an_item() -> None:
    llm = ScriptedLLM([["a", Usage(1, 1)], ["b", Usage(1, 1)]])
    net = single(MapState(lambda m: [1, 2], react(llm), on_item_error="collect"))
    with pytest.raises(LimitCheckError, match="max_cost"):
        await Brain(net, limits=Limits(max_cost=1, strict=True)).run("go")


# Tool calls


def counting() -> tuple[Any, list[int]]:
    ran: list[int] = []

    @tool
    async def work(n: int) -> str:
        """Work."""
        ran.append(n)
        await anyio.lowlevel.checkpoint()
        return "done"

    return work, ran


def caller(count: int = 1) -> Net:
    def turn(messages: Any) -> list[Any]:
        return [Action(name="work", args={"n": n}) for n in range(count)]

    return react(ScriptedLLM([turn, "ok"] * 50))


def branches(kind: str, count: int, calls: int = 1) -> Net:
    if kind == "parallel":
        return single(ParallelState([caller(calls) for _ in range(count)], max_concurrency=None))
    return single(MapState(lambda memory: range(count), caller(calls), max_concurrency=None))


@pytest.mark.parametrize("kind", ["parallel", "map"])
@pytest.mark.parametrize(("limit", "calls", "expected"), [(1, 1, 1), (7, 1, 7), (7, 3, 6)])
async def test_no_call_beyond_max_tool_calls_runs_in_branches(
    kind: str, limit: int, calls: int, expected: int
) -> None:
    work, ran = counting()
    net = branches(kind, 20, calls)
    brain = Brain(net, tools=[work], limits=Limits(max_tool_calls=limit))
    result = await brain.run("go")
    assert result.stop_reason is StopReason.MAX_TOOL_CALLS
    assert len(ran) == brain.memory.control.spent.tool_calls == expected


async def test_no_call_beyond_max_tool_calls_runs_in_nested_brains() -> None:
    work, ran = counting()
    inner = Brain(caller(), tools=[work])
    asked = [Action(name="inner", args={"task": str(n)}) for n in range(6)]
    llm = ScriptedLLM([asked, "ok"])
    tools = [inner.as_tool("inner", "Works.")]
    brain = Brain(react(llm), tools=tools, limits=Limits(max_tool_calls=9))
    result = await brain.run("go")
    assert result.stop_reason is StopReason.MAX_TOOL_CALLS
    assert len(ran) == 3  # six calls of inner, and three inside


async def test_a_state_that_asks_and_runs_in_one_step_keeps_to_the_limit() -> None:
    work, ran = counting()

    async def do_all(memory: Memory) -> AsyncIterator[StreamItem]:
        for number in range(5):
            memory.control.request_calls([Action(name="work", args={"n": number})])
            yield ToolRound(memory, "DoAll")

    brain = Brain(single(FunctionState(do_all)), tools=[work], limits=Limits(max_tool_calls=3))
    result = await brain.run("go")
    assert (result.stop_reason, ran) == (StopReason.MAX_TOOL_CALLS, [0, 1, 2])


async def test_a_branch_that_fails_gives_the_places_of_its_calls_back() -> None:
    work, ran = counting()
    left = ["first"]

    class Breaks(Hook):
        def before_tool_call(self, request: ToolRequest) -> None:
            if left and request.action.args["n"] == 0:
                raise KeyError(left.pop())

    net = single(
        MapState(lambda memory: range(3), caller(2), max_concurrency=1, on_item_error="collect")
    )
    brain = Brain(net, tools=[work], limits=Limits(max_tool_calls=2), hooks=[Breaks()])
    assert (await brain.run("go")).stop_reason is StopReason.DONE
    assert ran.count(0) == 1  # of the last item


async def test_results_that_are_counted_do_not_count_again_when_a_round_continues() -> None:
    work, ran = counting()

    @tool
    async def which() -> str:
        """Ask."""
        raise InputNeeded("Which?")

    asked = [Action(name="which"), Action(name="work", args={"n": 1})]
    llm = ScriptedLLM([asked, "ok"])
    brain = Brain(react(llm), tools=[work, which], limits=Limits(max_tool_calls=2))
    assert (await brain.run("go")).stop_reason is StopReason.INPUT
    assert (await brain.resume(input="this")).stop_reason is StopReason.DONE
    assert (ran, brain.memory.control.spent.tool_calls) == ([1], 2)


# The limits of a brain inside


def outer_with(inner: Brain, *turns: Any, **options: Any) -> tuple[Brain, ScriptedLLM]:
    llm = ScriptedLLM([[Action(name="inner", args={"task": "?"})], *turns])
    return Brain(react(llm), tools=[inner.as_tool("inner", "Helps.")], **options), llm


def always(turn: Any) -> list[Any]:
    return [turn] * 50


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (Limits(max_steps=3), "max_steps"),
        (Limits(max_tool_calls=2), "max_tool_calls"),
        (Limits(max_cost=0.25), "max_cost"),
        (Limits(max_tokens=5), "max_tokens"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
async def test_a_nested_brain_ends_at_its_own_limit_and_the_run_around_it_continues(
    limits: Limits, reason: str
) -> None:
    turn = [Usage(2, 1, cost=0.2), Action(name="add", args={"a": 1, "b": 1})]
    inner = Brain(react(ScriptedLLM(always(turn))), tools=[add], limits=limits, stuck=None)
    brain, _ = outer_with(inner, [Action(name="inner", args={"task": "again"})], "Enough.")
    result = await brain.run("go")
    assert (result.stop_reason, result.answer) == (StopReason.DONE, "Enough.")
    told = [m.content for m in result.messages if m.tool_call_id]
    assert len(told) == 2  # each call counts from its own start
    assert all(f"was stopped early: {reason}" in text for text in told)


async def test_the_tighter_limit_is_that_of_the_run_around_a_nested_brain() -> None:
    turn = [Usage(2, 1, cost=0.2), Action(name="add", args={"a": 1, "b": 1})]
    inner = Brain(
        react(ScriptedLLM(always(turn))), tools=[add], limits=Limits(max_steps=50), stuck=None
    )
    brain, _ = outer_with(inner, "Enough.", limits=Limits(max_steps=7))
    result = await brain.run("go")
    assert (result.stop_reason, result.steps) == (StopReason.MAX_STEPS, 7)


async def test_the_limit_of_a_brain_in_the_middle_ends_that_and_not_the_run() -> None:
    call = [Action(name="add", args={"a": 1, "b": 1})]
    deepest = Brain(react(ScriptedLLM(always(call))), tools=[add], stuck=None)
    middle = Brain(
        react(ScriptedLLM([[Action(name="deepest", args={"task": "?"})], "never"])),
        tools=[deepest.as_tool("deepest", "Works.")],
        limits=Limits(max_tool_calls=4),
    )
    brain, llm = outer_with(middle, "Enough.")
    result = await brain.run("go")
    assert (result.stop_reason, result.answer) == (StopReason.DONE, "Enough.")
    assert "stopped early: max_tool_calls" in llm.calls[-1].messages[-1].content
    assert brain.memory.control.spent.tool_calls == 1 + 4


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_nested_brain_that_is_out_of_its_time_is_stopped_and_the_run_continues(
    streamed: bool,
) -> None:
    left: list[str] = []

    async def wait(memory: Memory) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            left.append("left")

    inner = Brain(single(FunctionState(wait)), limits=Limits(timeout=0.01))
    brain, llm = outer_with(inner, "Enough.")
    with fake_clock():
        if streamed:
            async with brain.stream("go") as run:
                async for _ in run:
                    pass
            result = run.result
        else:
            result = await brain.run("go")
    assert (result.stop_reason, result.answer, left) == (StopReason.DONE, "Enough.", ["left"])
    assert "stopped early: timeout" in llm.calls[-1].messages[-1].content


async def test_the_fallback_of_a_nested_brain_answers_at_its_own_limit() -> None:
    async def sum_up(memory: Memory) -> str:
        return "so far"

    net = Net(
        {Steps.ONE: Endless(), Steps.TWO: FunctionState(sum_up)},
        fallback=Steps.TWO,
    )
    inner = Brain(net, limits=Limits(max_steps=2), stuck=None)
    brain, llm = outer_with(inner, "Enough.")
    assert (await brain.run("go")).answer == "Enough."
    assert "so far" in llm.calls[-1].messages[-1].content


async def test_a_subnet_on_a_fork_is_stopped_in_the_middle_of_a_step() -> None:
    llm = Dollar()

    async def think(memory: Memory) -> AsyncIterator[StreamItem]:
        for number in range(5):
            yield ask_each(llm)(number)

    net = single(SubnetState(single(FunctionState(think)), fork=True))
    result = await Brain(net, limits=Limits(max_cost=2)).run("go")
    assert (result.stop_reason, len(llm.asked)) == (StopReason.MAX_COST, 2)
