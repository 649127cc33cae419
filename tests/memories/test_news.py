"""find_news() misses nothing, whatever happens to the memory in between."""

from __future__ import annotations

import pytest

from agent_brain.memories import (
    Message,
    MessagesMemory,
    RamJournal,
    SummaryMemory,
    VectorMemory,
    WindowedMemory,
)

pytestmark = pytest.mark.anyio

MEMORIES = {
    "messages": MessagesMemory,
    "windowed": lambda **place: WindowedMemory(max_messages=3, **place),
    "summary": lambda **place: SummaryMemory(max_messages=3, **place),
    "vector": VectorMemory,
}


@pytest.fixture(params=MEMORIES)
def make(request):
    return MEMORIES[request.param]


@pytest.fixture(params=["ram", "journal"])
def place(request):
    return {} if request.param == "ram" else {"journal": RamJournal()}


def said(*texts: str) -> list[Message]:
    return [Message.user(text) for text in texts]


async def news(memory, cursor: int) -> tuple[list[str], int]:
    messages, cursor = await memory.find_news(cursor)
    return [message.content for message in messages], cursor


async def test_after_clear(make, place) -> None:
    memory = make(**place)
    await memory.update(said("a", "b", "c"))
    _, cursor = await memory.find_news()
    await memory.clear()
    assert await news(memory, cursor) == ([], cursor)
    await memory.update(said("d"))
    found, cursor = await news(memory, cursor)
    assert found == ["d"]
    assert (await news(memory, cursor))[0] == []


async def test_after_restore_everything_is_new(make, place) -> None:
    memory = make(**place)
    await memory.update(said("a", "b"))
    snapshot = await memory.snapshot()
    await memory.update(said("c"))
    _, cursor = await memory.find_news()
    await memory.restore(snapshot)
    found, cursor = await news(memory, cursor)
    assert found == ["a", "b"]
    await memory.load(said("x"))
    found, cursor = await news(memory, cursor)
    assert found == ["x"]
    await memory.update(said("y"))
    assert (await news(memory, cursor))[0] == ["y"]


async def test_with_a_cursor_of_another_memory(make) -> None:
    first, other = make(), make()
    await first.update(said(*"abcdefgh"))
    _, cursor = await first.find_news()
    await other.update(said("x"))
    found, cursor = await news(other, cursor)
    assert found == ["x"]
    assert (await news(other, cursor))[0] == []


async def test_a_fork_continues_to_count(make, place) -> None:
    memory = make(**place)
    await memory.update(said("a", "b", "c"))
    await memory.delete([m.id for m in await memory.messages(last=1)])
    _, cursor = await memory.find_news()
    fork = await memory.fork()
    await fork.update(said("d"))
    assert (await news(fork, cursor))[0][-1] == "d"


async def test_reopening_keeps_the_cursor() -> None:
    journal = RamJournal()
    memory, viewer = MessagesMemory(journal=journal), MessagesMemory(journal=journal)
    await memory.update(said("a", "b"))
    _, cursor = await viewer.find_news()
    await memory.clear()
    await memory.update(said("c"))
    await viewer.reopen()
    assert (await news(viewer, cursor))[0] == ["c"]
