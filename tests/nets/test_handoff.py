"""Hand-offs: one agent gives the conversation to another."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

import anyio
import pytest

from agent_brain import Brain, Limits, Net, StopReason, tool
from agent_brain.memories import Message, MessagesMemory, RamJournal, Role, WindowedMemory
from agent_brain.nets import HandoffAgent, NetDefinitionError, SubnetState, handoff
from agent_brain.states import StateDefinitionError
from agent_brain.testing import ModelCall, ScriptedLLM
from agent_brain.tools import Action, InputNeeded, ToolDefinitionError
from tests.nets.models import FunctionLLM
from tests.support.clock import clock_backend, fake_clock
from tests.support.journals import Killed, MortalJournal

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    return clock_backend(request.param)


@tool
def refund(order: str) -> str:
    """Refund an order."""
    return f"refunded {order}"


def transfer(to: str, **more: Any) -> Action:
    return Action(name=f"transfer_to_{to}", args={"reason": "they asked"}, **more)


def desk(llm: Any, **options: Any) -> Net:
    agents = {
        "triage": HandoffAgent(prompt="Find out what they want.", description="the first contact"),
        "billing": HandoffAgent(prompt="Refund.", description="invoices", tools=[refund]),
        "sales": HandoffAgent(prompt="Sell.", to=["triage"]),
    }
    return handoff(llm, agents, **options)


def offered(call: ModelCall) -> list[str]:
    return sorted(tool.name for tool in call.tools)


async def test_the_next_agent_continues_the_conversation_with_its_own_prompt_and_tools() -> None:
    llm = ScriptedLLM(
        [transfer("billing"), Action(name="refund", args={"order": "7"}), "Done, refunded."]
    )
    brain = Brain(desk(llm))
    result = await brain.run("My money back for order 7!")
    assert (result.answer, result.stop_reason) == ("Done, refunded.", StopReason.DONE)
    first, second, third = llm.calls
    assert first.messages[0].content.startswith("Find out")
    assert offered(first) == ["transfer_to_billing", "transfer_to_sales"]
    assert second.messages[0].content.startswith("Refund.")
    assert offered(second) == ["refund", "transfer_to_sales", "transfer_to_triage"]
    assert second.messages[1].content == "My money back for order 7!"
    assert third.messages[-1].content == "refunded 7"
    assert "which is for: invoices" in first.tools[0].description
    llm.assert_complete()


async def test_messages_and_events_name_the_agent() -> None:
    llm = ScriptedLLM([["Moment.", transfer("billing")], "Done."])
    brain = Brain(desk(llm))
    texts = []
    async with brain.stream("go") as run:
        async for event in run:
            if event.kind == "text_delta":
                texts.append((event.text, event.path))
    assert texts == [("Moment.", ("triage",)), ("Done.", ("billing",))]
    spoke = [m.sent_from for m in run.result.messages if m.role is Role.ASSISTANT]
    assert spoke == ["triage", "billing"]


async def test_the_next_turn_begins_with_the_agent_that_was_active_last() -> None:
    journal = RamJournal()
    llm = ScriptedLLM([transfer("billing"), "Which order?", "Refunded."])
    await Brain(desk(llm), MessagesMemory(journal=journal)).run("Refund me")
    later = Brain(desk(llm), MessagesMemory(journal=journal))
    assert (await later.run("Order 7")).messages[-1].sent_from == "billing"


async def test_it_does_so_inside_another_net() -> None:
    class Outer(Enum):
        DESK = "desk"

    llm = ScriptedLLM([transfer("billing"), "Which order?", "Refunded."])
    brain = Brain(Net({Outer.DESK: SubnetState(desk(llm))}))
    await brain.run("Refund me")
    assert (await brain.run("Order 7")).messages[-1].sent_from == "billing"


async def test_two_of_these_nets_in_one_run_do_not_mix() -> None:
    class Outer(Enum):
        FIRST = "first"
        SECOND = "second"

    one = ScriptedLLM([transfer("b"), "One."])
    two = ScriptedLLM([Action(name="_look"), "Two."])
    agents = {"a": HandoffAgent(), "b": HandoffAgent()}
    net = Net(
        {
            Outer.FIRST: SubnetState(handoff(one, agents, name="one"), on_done=Outer.SECOND),
            Outer.SECOND: SubnetState(handoff(two, agents, name="two")),
        }
    )
    result = await Brain(net, tools=[_look]).run("go")
    assert (result.answer, result.messages[-1].sent_from) == ("Two.", "a")


async def test_an_agent_that_is_gone_leaves_the_turn_to_the_first_one() -> None:
    memory = MessagesMemory()
    await Brain(desk(ScriptedLLM([transfer("billing"), "Which?"])), memory).run("Refund me")
    alone = handoff(ScriptedLLM(["Hello."]), {"triage": HandoffAgent()})
    assert (await Brain(alone, memory).run("Hi")).messages[-1].sent_from == "triage"


async def test_other_calls_of_the_round_keep_their_results() -> None:
    llm = ScriptedLLM(
        [
            transfer("billing"),
            [Action(name="refund", args={"order": "7"}), transfer("sales")],
            "Buy more!",
        ]
    )
    result = await Brain(desk(llm)).run("go")
    assert result.answer == "Buy more!"
    results = [m.content for m in llm.calls[-1].messages if m.role is Role.TOOL]
    assert results[1:] == ["refunded 7", "The agent 'sales' continues the conversation."]


async def test_of_two_hand_offs_the_first_counts() -> None:
    llm = ScriptedLLM([[transfer("billing"), transfer("sales")], "Which order?"])
    result = await Brain(desk(llm)).run("go")
    assert result.messages[-1].sent_from == "billing"
    refused = [m for m in result.messages if m.is_error]
    assert ["'billing' was asked for first" in m.content for m in refused] == [True]


async def test_a_hand_off_with_wrong_arguments_goes_back_to_the_model() -> None:
    llm = ScriptedLLM([Action(name="transfer_to_billing", args={}), "I stay."])
    result = await Brain(desk(llm)).run("go")
    assert result.messages[-1].sent_from == "triage"


@pytest.mark.parametrize("wrong", [{"args": {}}, {"args": {}, "unparsed": "{"}])
async def test_a_hand_off_with_wrong_arguments_leaves_the_round_to_the_next_one(wrong: Any) -> None:
    bad = Action(name="transfer_to_billing", **wrong)
    llm = ScriptedLLM([[bad, transfer("sales"), transfer("billing")], "Buy."])
    result = await Brain(desk(llm)).run("go")
    assert result.messages[-1].sent_from == "sales"
    assert [m.is_error for m in result.messages if m.role is Role.TOOL] == [True, False, True]


@tool
async def _hang() -> str:
    """Hang."""
    await anyio.sleep_forever()
    return ""


HANG = Action(name="_hang")
ROUNDS = {
    "alone": [transfer("billing")],
    "before": [transfer("billing"), HANG],
    "behind": [HANG, transfer("billing")],
}


async def _leave(brain: Brain[Any], how: str) -> None:
    """End a run in the round of the hand-off, once that has its result."""
    async with brain.stream("go") as run:
        async for event in run:
            if event.kind == "action_finished":
                if how != "cancel":
                    break
                run.cancel()


@pytest.mark.parametrize("calls", ROUNDS.values(), ids=ROUNDS)
@pytest.mark.parametrize("how", ["leave", "cancel"])
@pytest.mark.parametrize("durable", [False, True], ids=["ram", "journal"])
async def test_a_hand_off_with_a_result_counts_though_its_round_was_left(
    calls: list[Action], how: str, durable: bool
) -> None:
    for new_goal in (False, True):
        memory = MessagesMemory(journal=RamJournal() if durable else None)
        brain = Brain(desk(ScriptedLLM([calls, "Which order?"])), memory, tools=[_hang])
        await _leave(brain, how)
        result = await (brain.run("Go on") if new_goal else brain.resume())
        assert (result.answer, result.messages[-1].sent_from) == ("Which order?", "billing")


@pytest.mark.parametrize("calls", [ROUNDS["before"], ROUNDS["behind"]])
async def test_it_counts_though_the_time_was_up(calls: list[Action]) -> None:
    llm = ScriptedLLM([calls, "Which order?"])
    brain = Brain(desk(llm), tools=[_hang], limits=Limits(timeout=0.1))
    with fake_clock():
        assert (await brain.run("go")).stop_reason is StopReason.TIMEOUT
    brain.limits = Limits()
    assert (await brain.resume()).messages[-1].sent_from == "billing"


async def test_it_counts_though_the_task_was_cancelled() -> None:
    brain = Brain(desk(ScriptedLLM([ROUNDS["before"], "Which order?"])), tools=[_hang])
    with fake_clock(), anyio.move_on_after(0.1):
        await brain.run("go")
    assert (await brain.resume()).messages[-1].sent_from == "billing"


async def test_the_agent_of_a_round_that_was_left_matches_the_results() -> None:
    brain = Brain(desk(ScriptedLLM([[transfer("billing")], "Go on."])))
    async with brain.stream("go") as run:
        async for event in run:
            if event.kind == "action_started":
                break
    result = await brain.resume()
    handed_over = [not m.is_error for m in result.messages if m.role is Role.TOOL]
    assert handed_over == [result.messages[-1].sent_from == "billing"]


async def test_a_hand_off_beside_a_question_counts_though_the_goal_is_given_up() -> None:
    @tool
    def ask() -> str:
        """Ask."""
        raise InputNeeded("Which colour?")

    llm = ScriptedLLM([[transfer("billing"), Action(name="ask")], "Which order?"])
    brain = Brain(desk(llm), tools=[ask])
    assert (await brain.run("go")).stop_reason is StopReason.INPUT
    assert (await brain.run("Something else")).messages[-1].sent_from == "billing"


async def test_an_agent_cannot_call_the_tools_of_another_one() -> None:
    llm = ScriptedLLM([Action(name="refund", args={"order": "7"}), "I cannot."])
    result = await Brain(desk(llm)).run("go")
    assert [m.is_error for m in result.messages if m.role is Role.TOOL] == [True]


async def test_the_memory_has_no_tool_of_an_agent_afterwards() -> None:
    brain = Brain(desk(ScriptedLLM([transfer("billing"), OSError("down")])), tools=[_look])
    with pytest.raises(OSError, match="down"):
        await brain.run("go")
    assert [*brain.memory.available_tools] == ["_look"]


@tool
def _look() -> str:
    """Look."""
    return "seen"


async def test_a_tool_that_the_memory_has_under_the_same_name_is_refused() -> None:
    @tool(name="refund")
    def other() -> str:
        """Refund otherwise."""
        return ""

    brain = Brain(desk(ScriptedLLM([transfer("billing")])), tools=[other])
    with pytest.raises(ToolDefinitionError, match="refund"):
        await brain.run("go")


async def test_a_conversation_that_goes_round_ends_at_a_limit() -> None:
    def reply(call: ModelCall) -> Any:
        return transfer("sales" if "transfer_to_sales" in offered(call) else "triage")

    result = await Brain(desk(FunctionLLM(reply)), limits=Limits(max_steps=30)).run("go")
    assert result.stop_reason is StopReason.MAX_STEPS


async def test_a_function_chooses_what_an_agent_sees() -> None:
    async def last_only(messages: Sequence[Message]) -> list[Message]:
        return [m for m in messages if m.role is not Role.ASSISTANT]

    llm = ScriptedLLM(["Hello.", transfer("billing"), "Done."])
    agents = {"triage": HandoffAgent(), "billing": HandoffAgent(see=last_only)}
    brain = Brain(handoff(llm, agents))
    await brain.run("Hi")
    await brain.run("Refund me")
    seen = [(m.role.value, m.content) for m in llm.calls[-1].messages[1:]]
    assert seen == [("user", "Hi"), ("user", "Refund me")], "the result has lost its call"


@pytest.mark.parametrize("seen", [None, ["text"]])
async def test_a_function_that_returns_no_messages_is_an_error(seen: Any) -> None:
    brain = Brain(handoff(ScriptedLLM(["Hi."]), {"a": HandoffAgent(see=lambda messages: seen)}))
    with pytest.raises(StateDefinitionError, match="see="):
        await brain.run("Hello")


async def test_each_agent_may_have_a_model_a_mode_and_a_type_of_answer() -> None:
    first = ScriptedLLM(
        ['I pass on. {"name": "transfer_to_sums", "args": {"reason": "a sum"}}'],
    )
    second = ScriptedLLM(["It is 4", "4"])
    agents = {
        "triage": HandoffAgent(mode="text"),
        "sums": HandoffAgent(llm=second, output_type=int),
    }
    result = await Brain(handoff(first, agents)).run("2 + 2?")
    assert result.output == 4
    assert result.messages[-1].sent_from == "sums"


async def test_it_waits_for_a_person_and_goes_on() -> None:
    @tool(requires_approval=True)
    def pay() -> str:
        """Pay."""
        return "paid"

    llm = ScriptedLLM([transfer("billing"), Action(name="pay"), "Paid."])
    agents = {"triage": HandoffAgent(), "billing": HandoffAgent(tools=[pay])}
    brain = Brain(handoff(llm, agents))
    assert (await brain.run("go")).stop_reason is StopReason.APPROVAL
    assert (await brain.resume(approve=True)).answer == "Paid."


@pytest.mark.parametrize("kind", [MessagesMemory, WindowedMemory])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_kill_at_any_write_changes_nothing(kind: Any, after: bool) -> None:
    def reply(call: ModelCall) -> Any:
        done = [m.content for m in call.messages if m.role is Role.TOOL]
        if call.messages[0].content.startswith("Find out"):
            return [transfer("billing", id="t-1")]
        return "Refunded." if "refunded 7" in done else Action(name="refund", args={"order": "7"})

    async def told(dies_at: int | None) -> tuple[list[Any], int]:
        store = RamJournal()
        journal = MortalJournal(store, dies_at, after=after)
        try:
            await Brain(desk(FunctionLLM(reply)), kind(journal=journal)).run("go")
        except Killed:
            memory = kind(journal=store)
            await memory.open()
            brain = Brain(desk(FunctionLLM(reply)), memory)
            begun = memory.control.run_id is not None
            await (brain.resume() if begun else brain.run("go"))
        messages = await kind(journal=store).messages()
        return [(m.role, m.sent_from, m.content) for m in messages], journal.writes

    wanted, writes = await told(None)
    assert [sender for _, sender, _ in wanted if sender] == ["triage", "billing", "billing"]
    for write in range(1, writes + 1):
        got, _ = await told(write)
        doubt = [text for *_, text in got if "may or may not" in text]
        assert got == wanted or doubt, write
        assert {sender for _, sender, _ in got} == {None, "triage", "billing"}


@pytest.mark.parametrize(
    ("agents", "options", "said"),
    [
        ({}, {}, "no agents"),
        (["a"], {}, "not a mapping"),
        (None, {}, "not a mapping"),
        ({"a": "prompt"}, {}, r"HandoffAgent\(prompt"),
        ({"a": HandoffAgent()}, {"start": "b"}, "start='b'"),
        ({"triage": HandoffAgent(to=["biling"]), "billing": HandoffAgent()}, {}, "mean 'billing'"),
        ({"a": HandoffAgent(to=["a"])}, {}, "itself"),
        ({"a": HandoffAgent(to=[]), "b": HandoffAgent()}, {}, "'b' cannot be reached from 'a'"),
        ({"a b": HandoffAgent()}, {}, "letters, digits"),
        ({"START": HandoffAgent()}, {}, "START"),
        ({"a" * 60: HandoffAgent()}, {}, "up to 52"),
    ],
)
def test_what_is_wrong_is_said_when_it_is_built(agents: Any, options: Any, said: str) -> None:
    with pytest.raises(NetDefinitionError, match=said):
        handoff(ScriptedLLM(), agents, **options)


async def test_a_single_agent_answers_alone() -> None:
    brain = Brain(handoff(ScriptedLLM(["Hi."]), {"a": HandoffAgent()}))
    assert (await brain.run("Hello")).answer == "Hi."


def test_diagrams_show_who_hands_over_to_whom() -> None:
    drawn = desk(ScriptedLLM()).to_mermaid()
    assert "sales --> triage" in drawn
    assert "sales --> billing" not in drawn
