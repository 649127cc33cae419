"""One run at a time over a memory and over what it wraps."""

from __future__ import annotations

import pytest

from agent_brain import Brain, LayeredMemory, MessagesMemory, TodoMemory, WindowedMemory, react
from agent_brain.errors import MemoryBusyError
from agent_brain.memories import Memory, RamJournal
from agent_brain.testing import ScriptedLLM

pytestmark = [pytest.mark.anyio, pytest.mark.also_on_trio]


def brain(memory: Memory) -> Brain:
    return Brain(react(ScriptedLLM([["It ", "is."], ["Yes."]])), memory)


@pytest.mark.parametrize("over", ["wrapper", "inner"])
@pytest.mark.parametrize("which", ["todo", "layered"])
async def test_a_wrapper_and_its_inner_memory_are_one_memory(over: str, which: str) -> None:
    inner = WindowedMemory()
    wrapper: Memory = (
        TodoMemory(inner) if which == "todo" else LayeredMemory(inner, MessagesMemory())
    )
    first, second = (wrapper, inner) if over == "wrapper" else (inner, wrapper)
    async with brain(first).stream("go") as run:
        await anext(aiter(run))
        assert first.busy
        assert second.busy
        with pytest.raises(MemoryBusyError):
            await brain(second).run("go")
    assert not first.busy
    assert not second.busy
    assert (await brain(second).run("go")).answer == "It is."


async def test_a_memory_whose_lease_cannot_be_given_back_is_free() -> None:
    class Unreachable(MessagesMemory):
        async def release(self) -> None:
            raise OSError("the server is down")

    memory = Unreachable(journal=RamJournal())
    with pytest.raises(OSError, match="down"):
        await brain(memory).run("go")
    assert not memory.busy


async def test_the_other_leases_are_given_back_if_one_cannot_be() -> None:
    class Unreachable(WindowedMemory):
        async def release(self) -> None:
            raise OSError("the server is down")

    long = MessagesMemory(journal=RamJournal(), session="long")
    memory = LayeredMemory(Unreachable(journal=RamJournal()), long)
    with pytest.raises(OSError, match="down"):
        await brain(memory).run("go")
    assert not memory.busy
    async with MessagesMemory(journal=long.journal, session="long") as other:
        assert (await brain(other).run("go")).answer == "It is."


async def test_programs_that_take_turns_in_a_session_see_what_the_other_wrote() -> None:
    journal = RamJournal()
    one, other = (brain(MessagesMemory(journal=journal)) for _ in range(2))
    await one.run("first")
    await other.run("second")
    await one.run("third")
    goals = [turn.goal.content for turn in await one.memory.turns()]
    assert goals == ["first", "second", "third"]


async def test_a_copy_of_a_busy_memory_is_free() -> None:
    memory = MessagesMemory()
    async with brain(memory).stream("go") as run:
        await anext(aiter(run))
        async with await memory.fork() as copy:
            assert not copy.busy
            assert (await brain(copy).run("go")).answer == "It is."
