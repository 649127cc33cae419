"""Two memories as one."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from agent_brain.memories import (
    LayeredMemory,
    MemoryDefinitionError,
    Message,
    MessagesMemory,
    RamJournal,
    SQLiteJournal,
    WindowedMemory,
    create_memory,
)

pytestmark = pytest.mark.anyio


@dataclass
class Found:
    message: Message


class Recalling(MessagesMemory):
    """Recalls what contains the question."""

    asked: list[tuple[str, int]] = []

    async def recall(self, query: str, k: int) -> list[Found]:
        self.asked.append((query, k))
        return [Found(message) for message in reversed(await self.messages(text=query))][:k]


async def test_what_leaves_the_window_is_recalled_for_the_goal() -> None:
    memory = LayeredMemory(WindowedMemory(max_messages=3), Recalling(), k=2)
    await memory.update([Message.system("rules", pinned=True)])
    await memory.update([Message.user(text) for text in ("cat 1", "dog", "cat 2", "x", "y")])
    await memory.set_goal("cat")
    await memory.update([Message.assistant("z")])
    rules, recalled, *recent = [message.content for message in await memory.context()]
    assert (rules, recent) == ("rules", ["cat", "z"])
    assert [line[-5:] for line in recalled.splitlines()[1:]] == ["cat 1", "cat 2"]
    assert Recalling.asked[-1] == ("cat", 2)


async def test_what_is_in_the_window_is_not_recalled_besides() -> None:
    memory = LayeredMemory(WindowedMemory(max_messages=3), Recalling())
    await memory.set_goal("cat")
    message = Message.user("cat 1")
    await memory.update([message])
    await memory.long.update([message])
    assert [m.content for m in await memory.context()] == ["cat", "cat 1"]


async def test_layers_over_the_memory_that_recalls() -> None:
    memory = create_memory("layered", max_messages=3)
    await memory.update([Message.user(t) for t in ("my cat is Tom", "rain", "sun", "wind", "ice")])
    await memory.set_goal("what is the name of my cat?")
    assert "Tom" in (await memory.context())[0].content
    assert await memory.forget(text="Tom") == 1  # type: ignore[attr-defined]
    assert "Tom" not in str(await memory.context())
    await memory.aclose()


async def test_forgetting_reaches_both() -> None:
    memory = LayeredMemory(WindowedMemory(max_messages=2), MessagesMemory())
    await memory.update([Message.user(f"secret {n}") for n in range(5)])
    assert await memory.forget(text="secret") == 5
    assert await memory.messages() == []
    assert await memory.long.count() == 0


async def test_a_message_of_the_long_term_memory_is_not_taken_again() -> None:
    memory = LayeredMemory(WindowedMemory(max_messages=2), MessagesMemory())
    messages = [Message.user(f"{n}") for n in range(5)]
    await memory.update(messages)
    await memory.update(messages)
    assert await memory.count() == 5


async def test_a_snapshot_has_both() -> None:
    memory = LayeredMemory(WindowedMemory(max_messages=2), MessagesMemory())
    await memory.update([Message.user(f"{n}") for n in range(5)])
    other = LayeredMemory(WindowedMemory(max_messages=2), MessagesMemory())
    await other.restore(await memory.snapshot())
    assert await other.messages() == await memory.messages()
    assert await other.short.count() == 2
    fork = await memory.fork()
    await fork.update([Message.user("only here")])
    assert await memory.count() == 5
    assert await memory.long.count() == 3


async def test_what_a_crash_kept_from_arriving_arrives_at_the_next_opening(tmp_path) -> None:
    async with SQLiteJournal(tmp_path / "journal.db") as journal:
        lost = WindowedMemory(max_messages=2, journal=journal)  # nobody takes what leaves it
        await lost.update([Message.user(f"{n}") for n in range(6)])
        memory = LayeredMemory(
            WindowedMemory(max_messages=2, journal=journal),
            MessagesMemory(journal=journal, session="long"),
        )
        assert [m.content for m in await memory.messages()] == list("012345")
        await memory.open()
        assert await memory.long.count() == 4


async def test_a_name_and_options_are_enough() -> None:
    journal = RamJournal()
    memory = create_memory("layered", long="messages", max_messages=2, journal=journal, session="s")
    await memory.update([Message.user(f"{n}") for n in range(5)])
    later = create_memory("layered", long="messages", max_messages=2, journal=journal, session="s")
    assert [m.content for m in await later.context()] == list("01234")
    assert len(await journal.sessions()) == 2


async def test_memories_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(MemoryDefinitionError):
        LayeredMemory(MessagesMemory(), MessagesMemory())  # type: ignore[arg-type]
    with pytest.raises(MemoryDefinitionError):
        LayeredMemory(WindowedMemory(on_evict=print), MessagesMemory())
