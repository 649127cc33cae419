"""One run at a time over a memory and over what it wraps."""

from __future__ import annotations

import pytest

from agent_brain import Brain, LayeredMemory, MessagesMemory, TodoMemory, WindowedMemory, react
from agent_brain.errors import MemoryBusyError
from agent_brain.memories import Memory
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


async def test_a_copy_of_a_busy_memory_is_free() -> None:
    memory = MessagesMemory()
    async with brain(memory).stream("go") as run:
        await anext(aiter(run))
        async with await memory.fork() as copy:
            assert not copy.busy
            assert (await brain(copy).run("go")).answer == "It is."
