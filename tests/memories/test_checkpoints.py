"""What a checkpoint keeps of a step, and what the beginning of a turn costs."""

from __future__ import annotations

from typing import Any

import pytest

from agent_brain.memories import (
    Control,
    LayeredMemory,
    Memory,
    Message,
    MessagesMemory,
    RamJournal,
    SummaryMemory,
    TodoMemory,
    WindowedMemory,
)

pytestmark = pytest.mark.anyio


def layered(**place: Any) -> LayeredMemory:
    long = MessagesMemory(**{**place, "session": "long"} if place else {})
    return LayeredMemory(WindowedMemory(max_messages=1, **place), long)


MEMORIES: dict[str, Any] = {
    "messages": MessagesMemory,
    "windowed": WindowedMemory,
    "summary": SummaryMemory,
    "todo": lambda **place: TodoMemory(MessagesMemory(**place)),
    "layered": layered,
}


@pytest.mark.parametrize("name", MEMORIES)
async def test_a_rollback_keeps_what_came_before_a_checkpoint_that_changes_nothing(name) -> None:
    journal = RamJournal()
    memory = MEMORIES[name](journal=journal)
    await memory.begin(Message.user("goal"), "run-1", "START")
    await memory.update([Message.assistant("a whole step")])
    await memory.checkpoint()
    await memory.update([Message.assistant("half a step")])
    later = MEMORIES[name](journal=journal)
    await later.open()
    await later.rollback()
    for found in (later, MEMORIES[name](journal=journal)):
        assert [m.content for m in await found.messages()] == ["goal", "a whole step"]


@pytest.mark.parametrize("name", MEMORIES)
async def test_a_checkpoint_after_nothing_writes_nothing(name) -> None:
    journal = RamJournal()
    memory = MEMORIES[name](journal=journal)
    await memory.begin(Message.user("goal"), "run-1", "START")
    await memory.update([Message.assistant("step")])
    await memory.checkpoint()
    before = {key: await journal.last(key) for key in await journal.sessions()}
    await memory.checkpoint()
    assert {key: await journal.last(key) for key in await journal.sessions()} == before


@pytest.mark.parametrize("name", MEMORIES)
async def test_a_turn_in_ram_begins_without_a_copy_of_the_registers(name, monkeypatch) -> None:
    def refuse(*args: Any, **options: Any) -> Any:
        raise AssertionError("the registers were copied")

    memory: Memory = MEMORIES[name]()
    monkeypatch.setattr(Control, "model_copy", refuse)
    monkeypatch.setattr(Control, "model_dump", refuse)
    await memory.begin(Message.user("goal"), "run-1", "START")
    assert memory.control.run_id == "run-1"


async def test_a_turn_that_cannot_be_written_leaves_the_registers_as_they_were() -> None:
    journal = RamJournal()
    memory, other = MessagesMemory(journal=journal), MessagesMemory(journal=journal)
    await memory.begin(Message.user("one"), "run-1", "START")
    memory.control.scratch["note"] = ["kept"]
    await other.begin(Message.user("two"), "run-2", "START")
    before = memory.control.model_copy(deep=True)
    with pytest.raises(Exception, match="written to by another memory"):
        await memory.begin(Message.user("three"), "run-3", "OTHER")
    assert memory.control == before
