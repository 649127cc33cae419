"""Tests of the support desk: states alone, then the whole net. No model and no network."""

from __future__ import annotations

import pytest

from agent_brain.testing import FakeMemory, ScriptedLLM, run_net, run_state
from examples.support_desk import Case, Desk, LookUp, Sort, Ticket, support_desk


@pytest.mark.anyio
async def test_a_question_about_an_order_is_looked_up() -> None:
    llm = ScriptedLLM(['{"topic": "order", "order_number": 1042}'])

    done = await run_state(Sort(llm), FakeMemory("Where is my order 1042?"))

    assert done.next_state is Desk.LOOK_UP
    assert Case.read(done.memory).ticket == Ticket(topic="order", order_number=1042)


@pytest.mark.anyio
async def test_an_unknown_order_is_reported_as_unknown() -> None:
    memory = FakeMemory("Where is my order 7?")
    Case(ticket=Ticket(topic="order", order_number=7)).write(memory)

    done = await run_state(LookUp({1042: "shipped"}), memory)

    assert done.text == "[order 7: unknown]\n"


@pytest.mark.anyio
async def test_the_reply_is_written_with_the_status_in_view() -> None:
    llm = ScriptedLLM(['{"topic": "order", "order_number": 1042}', "It is on its way."])

    run = await run_net(support_desk(llm, {1042: "shipped"}), "Where is my order 1042?")

    assert run.path == ["SORT", "LOOK_UP", "REPLY"]
    assert run.answer == "It is on its way."
    assert "Status of order 1042: shipped." in llm.calls[1].messages[0].content


@pytest.mark.anyio
async def test_other_questions_are_answered_at_once() -> None:
    llm = ScriptedLLM(['{"topic": "other"}', "From nine to five."])

    run = await run_net(support_desk(llm), "When do you open?")

    assert run.path == ["SORT", "REPLY"]
