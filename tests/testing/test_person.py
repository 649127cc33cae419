"""States and nets that ask a person, tested without one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Literal

import pytest

from agent_brain import Brain, Memory, Message, Net, State, StopReason, react, tool
from agent_brain.errors import InputNeeded
from agent_brain.nets import SubnetState
from agent_brain.states import ActionState, ApprovalRequested, Event, InputRequested
from agent_brain.testing import FakeMemory, ScriptedLLM, run_net, run_state
from agent_brain.tools import Action
from tests.brain.nets import Say, Steps, single

pytestmark = pytest.mark.anyio


class Asks(State):
    """Asks for a name, and greets."""

    async def run(self, memory: Memory) -> AsyncIterator[str | Event]:
        name = memory.control.input
        if name is None:
            yield InputRequested("Your name?")
        else:
            yield f"Hello {name}"

    async def next_state(self, memory: Memory) -> Literal[Steps.TWO] | None:
        return Steps.TWO if memory.control.input == "Ann" else None


NET = Net({Steps.ONE: Asks(), Steps.TWO: Say("!")})


@tool(requires_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@tool
def ask(question: str) -> str:
    """Ask the user."""
    raise InputNeeded(question)


def call(name: str, **args: Any) -> Action:
    return Action(name=name, args=args)


async def test_a_state_that_asks_gets_the_answer_and_proposes_the_next() -> None:
    done = await run_state(Asks(), FakeMemory("go"), input="Ann")
    assert (done.text, done.next_state, done.waits) == ("Hello Ann", Steps.TWO, False)
    assert [event.prompt for event in done.of(InputRequested)] == ["Your name?"]
    assert done.memory.control.human_requests is None


async def test_a_state_without_an_answer_waits_and_proposes_nothing() -> None:
    done = await run_state(Asks(), FakeMemory("go"))
    assert (done.text, done.next_state, done.waits) == ("", None, True)


async def test_an_answer_without_a_question_is_an_error() -> None:
    with pytest.raises(AssertionError, match=r"No question was asked for the answers .'Ann'"):
        await run_state(Say("x"), FakeMemory("go"), input="Ann")
    with pytest.raises(AssertionError, match="'Bob'"):
        await run_net(NET, "go", answers=["Ann", "Bob"])


@pytest.mark.parametrize(
    ("approve", "results"),
    [
        (True, ["paid 1", "paid 2"]),
        (False, ["denied", "denied"]),
        (["pay"], ["paid 1", "paid 2"]),
        ("call_1", ["paid 1", "denied"]),
    ],
)
async def test_calls_of_one_state_are_approved_or_denied(approve: Any, results: list[str]) -> None:
    calls = [Action(name="pay", args={"amount": number}, id=f"call_{number}") for number in (1, 2)]
    memory = FakeMemory("go", Message.assistant("", calls), tools=[pay], next_actions=calls)
    done = await run_state(ActionState(Steps.ONE), memory, approve=approve)
    assert len(done.of(ApprovalRequested)) == 1
    told = [m.content if m.content.startswith("paid") else "denied" for m in memory.updates[0]]
    assert told == results
    assert done.next_state is Steps.ONE


async def test_questions_of_tools_are_answered_in_their_order() -> None:
    calls = [call("ask", question="Where?"), call("ask", question="When?")]
    memory = FakeMemory("go", Message.assistant("", calls), tools=[ask], next_actions=calls)
    await run_state(ActionState(Steps.ONE), memory, input=["Rome", "May"])
    assert [m.content for m in memory.updates[0]] == ["Rome", "May"]


async def test_a_net_continues_with_a_persons_answer() -> None:
    llm = ScriptedLLM([call("ask", question="How much?"), call("pay", amount=5), "Done."])
    run = await run_net(react(llm), "Pay", tools=[pay, ask], approve=True, answers=["5"])
    assert run.result is not None
    assert (run.result.answer, run.result.stop_reason) == ("Done.", StopReason.DONE)
    assert [event.prompt for event in run.of(InputRequested)] == ["How much?"]
    assert len(run.of(ApprovalRequested)) == 1
    assert [m.content for m in llm.calls[2].messages][-1] == "paid 5"
    llm.assert_complete()


@pytest.mark.parametrize("inside", [False, True])
async def test_a_state_asks_inside_a_net(inside: bool) -> None:
    net = single(SubnetState(NET)) if inside else NET
    run = await run_net(net, "go", answers="Ann")
    assert run.text == "Hello Ann!"


async def test_a_net_that_nobody_answers_waits() -> None:
    run = await run_net(NET, "go")
    assert run.result is not None
    assert run.result.stop_reason is StopReason.INPUT
    llm = ScriptedLLM([call("pay", amount=5)])
    waits = await run_net(react(llm), "Pay", tools=[pay], answers=[])
    assert waits.result is not None
    assert waits.result.stop_reason is StopReason.APPROVAL
    assert waits.memory.control.status == "waiting"


async def test_it_behaves_like_a_brain() -> None:
    brain = Brain(NET)
    await brain.run("go")
    expected = await brain.resume(input="Bob")
    run = await run_net(NET, "go", answers=["Bob"])
    assert run.result is not None
    assert run.result.answer == expected.answer == "Hello Bob"
