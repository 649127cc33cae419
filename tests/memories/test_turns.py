"""The turns of a session and the result of its last run, with a Brain, in later memories."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from agent_brain import Brain, Limits, Message, StopReason
from agent_brain.memories import (
    DurableMemory,
    MessagesMemory,
    RamJournal,
    SharedMemory,
    SQLiteJournal,
    TodoMemory,
    WindowedMemory,
)
from agent_brain.memories.runs.turns import MOST
from agent_brain.nets import net_names
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action, tool
from tests.memories.durable.own import ListMemory

pytestmark = pytest.mark.anyio


@tool(requires_approval=True)
def pay(euros: int) -> str:
    """Pay."""
    return f"paid {euros}"


@tool
def fail() -> str:
    """Fail."""
    raise RuntimeError("no")


async def test_a_later_process_has_the_result_of_every_net(tmp_path):
    for name in net_names():
        path = tmp_path / f"{name}.db"
        async with MessagesMemory(journal=path) as memory:
            returned = await Brain(name, memory).run("What is 17 times 23?")
        async with MessagesMemory(journal=path) as memory:
            assert await Brain(name, memory).stored_result() == returned, name
            (turn,) = await memory.turns()
            assert (turn.answer, turn.run_id) == (returned.answer, returned.run_id)
            assert [*turn.messages] == returned.messages
            assert turn.ended is not None
            assert turn.began == turn.goal.created_at <= turn.ended


class Answer(BaseModel):
    number: int


async def test_the_output_is_an_object_of_its_type_again():
    journal = RamJournal()
    llm = ScriptedLLM(["three", '{"number": 3}'])
    brain = Brain("react", MessagesMemory(journal=journal), llm=llm, output_type=Answer)
    returned = await brain.run("How many?")
    later = Brain(brain.net, MessagesMemory(journal=journal))
    stored = await later.stored_result()
    assert stored == returned
    assert stored is not None
    assert stored.output == Answer(number=3)


@pytest.mark.parametrize("durable", [False, True])
async def test_a_run_that_waits_has_a_result_and_goes_on_to_another(durable):
    place: dict[str, Any] = {"journal": RamJournal()} if durable else {}
    llm = ScriptedLLM([["Let me pay. ", Action(name="pay", args={"euros": 3})], ["Paid."]])
    memory = MessagesMemory([pay], **place)
    brain = Brain("react", memory, llm=llm)
    returned = await brain.run("Pay 3 euros")
    assert returned.stop_reason is StopReason.APPROVAL
    other = Brain(brain.net, MessagesMemory([pay], **place) if durable else memory)
    assert await other.stored_result() == returned
    finished = await other.resume(approve=True)
    assert finished.answer == "Paid."
    assert await other.stored_result() == finished
    assert [turn.stop_reason for turn in await other.memory.turns()] == ["done"]


async def test_a_run_that_failed_has_a_result():
    journal = RamJournal()
    llm = ScriptedLLM([["Let me see. ", Action(name="fail")], RuntimeError("the model broke")])
    with pytest.raises(RuntimeError, match="the model broke"):
        await Brain("react", MessagesMemory([fail], journal=journal), llm=llm).run("Try")
    memory = MessagesMemory([fail], journal=journal)
    stored = await memory.last_result()
    assert stored is not None
    assert (stored.stop_reason, stored.failure) == ("failed", "RuntimeError: the model broke")
    assert stored.answer == "Let me see. "
    result = await Brain("react", memory).stored_result()
    assert result is not None
    assert result.stop_reason is StopReason.FAILED
    assert (result.steps, result.usage.requests) == (2, 2)


async def test_an_interrupted_run_has_none_until_it_has_ended():
    journal = RamJournal()
    memory = MessagesMemory(journal=journal)
    await memory.begin(Message.user("goal"), "run-1", "REASONING")
    later = MessagesMemory(journal=journal)
    assert await later.last_result() is None
    (turn,) = await later.turns()
    assert (turn.run_id, turn.stop_reason, turn.ended) == ("run-1", None, None)


async def test_a_cancelled_run_keeps_what_it_had_said():
    journal = RamJournal()
    brain = Brain("react", MessagesMemory(journal=journal), llm=ScriptedLLM([["one ", "two"]]))
    async with brain.stream("Count") as run:
        async for event in run:
            if event.kind == "text_delta":
                break
    stored = await MessagesMemory(journal=journal).last_result()
    assert stored is not None
    assert (
        (stored.answer, stored.stop_reason)
        == (run.result.answer, "cancelled")
        == (
            "one ",
            "cancelled",
        )
    )


@pytest.mark.parametrize("kind", ["sqlite", "ram journal", "ram"])
async def test_turns_whose_messages_have_left_the_window(kind, tmp_path):
    journal = {"sqlite": SQLiteJournal(tmp_path / "j.db"), "ram journal": RamJournal()}.get(kind)
    memory = WindowedMemory(max_messages=2, journal=journal)
    for number in range(4):
        await Brain("react", memory, llm=ScriptedLLM([[f"answer {number}"]])).run(f"q{number}")
    turns = await memory.turns()
    expected = range(4) if kind == "sqlite" else range(4 - len(turns), 4)
    assert [turn.goal.content for turn in turns] == [f"q{number}" for number in expected]
    assert [turn.answer for turn in turns] == [f"answer {number}" for number in expected]
    if journal is not None:
        await journal.aclose()


async def test_a_message_sent_to_a_run_begins_no_turn():
    memory = MessagesMemory()
    brain = Brain("react", memory, llm=ScriptedLLM([["Hm. ", Action(name="fail")], ["Both."]]))
    memory.add_tools([fail])
    async with brain.stream("First") as run:
        async for event in run:
            if event.kind == "action_finished":
                run.send("And second")
    (turn,) = await memory.turns()
    assert [m.content for m in turn.messages if m.role == "user"] == ["First", "And second"]


@pytest.mark.parametrize("over", ["todo", "own", "member"])
async def test_wrappers_have_the_turns_of_what_they_wrap(over):
    journal = RamJournal()

    def make():
        if over == "own":
            return DurableMemory(ListMemory, journal=journal)
        if over == "todo":
            return TodoMemory(MessagesMemory(journal=journal))
        return SharedMemory(journal).member("writer")

    for number in range(2):
        await Brain("react", make(), llm=ScriptedLLM([[f"a{number}"]])).run(f"q{number}")
    assert [(t.goal.content, t.answer, t.stop_reason) for t in await make().turns()] == [
        ("q0", "a0", "done"),
        ("q1", "a1", "done"),
    ]


async def test_what_is_removed_is_in_no_turn():
    memory = MessagesMemory(journal=RamJournal())
    for number in range(2):
        await Brain("react", memory, llm=ScriptedLLM([[f"a{number}"]])).run(f"q{number}")
    first, second = await memory.turns()
    await memory.forget([first.messages[1].id, second.goal.id])
    (turn,) = await memory.turns()
    assert turn.goal == first.goal
    assert await memory.last_result() is None
    await memory.clear()
    assert (await memory.turns(), await memory.last_result()) == ([], None)


async def test_a_rolled_back_goal_begins_no_turn():
    journal = RamJournal()
    memory = MessagesMemory(journal=journal)
    await memory.begin(Message.user("kept"), "run-1", "A")
    assert memory.store.session is not None
    memory.store.session.running = True
    await memory.set_goal("undone")
    later = MessagesMemory(journal=journal)
    await later.rollback()
    assert [turn.goal.content for turn in await later.turns()] == ["kept"]


async def test_an_export_has_the_turns():
    memory = MessagesMemory()
    for number in range(3):
        await Brain("react", memory, limits=Limits(max_steps=9)).run(f"What is {number} plus 1?")
    other = MessagesMemory(journal=RamJournal())
    await other.load(await memory.export())
    turns = [replace(turn, ended=None) for turn in await other.turns()]
    assert turns == await memory.turns()
    assert len(turns) == 3


async def test_the_notes_of_turns_in_ram_are_limited():
    memory = WindowedMemory(max_messages=2)
    with anyio.fail_after(60):
        for number in range(MOST + 5):
            await memory.set_goal(f"q{number}")
    (notes,) = memory.store.values.values()
    assert isinstance(notes, list)
    assert len(notes) == MOST
