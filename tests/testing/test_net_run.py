"""Running one net alone, and states that delegate to other nets."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from agent_brain import Limits, Memory, Message, Net, StopReason, react
from agent_brain.nets import ParallelState, SubnetState
from agent_brain.states import FunctionState, GuardedState, StateEntered
from agent_brain.testing import FakeMemory, ScriptedLLM, run_net, run_state
from agent_brain.tools import Action
from tests.brain.nets import Endless, Fail, Hang, Say, Steps, add, single

pytestmark = pytest.mark.anyio

ADD = Action(name="add", args={"a": 1, "b": 2})


async def test_a_net_is_run_from_a_goal_to_its_end() -> None:
    llm = ScriptedLLM([["Let me ", "see. ", ADD], "It is 3."])
    run = await run_net(react(llm), "What is 1 + 2?", tools=[add])
    assert run.path == ["REASONING", "ACTION", "REASONING", "ANSWER"]
    assert (run.chunks, run.text) == (["Let me ", "see. ", "It is 3."], "Let me see. It is 3.")
    assert run.result is not None
    assert (run.result.answer, run.result.stop_reason) == ("It is 3.", StopReason.DONE)
    assert [event.kind for event in run.events][:2] == ["run_started", "state_entered"]


async def test_a_plain_dict_is_a_net() -> None:
    assert (await run_net({Steps.ONE: Say("hi")}, "go")).text == "hi"


async def test_a_preloaded_memory_is_used_as_it_is() -> None:
    asked = Message.assistant("", tool_calls=[ADD])
    memory = FakeMemory("What is 1 + 2?", [asked], tools=[add], next_actions=[ADD])
    llm = ScriptedLLM(["It is 3."])
    net = react(llm)
    run = await run_net(
        net.replace(initial=next(k for k in net.states if k.name == "ACTION")), memory
    )
    assert run.path == ["ACTION", "REASONING", "ANSWER"]
    memory.assert_messages(
        [asked, Message.tool("3", ADD, name="add"), Message.assistant("It is 3.")]
    )
    memory.assert_goal("What is 1 + 2?")


async def test_a_goal_starts_a_new_turn_on_a_memory() -> None:
    memory = FakeMemory("first", [Message.assistant("one")])
    await run_net(single(Say("two")), memory, goal="second")
    memory.assert_messages([Message.user("first"), Message.assistant("one")])
    memory.assert_goal("second")


async def test_two_goals_are_refused() -> None:
    with pytest.raises(TypeError, match="two goals"):
        await run_net(single(Say("x")), "one", goal="two")  # type: ignore[call-overload]


async def test_limits_end_a_run() -> None:
    run = await run_net(single(Endless()), "go", max_steps=3)
    assert run.result is not None
    assert (run.result.stop_reason, run.path) == (StopReason.MAX_STEPS, ["ONE"] * 3)


async def test_what_a_net_raises_is_raised_or_kept() -> None:
    with pytest.raises(KeyError, match="a bug"):
        await run_net(single(Fail()), "go")
    run = await run_net(single(Fail()), "go", check=False)
    assert isinstance(run.error, KeyError)
    assert (run.result, run.path, run.events[-1].kind) == (None, ["ONE"], "run_failed")


async def test_the_path_leaves_out_subnets_which_have_their_own() -> None:
    llm = ScriptedLLM([[ADD], "3"])
    run = await run_net(single(SubnetState(react(llm))), "go", tools=[add])
    assert run.path == ["ONE"]
    assert run.path_of("ONE") == ["REASONING", "ACTION", "REASONING", "ANSWER"]


# --- states that delegate, run alone ---


async def test_a_subnet_runs_inside_a_state_that_is_run_alone() -> None:
    llm = ScriptedLLM([[ADD], "It is 3."])
    memory = FakeMemory("What is 1 + 2?", tools=[add])
    run = await run_state(SubnetState(react(llm), on_done=Steps.TWO), memory)
    assert (run.text, run.next_state) == ("It is 3.", Steps.TWO)
    places = [(event.path, event.state) for event in run.of(StateEntered)]
    inside = ("SubnetState",)
    assert places == [(inside, s) for s in ("REASONING", "ACTION", "REASONING", "ANSWER")]
    assert [m.content for m in await memory.dump()] == ["", "3", "It is 3."]


async def test_a_subnet_on_a_fork_adds_only_its_answer() -> None:
    memory = FakeMemory("What is 1 + 2?", tools=[add])
    state = SubnetState(react(ScriptedLLM([[ADD], "3"])), fork=True, goal="a part of it")
    await run_state(state, memory)
    memory.assert_updated(Message.assistant("3"))
    memory.assert_goal("What is 1 + 2?")


async def test_parallel_branches_run_on_forks_and_are_joined() -> None:
    def of_branch(text: str) -> Net:
        async def note(memory: Memory) -> str:
            await memory.update([Message.assistant(f"only {text} knows")])
            return text

        return single(FunctionState(note))

    memory = FakeMemory("go")
    branches = {"left": of_branch("l"), "right": of_branch("r")}
    run = await run_state(ParallelState(branches), memory)
    assert (run.text, sorted(run.thoughts)) == ("left: l\n\nright: r", ["l", "r"])
    memory.assert_updated(Message.assistant("left: l\n\nright: r"))
    paths = {event.path for event in run.of(StateEntered)}
    assert paths == {("ParallelState", "left"), ("ParallelState", "right")}


async def test_a_failing_branch_cancels_the_others() -> None:
    noted: list[str] = []
    memory = FakeMemory("go")
    state = ParallelState({"bad": single(Fail()), "good": single(Hang(noted))})
    with pytest.raises(KeyError, match="a bug"):
        await run_state(state, memory)
    assert noted == ["left", "exited"]
    memory.assert_not_updated()


async def test_a_failing_branch_may_be_reported() -> None:
    state = ParallelState({"bad": single(Fail()), "good": single(Say("fine"))}, on_error="report")
    run = await run_state(state, FakeMemory("go"))
    assert run.text == "bad: failed: 'a bug'\n\ngood: fine"


async def test_an_endless_subnet_ends_at_the_default_limit() -> None:
    run = await run_state(SubnetState(single(Endless())), FakeMemory("go"))
    assert len(run.of(StateEntered)) == Limits().max_steps


async def test_a_guard_around_a_delegating_state_changes_nothing() -> None:
    state = GuardedState(SubnetState(single(Say("hi"))), timeout=5)
    assert (await run_state(state, FakeMemory("go"))).text == "hi"


async def test_no_exported_name_is_a_module() -> None:
    kit = import_module("agent_brain.testing")
    modules = [name for name in kit.__all__ if type(getattr(kit, name)) is type(kit)]
    assert modules == []
    missing: Any = getattr(kit, "nothing", None)
    assert missing is None
