"""An answer is kept if its own model call reaches a limit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Literal

import pytest

from agent_brain import Brain, Limits, Memory, ParallelState, State, StopReason, react
from agent_brain.errors import StateCancelledError
from agent_brain.nets import refact, self_consistency
from agent_brain.states import RunFailed, Usage
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from tests.brain.nets import add, single

pytestmark = [pytest.mark.anyio, pytest.mark.also_on_trio]

ASK = Action(name="add", args={"a": 1, "b": 1})


@pytest.mark.parametrize("limits", [Limits(max_tokens=10), Limits(max_cost=0.5)])
@pytest.mark.parametrize("net", [react, refact])
async def test_the_answer_is_passed_on(limits: Limits, net: Any) -> None:
    llm = ScriptedLLM([["It is.", Usage(5, 5, cost=0.5)]])
    result = await Brain(net(llm), limits=limits).run("go")
    assert (result.stop_reason, result.answer) == (StopReason.DONE, "It is.")


async def test_a_further_model_call_is_not_made() -> None:
    llm = ScriptedLLM([["It is.", Usage(5, 5)], ["never"]])
    other = ScriptedLLM(["never"])
    net = react(llm, answer_llm=other)
    result = await Brain(net, limits=Limits(max_tokens=10)).run("go")
    assert result.stop_reason is StopReason.MAX_TOKENS
    assert not other.calls


async def test_a_round_of_tools_is_not_begun() -> None:
    llm = ScriptedLLM([[ASK, Usage(5, 5)], ["never"]])
    result = await Brain(react(llm), tools=[add], limits=Limits(max_tokens=10)).run("go")
    assert result.stop_reason is StopReason.MAX_TOKENS
    assert "was not run: the limit of tokens was reached" in result.messages[-1].content


async def test_answers_that_are_there_are_counted() -> None:
    llm = ScriptedLLM([["The answer is 5.", Usage(1, 1)]] * 3)
    net = self_consistency(llm, paths=3)
    result = await Brain(net, limits=Limits(max_tokens=6)).run("What is 2 + 3?")
    assert (result.stop_reason, result.answer) == (StopReason.DONE, "The answer is 5.")


class AwaitsWhatItCancelled(State):
    """Cancels its own task and awaits it without catching the cancellation."""

    def __init__(self, where: str) -> None:
        self.where = where

    async def _stumble(self, where: str) -> None:
        if where == self.where:
            task = asyncio.get_running_loop().create_task(asyncio.sleep(60))
            task.cancel()
            await task

    async def on_enter(self, memory: Memory) -> None:
        await self._stumble("on_enter")

    async def run(self, memory: Memory) -> AsyncIterator[str]:
        yield "begun"
        await self._stumble("run")

    async def next_state(self, memory: Memory) -> Literal[None]:
        await self._stumble("next_state")
        return None


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("where", ["on_enter", "run", "next_state"])
async def test_a_state_that_awaits_its_own_cancelled_task_fails_and_is_not_cancelled(
    where: str,
) -> None:
    brain = Brain(single(AwaitsWhatItCancelled(where)))
    events = []

    async def read() -> None:
        async with brain.stream("go") as run:
            async for event in run:
                events.append(event)

    with pytest.raises(StateCancelledError, match="AwaitsWhatItCancelled"):
        await read()
    assert isinstance(events[-1], RunFailed)
    assert brain.memory.control.stop_reason == "failed"


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_in_a_branch_it_fails_too() -> None:
    stumbles, fine = single(AwaitsWhatItCancelled("run")), single(AwaitsWhatItCancelled(""))
    with pytest.raises(StateCancelledError):
        await Brain(single(ParallelState([stumbles, fine]))).run("go")
