"""The to-do list that the model keeps."""

from __future__ import annotations

import anyio
import pytest

from agent_brain import Brain
from agent_brain.memories import (
    MemoryUseError,
    Message,
    MessagesMemory,
    RamJournal,
    TodoMemory,
    WindowedMemory,
    create_memory,
)
from agent_brain.testing import FakeMemory, ScriptedLLM
from agent_brain.tools import Action, ToolError

pytestmark = pytest.mark.anyio


async def test_the_model_edits_the_list_and_always_sees_it() -> None:
    memory = TodoMemory(WindowedMemory(max_messages=4))
    llm = ScriptedLLM(
        [
            [
                Action(name="add_todo", args={"text": "find flights"}),
                Action(name="add_todo", args={"text": "book"}),
            ],
            Action(name="complete_todo", args={"number": 1}),
            Action(name="revise_todo", args={"number": 2, "text": "book for two"}),
            "done",
        ]
    )
    await Brain("react", memory, llm=llm).run("Plan my trip")
    seen = [
        [m.content for m in call.messages if m.content.startswith("To-do list")]
        for call in llm.calls
    ]
    assert seen[0] == []
    assert seen[1][0].endswith("1. [ ] find flights\n2. [ ] book")
    assert seen[2][0].endswith("1. [x] find flights\n2. [ ] book")
    assert seen[3][0].endswith("1. [x] find flights\n2. [ ] book for two")
    contents = [m.content for m in llm.calls[3].messages]
    assert contents[contents.index(seen[3][0]) + 1] == "Plan my trip"


async def test_items_added_at_once_all_arrive() -> None:
    memory = TodoMemory(MessagesMemory(journal=RamJournal()))
    async with anyio.create_task_group() as group:
        for number in range(10):
            group.start_soon(memory.add_todo, f"{number}")
    assert [todo.number for todo in await memory.todos()] == list(range(1, 11))
    assert {todo.text for todo in await memory.todos()} == set("0123456789")


async def test_the_list_lasts_with_the_session_and_over_turns() -> None:
    journal = RamJournal()
    memory = TodoMemory(MessagesMemory(journal=journal))
    await memory.set_goal("first")
    await memory.add_todo("one")
    await memory.set_goal("second")
    later = TodoMemory(MessagesMemory(journal=journal))
    assert await later.todos() == await memory.todos()
    assert (await later.context())[1].content.endswith("1. [ ] one")


@pytest.mark.parametrize("inner", [MessagesMemory, FakeMemory])
async def test_snapshots_and_forks_have_a_list_of_their_own(inner) -> None:
    memory = TodoMemory(inner())
    await memory.add_todo("one")
    fork = await memory.fork()
    await fork.get_tool("add_todo").execute(text="two")  # type: ignore[union-attr]
    assert [todo.text for todo in await memory.todos()] == ["one"]
    assert [todo.text for todo in await fork.todos()] == ["one", "two"]
    other = TodoMemory(inner())
    await other.restore(await fork.snapshot())
    assert await other.todos() == await fork.todos()


async def test_what_makes_no_sense_is_told_to_the_model() -> None:
    memory = TodoMemory()
    with pytest.raises(ToolError, match="no item 7; its items are: none"):
        await memory.complete_todo(7)
    with pytest.raises(ToolError, match="needs a text"):
        await memory.add_todo("  ")


async def test_what_the_inner_memory_offers_is_reached_through_it() -> None:
    memory = create_memory("todo", inner="windowed", max_messages=2)
    await memory.update([Message.user(f"{n}") for n in range(5)])
    assert await memory.count() == 2  # type: ignore[attr-defined]
    assert [m.content for m in await memory.messages(last=1)] == ["4"]  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        memory.no_such_thing  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(MemoryUseError):
        create_memory("todo", inner=MessagesMemory(), max_messages=2)
