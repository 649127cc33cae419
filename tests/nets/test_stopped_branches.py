"""A limit that stops an inner net stops the run there, and a resumed run continues there."""

from __future__ import annotations

import pytest

from agent_brain import Brain, Limits, Memory, StopReason, react
from agent_brain.nets import Branch, ParallelState, SubnetState
from agent_brain.states import FunctionState, TextDelta
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from tests.brain.nets import Endless, Say, add, single

pytestmark = [pytest.mark.anyio, pytest.mark.also_on_trio]

CALL = [Action(name="add", args={"a": 1, "b": 1})]


async def test_the_run_is_not_done_when_its_last_subnet_was_stopped() -> None:
    brain = Brain(single(SubnetState(single(Endless()))), stuck=None, limits=Limits(max_steps=3))
    assert (await brain.run("go")).stop_reason is StopReason.MAX_STEPS


async def test_a_resumed_run_continues_inside_the_subnet_that_a_limit_stopped() -> None:
    llm = ScriptedLLM([CALL, "2"])
    brain = Brain(single(SubnetState(react(llm))), tools=[add], limits=Limits(max_steps=2))
    assert (await brain.run("go")).stop_reason is StopReason.MAX_STEPS
    brain.limits = Limits()
    result = await brain.resume()
    assert (result.answer, result.stop_reason) == ("2", StopReason.DONE)
    assert [m.content for m in result.messages] == ["go", "", "2", "2"]


async def test_a_stopped_subnet_on_a_fork_runs_again_and_adds_one_answer() -> None:
    llm = ScriptedLLM([CALL, CALL, "2"])
    net = single(SubnetState(react(llm), fork=True))
    brain = Brain(net, tools=[add], limits=Limits(max_steps=2))
    assert (await brain.run("go")).stop_reason is StopReason.MAX_STEPS
    brain.limits = Limits()
    assert [m.content for m in (await brain.resume()).messages] == ["go", "2"]


async def test_stopped_branches_are_joined_with_what_they_found_but_not_recorded() -> None:
    seen: list[list[bool]] = []

    def join(memory: Memory, branches: list[Branch]) -> str:
        seen.append([branch.completed for branch in branches])
        return "joined"

    branches = {"short": single(Say("x")), "long": single(Endless())}
    brain = Brain(single(ParallelState(branches, join=join)), stuck=None)  # type: ignore[arg-type]
    brain.limits = Limits(max_steps=5)
    result = await brain.run("go")
    assert (result.stop_reason, seen) == (StopReason.MAX_STEPS, [[True, False]])
    assert [m.content for m in result.messages] == ["go"]


async def test_a_subnet_as_thoughts_does_not_answer_for_its_state() -> None:
    brain = Brain(single(SubnetState(single(Say("hm")), as_thoughts=True)))
    texts = []
    async with brain.stream("go") as run:
        async for event in run:
            if isinstance(event, TextDelta):
                texts.append((event.text, event.thought))
    assert (texts, run.result.answer) == ([("hm", True)], "")


async def test_a_subnet_as_thoughts_on_a_fork_is_still_recorded() -> None:
    async def talk(memory: Memory) -> str:
        return "found"

    brain = Brain(single(SubnetState(single(FunctionState(talk)), as_thoughts=True, fork=True)))
    assert [m.content for m in (await brain.run("go")).messages] == ["go", "found"]


async def test_a_single_branch_of_a_parallel_state_is_said_once() -> None:
    result = await Brain(single(ParallelState({"only": single(Say("x"))}))).run("go")
    assert result.answer == "only: x"
