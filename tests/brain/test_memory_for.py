"""A brain makes memories as its own, for sessions."""

from __future__ import annotations

import pytest

from agent_brain import Brain, BrainDefinitionError, MessagesMemory, WindowedMemory, tool
from agent_brain.memories import RamJournal


@tool
def look_up(word: str) -> str:
    """Look a word up."""
    return word


@pytest.mark.anyio
async def test_each_session_has_a_memory_with_the_tools_and_options() -> None:
    journal = RamJournal()
    brain = Brain(memory="windowed", tools=[look_up], memory_options={"max_messages": 3})
    for session in ("one", "two"):
        memory = brain.memory_for(session, journal=journal, tenant="ann")
        await brain.over(memory).run(f"This is {session}.")

    memory = brain.memory_for("one", journal=journal, tenant="ann")

    assert isinstance(memory, WindowedMemory)
    assert (memory.session, memory.tenant) == ("one", "ann")
    assert [*memory.available_tools] == ["look_up"]
    assert (await memory.goal())[0].content == "This is one."
    assert await brain.memory.goal() == []


def test_the_tools_of_a_memory_are_its_own() -> None:
    brain = Brain(memory="todo", tools=[look_up])

    memory = brain.memory_for("one", journal=RamJournal())

    assert memory.available_tools.keys() == brain.memory.available_tools.keys()
    shared = [n for n, t in memory.available_tools.items() if brain.memory.get_tool(n) is t]
    assert shared == ["look_up"]


def test_a_memory_that_was_given_cannot_be_made_again() -> None:
    brain = Brain(memory=MessagesMemory())

    assert not brain.can_make_memories
    with pytest.raises(BrainDefinitionError, match="give its name and memory_options="):
        brain.memory_for("one", journal=RamJournal())


def test_a_memory_with_a_place_of_its_own_cannot_be_made_again() -> None:
    brain = Brain(memory_options={"session": "mine"})

    with pytest.raises(BrainDefinitionError, match=r"memory_options=\['session'\]: leave these"):
        brain.memory_for("one", journal=RamJournal())
