"""Resuming the run that a memory holds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

import pytest
from pydantic import BaseModel, TypeAdapter

from agent_brain import (
    AnswerState,
    Brain,
    Limits,
    Memory,
    Message,
    MessagesMemory,
    Net,
    State,
    StopReason,
    react,
)
from agent_brain.errors import LLMServerError, ResumeError, TransitionError
from agent_brain.memories import RamJournal, Snapshot
from agent_brain.nets import SubnetState, create_net
from agent_brain.states import GuardedState, Plan, RunStarted, StateExited
from agent_brain.testing import ModelCall, ScriptedLLM
from agent_brain.tools import Action
from tests.brain.nets import Say, Steps, add, single
from tests.nets.models import FunctionLLM

pytestmark = pytest.mark.anyio


class City(BaseModel):
    name: str


def call(a: int) -> Action:
    return Action(name="add", args={"a": a, "b": 1})


async def test_after_an_error_the_same_state_is_tried_again() -> None:
    llm = ScriptedLLM([[call(1)], LLMServerError("down"), ["2"]])
    brain = Brain(react(llm), tools=[add])
    with pytest.raises(LLMServerError):
        await brain.run("go")
    result = await brain.resume()
    assert (result.answer, result.stop_reason, result.steps) == ("2", StopReason.DONE, 4)
    assert [m.content for m in result.messages] == ["go", "", "2", "2"]
    llm.assert_complete()


SPOKEN = "spoken, and in no message"


class Speak(State):
    async def run(self, memory: Memory) -> AsyncIterator[str]:
        yield SPOKEN

    async def next_state(self, memory: Memory) -> Literal[Steps.TWO]:
        return Steps.TWO


class Quiet(State):
    async def run(self, memory: Memory) -> AsyncIterator[str]:
        if memory.done:
            yield ""

    async def next_state(self, memory: Memory) -> None:
        return None


class Record(Quiet):
    async def run(self, memory: Memory) -> AsyncIterator[str]:
        yield "recorded"
        await memory.update([Message.assistant("recorded")])


@pytest.mark.parametrize("journal", [False, True])
@pytest.mark.parametrize(
    ("last", "answer"), [(Quiet(), SPOKEN), (Record(), "recorded"), (Say("more"), "more")]
)
@pytest.mark.parametrize("inside", [False, True])
async def test_what_was_said_and_not_recorded_is_the_answer_of_a_run_that_continues(
    journal: bool, last: State, answer: str, inside: bool
) -> None:
    net = Net({Steps.ONE: Speak(), Steps.TWO: last})
    if inside:
        net = single(SubnetState(net))
    store = RamJournal()

    def memory() -> MessagesMemory:
        return MessagesMemory(journal=store)

    used = memory() if journal else MessagesMemory()
    async with Brain(net, used).stream("go") as run:
        async for event in run:
            if isinstance(event, StateExited):
                run.stop()
    assert (run.result.answer, run.result.stop_reason) == (SPOKEN, StopReason.STOPPED)
    result = await Brain(net, memory() if journal else used).resume()
    assert (result.answer, result.stop_reason) == (answer, StopReason.DONE)


async def test_a_limit_stopped_run_continues_with_a_larger_limit() -> None:
    llm = ScriptedLLM([[call(1)], [call(2)], ["3"]])
    small = Brain(react(llm), tools=[add], limits=Limits(max_steps=2))
    first = await small.run("go")
    result = await Brain(react(llm), small.memory, limits=Limits(max_steps=20)).resume()
    assert (first.stop_reason, result.stop_reason) == (StopReason.MAX_STEPS, StopReason.DONE)
    assert result.run_id == first.run_id
    assert result.answer == "3"


async def test_a_snapshot_taken_half_way_resumes_elsewhere() -> None:
    llm = ScriptedLLM([[call(1)]])
    brain = Brain(react(llm), tools=[add])
    async with brain.stream("go") as run:
        async for event in run:
            if event.kind == "state_exited" and event.state == "ACTION":
                text = (await brain.memory.snapshot()).model_dump_json()
                break
    elsewhere = MessagesMemory([add])
    await elsewhere.restore(Snapshot.from_json(text))
    resumed = Brain(react(ScriptedLLM(["it is 2"])), elsewhere)
    async with resumed.stream_resume() as run:
        events = [event async for event in run]
    assert isinstance(events[0], RunStarted)
    assert events[0].resumed
    assert events[0].step == 2
    assert run.result.answer == "it is 2"


async def test_there_is_nothing_to_resume_on_a_new_memory() -> None:
    with pytest.raises(ResumeError, match="never started"):
        await Brain(react(ScriptedLLM())).resume()


async def test_a_run_that_had_reached_its_goal_gives_its_result_again() -> None:
    brain = Brain(react(ScriptedLLM(["yes"])))
    first = await brain.run("go")
    again = await brain.resume()
    assert (again.answer, again.stop_reason, again.steps) == ("yes", "done", first.steps)
    assert (again.run_id, again.messages) == (first.run_id, first.messages)
    with pytest.raises(ResumeError, match="does not wait for a person"):
        await brain.resume(approve=True)


async def test_another_net_cannot_continue_a_run() -> None:
    brain = Brain(react(ScriptedLLM([LLMServerError("down")])))
    with pytest.raises(LLMServerError):
        await brain.run("go")
    with pytest.raises(ResumeError, match=r"'REASONING'.*does not have"):
        await Brain(single(Say("x")), brain.memory).resume()


class Counts(State):
    """Counts in the memory, where run state belongs."""

    async def run(self, memory: Memory) -> AsyncIterator[str]:
        count = int(str(memory.control.scratch.get("count", 0))) + 1
        memory.control.scratch["count"] = count
        yield f"{count} "

    async def next_state(self, memory: Memory) -> Steps | None:
        return Steps.ONE if memory.control.scratch["count"] != 4 else None


async def test_scratch_lasts_for_a_run_and_is_empty_for_the_next() -> None:
    brain = Brain(Net({Steps.ONE: Counts()}), limits=Limits(max_steps=2))
    await brain.run("go")
    brain.limits = Limits(max_steps=10)
    assert (await brain.resume()).answer == "4 "
    assert "".join([chunk async for chunk in brain.answer("again")]) == "1 2 3 4 "


async def test_a_run_killed_just_before_its_end_is_finished_without_another_step() -> None:
    brain = Brain(react(ScriptedLLM(["yes"])))
    await brain.run("go")
    brain.memory.control.status = "running"  # as the journal has it when the last entry is missing
    result = await brain.resume()
    assert (result.stop_reason, result.answer, result.steps) == (StopReason.DONE, "yes", 2)


async def test_the_answer_given_before_a_kill_is_the_answer_after_it() -> None:
    brain = Brain(react(ScriptedLLM(["yes"])))
    async with brain.stream("go") as run:
        async for event in run:
            if event.kind == "state_exited" and event.state == "REASONING":
                break
    brain.memory.control.status = "running"
    assert (await brain.resume()).answer == "yes"


@dataclass
class Place:
    name: str
    since: date


@pytest.mark.parametrize(
    ("kind", "output"),
    [
        (City, City(name="Oslo")),
        (Place, Place("Oslo", date(1048, 1, 1))),
        (set[int], {1, 2}),
        (list[City], [City(name="Oslo")]),
    ],
    ids=str,
)
@pytest.mark.parametrize("net", ["react", "reflexion", "plan_execute", "self_consistency"])
async def test_the_output_is_an_object_after_a_crash_too(net: str, kind: Any, output: Any) -> None:
    written = TypeAdapter(kind).dump_json(output).decode()

    def reply(call: ModelCall) -> str:
        if call.output_type is Plan:
            return '{"steps": []}'
        return "Oslo." if call.output_type is None else written

    options: dict[str, Any] = {"evaluate": lambda *_: True} if net == "reflexion" else {}
    made = create_net(net, FunctionLLM(reply), output_type=kind, **options)
    brain = Brain(made)
    assert (await brain.run("Which?")).output == output
    kept = (await brain.memory.snapshot()).model_dump_json()

    memory = MessagesMemory()
    await memory.restore(Snapshot.model_validate_json(kept))
    memory.control.status = "running"  # as the journal has it when the last entry is missing
    result = await Brain(made, memory).resume()
    assert (result.output, type(result.output)) == (output, type(output))
    assert result.answer == written


class Unhashable(Say):
    async def next_state(self, memory: Memory) -> Any:
        return [Steps.ONE]


async def test_a_proposal_that_is_not_a_state_is_refused() -> None:
    with pytest.raises(TransitionError, match="proposed"):
        await Brain(single(Unhashable("x"))).run("go")


class DoneEarly(State):
    """Marks the goal as reached before its step is over, and fails in the first one."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures

    async def run(self, memory: Memory) -> AsyncIterator[str]:
        taken = memory.control.session["taken"] = memory.control.session.get("taken", 0) + 1
        memory.done = True
        yield "half "
        if taken <= self.failures:
            raise RuntimeError("boom")
        yield "whole"
        await memory.update([Message.assistant("half whole")])

    async def next_state(self, memory: Memory) -> Literal[None]:
        return None


async def test_a_step_that_failed_after_the_goal_was_reached_is_taken_again() -> None:
    brain = Brain(single(DoneEarly(failures=1)))
    with pytest.raises(RuntimeError, match="boom"):
        await brain.run("go")
    result = await brain.resume()
    assert (result.answer, result.stop_reason) == ("half whole", StopReason.DONE)
    assert brain.memory.control.session["taken"] == 2


async def test_a_step_that_was_left_after_the_goal_was_reached_is_taken_again() -> None:
    brain = Brain(single(DoneEarly()))
    async with brain.stream("go") as run:
        async for event in run:
            if event.kind == "text_delta":
                break
    assert run.result.stop_reason is StopReason.CANCELLED
    result = await brain.resume()
    assert (result.answer, result.stop_reason) == ("half whole", StopReason.DONE)


async def test_a_hook_that_failed_after_the_answer_is_called_again() -> None:
    called: list[Memory] = []

    async def after(memory: Memory) -> None:
        called.append(memory)
        if len(called) == 1:
            raise RuntimeError("boom")

    answer = AnswerState(ScriptedLLM(["first", "second"]), ask=True)
    brain = Brain(single(GuardedState(answer, after=after)))
    with pytest.raises(RuntimeError, match="boom"):
        await brain.run("go")
    result = await brain.resume()
    assert (result.answer, result.stop_reason) == ("second", StopReason.DONE)
    assert len(called) == 2


async def test_a_run_that_was_left_after_its_last_step_ends_without_another() -> None:
    llm = ScriptedLLM(["ok"])
    brain = Brain(react(llm))
    async with brain.stream("go") as run:
        async for event in run:
            if event.kind == "state_exited" and event.next is None:
                break
    result = await brain.resume()
    assert (result.answer, result.stop_reason) == ("ok", StopReason.DONE)
    assert (result.steps, len(llm.calls)) == (2, 1)
    assert await brain.resume() == result  # it had ended


async def test_a_session_without_a_run_is_named(tmp_path):
    memory = MessagesMemory(journal=tmp_path / "chats.db", session="nobody/7", tenant="ann")
    async with memory:
        with pytest.raises(ResumeError, match="no run to resume in session 'nobody/7' of 'ann'"):
            await Brain("react", memory, llm=ScriptedLLM()).resume()
