"""Without an embedder, a few new messages wait for the next search and are indexed together."""

from __future__ import annotations

import pytest

from agent_brain.memories import Message, VectorMemory
from agent_brain.memories.recall.indexing import ON_LOOP
from tests.memories.vector.support import WordsEmbedder, found, index_of, said

pytestmark = pytest.mark.anyio


async def searched(**options) -> VectorMemory:
    memory = VectorMemory(recent=1, **options)
    await memory.update(said("My kitten sleeps", "Rain again"))
    assert await found(memory, "kitten", 1) == ["My kitten sleeps"]
    return memory


async def test_new_messages_wait_for_the_next_search_which_finds_them():
    memory = await searched()
    await memory.update(said("The truck is red"))
    await memory.update(said("We drove home"))
    assert len(index_of(memory)) == 2
    assert await found(memory, "truck", 1) == ["The truck is red"]
    assert len(index_of(memory)) == 4


async def test_no_more_than_a_few_wait():
    memory = await searched()
    for number in range(3 * ON_LOOP):
        await memory.update(said(f"room {number} is empty"))
        assert len(index_of(memory)) + ON_LOOP >= 3 + number


async def test_what_waits_can_be_forgotten_and_is_shown_with_the_goal():
    memory = await searched()
    await memory.update(secret := said("The code of the truck is 4711"))
    await memory.update(said("The truck is red"))
    assert await memory.forget([secret[0].id]) == 1
    await memory.set_goal(Message.user("Which colour has the truck?"))
    shown = [message.content for message in await memory.context()]
    assert "The truck is red" in shown[0]
    assert not any("4711" in text for text in shown)


async def test_with_an_embedder_nothing_waits():
    embedder = WordsEmbedder()
    memory = await searched(embedder=embedder)
    await memory.update(said("The truck is red"))
    assert embedder.texts[-1] == "The truck is red"
    assert len(index_of(memory)) == 3
