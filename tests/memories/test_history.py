"""The steps that a journal keeps, and memories as of one of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_brain import Brain, Message, tool
from agent_brain.errors import MemoryUseError
from agent_brain.memories import (
    LayeredMemory,
    Memory,
    MessagesMemory,
    RamJournal,
    SQLiteJournal,
    SummaryMemory,
    TodoMemory,
    WindowedMemory,
    session_key,
)
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action

pytestmark = pytest.mark.anyio

MAKE: dict[str, Callable[..., Any]] = {
    "messages": MessagesMemory,
    "windowed": lambda **options: WindowedMemory(max_messages=4, **options),
    "summary": lambda **options: SummaryMemory(max_messages=4, **options),
    "todo": lambda **options: TodoMemory(MessagesMemory(**options)),
    "layered": lambda **options: LayeredMemory(
        WindowedMemory(max_messages=4, **options), MessagesMemory(**options | {"session": "long"})
    ),
}


@tool
def look(number: int) -> str:
    """Look something up."""
    return f"seen {number}"


def turn(number: int) -> list[Any]:
    return [[Action(name="look", args={"number": number})], f"answer {number}"]


async def shown(memory: Memory) -> tuple[list[str], list[str], dict[str, Any]]:
    return (
        [m.id for m in await memory.context()],
        [m.id for m in await memory.dump()],
        memory.control.model_dump(exclude={"spent"}),
    )


@pytest.mark.parametrize("name", MAKE)
async def test_a_memory_as_of_each_step_is_what_it_was(name: str, tmp_path: Path) -> None:
    seen: dict[int, Any] = {}
    async with SQLiteJournal(tmp_path / "j.db") as journal:
        memory = MAKE[name](journal=journal, history="all")
        stored = memory.inner if name == "todo" else getattr(memory, "short", memory)
        llm = ScriptedLLM([t for number in range(8) for t in turn(number)])
        brain = Brain("react", memory, [look], llm=llm)
        for number in range(8):
            await brain.run(Message.user(f"question {number}"))
            seen[stored.store.session.run.at] = await shown(memory)
            if number == 4:  # deleted messages were there before
                await memory.delete([m.id for m in await memory.messages()][-1])
        later = MAKE[name](journal=journal, history="all")
        numbers = [step.number for step in await later.steps()]
        assert {*seen} <= {*numbers}
        for number, was in seen.items():
            assert await shown(await later.as_of(number)) == was, number


async def test_a_run_is_resumed_from_an_earlier_step() -> None:
    journal = RamJournal()
    memory = MessagesMemory(journal=journal, history="all")
    llm = ScriptedLLM(turn(1))
    await Brain("react", memory, [look], llm=llm).run("go")
    acting = next(step for step in await memory.steps() if step.state == "ACTION")
    earlier = await memory.as_of(acting)
    brain = Brain("react", earlier, [look], llm=ScriptedLLM(["another answer"]))
    assert (await brain.resume()).answer == "another answer"
    copy = await earlier.fork(journal=journal, session="other")
    assert (await copy.messages())[-1].content == "another answer"
    assert (await memory.messages())[-1].content == "answer 1"


async def test_a_number_of_steps_is_kept(tmp_path: Path) -> None:
    async with SQLiteJournal(tmp_path / "j.db") as journal:
        memory = MessagesMemory(journal=journal, history=10)
        for number in range(500):
            memory.control.step = number
            await memory.checkpoint()
        steps = [step.step for step in await memory.steps()]
        assert steps == [*range(steps[0], 500)]
        assert 10 <= len(steps) <= 10 + 2 * 128
        live = await journal.rows(session_key("default"))
        assert len(live) <= 130, "opening costs what is kept"


async def test_only_the_last_step_is_kept() -> None:
    memory = MessagesMemory(journal=RamJournal(), history="last")
    for number in range(300):
        memory.control.step = number
        await memory.checkpoint()
    assert [step.step for step in await memory.steps()][-1] == 299
    assert len(await memory.steps()) <= 130


async def test_what_is_forgotten_is_in_no_earlier_step(tmp_path: Path) -> None:
    async with SQLiteJournal(tmp_path / "j.db") as journal:
        memory = MessagesMemory(journal=journal, history="all")
        await memory.update([Message.user("SECRET")])
        for number in range(300):
            memory.control.scratch["quote"] = f"SECRET {number}"
            await memory.checkpoint()
        await memory.forget(text="SECRET")
        assert "SECRET" not in repr(await journal.read(session_key("default"), history=True))
    assert b"SECRET" not in (tmp_path / "j.db").read_bytes()


async def test_a_step_that_is_not_kept_is_refused() -> None:
    memory = MessagesMemory(journal=RamJournal())
    await memory.checkpoint()
    with pytest.raises(MemoryUseError, match="has no step 99"):
        await memory.as_of(99)
    with pytest.raises(MemoryUseError, match="without a journal"):
        await MessagesMemory().as_of(1)


@pytest.mark.parametrize("history", [0, -1, True, "some", 1.5])
def test_a_wrong_history_is_refused(history: Any) -> None:
    with pytest.raises(ValueError, match="history="):
        MessagesMemory(journal=RamJournal(), history=history)
