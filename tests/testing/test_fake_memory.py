"""A memory for tests: preloaded in a line, and a record of every call."""

from __future__ import annotations

import pytest

from agent_brain.memories import Message
from agent_brain.testing import FakeMemory
from agent_brain.tools import Action
from tests.states.helpers import add

pytestmark = pytest.mark.anyio

A, B = Message.user("a"), Message.user("b")


def texts(messages: list[Message]) -> list[str]:
    return [message.content for message in messages]


async def test_it_holds_what_it_was_made_with():
    action = Action(name="add")
    memory = FakeMemory("What?", [A, B], tools=[add], next_actions=[action])

    assert texts(await memory.goal()) == ["What?"]
    assert await memory.dump() == [A, B]
    assert memory.get_tool("add") is add
    assert memory.next_action is action


async def test_an_empty_one_is_empty():
    memory = FakeMemory()

    assert await memory.goal() + await memory.dump() + await memory.context() == []


async def test_every_call_is_recorded_in_order():
    memory = FakeMemory()
    await memory.set_goal("What?")
    await memory.update([A])
    await memory.goal()
    await memory.dump()

    assert memory.calls == [("set_goal", "What?"), ("update", [A]), ("goal", None), ("dump", None)]
    assert memory.updates == [[A]]


async def test_recorded_updates_are_copies():
    memory = FakeMemory()
    messages = [A]
    await memory.update(messages)
    messages.append(B)

    assert memory.updates == [[A]]
    assert await memory.dump() == [A]


async def test_returned_lists_are_copies():
    memory = FakeMemory("What?", [A])
    (await memory.dump()).clear()
    (await memory.goal()).clear()
    (await memory.context()).clear()

    assert texts(await memory.context()) == ["What?", "a"]


async def test_preloaded_messages_belong_to_the_current_turn():
    memory = FakeMemory("What?", [A])

    assert texts(await memory.turn()) == ["What?", "a"]


async def test_goals_stay_where_they_were_asked():
    memory = FakeMemory("1?", [Message.assistant("1.")])
    for number in (2, 3):
        await memory.set_goal(f"{number}?")
        await memory.update([Message.assistant(f"{number}.")])

    assert texts(await memory.context()) == ["1?", "1.", "2?", "2.", "3?", "3."]
    assert texts(await memory.dump()) == ["1?", "1.", "2?", "2.", "3."]
    assert texts(await memory.turn()) == ["3?", "3."]


async def test_it_can_be_forked_and_restored():
    memory = FakeMemory("What?", [A])
    fork = await memory.fork()
    await fork.update([B])
    restored = FakeMemory()
    await restored.restore(await fork.snapshot())

    assert texts(await memory.context()) == ["What?", "a"]
    assert texts(await restored.context()) == ["What?", "a", "b"]
