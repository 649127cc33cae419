"""Large sessions, whose vectors stay in Chroma; here every session counts as large."""

from __future__ import annotations

import shutil
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from agent_brain.memories import EmbedderMismatchError, VectorMemory
from agent_brain.memories.recall import indexing, scoring, search
from agent_brain.memories.vectors import vectors
from tests.memories.vector.support import WordsEmbedder, found, said, store_of, stored

pytestmark = pytest.mark.anyio
COUNT = 120


@pytest.fixture
def large(monkeypatch) -> None:
    for module in (indexing, search, vectors):
        monkeypatch.setattr(module, "EAGER", 20)
    monkeypatch.setattr(scoring, "NEAREST", 10)
    monkeypatch.setattr(search, "NEAREST_FILTERED", 20)


@pytest.fixture
async def folder(tmp_path: Path, large: None) -> Path:
    texts = [f"room {n} is empty" for n in range(COUNT)]
    texts[40] = "My kitten sleeps"
    async with VectorMemory(path=tmp_path, embedder=WordsEmbedder(512)) as memory:
        await memory.update(said(*texts))
    return tmp_path


def vectors_in_ram(memory: VectorMemory) -> int:
    return len(memory._vectors.held or ())


async def test_opening_and_writing_does_not_read_the_rest(folder) -> None:
    embedder = WordsEmbedder(512)
    async with VectorMemory(path=folder, embedder=embedder) as memory:
        await memory.update(said("We drove home"))
        assert memory._indexed.index is None
        assert await memory.count() == COUNT + 1
        assert await found(memory, "truck home", 1) == ["We drove home"]
        assert embedder.texts == ["We drove home", "truck home"]


async def test_a_first_search_that_is_cancelled_anywhere_loses_nothing(folder, monkeypatch) -> None:
    monkeypatch.setattr(indexing, "PIECE", 4)
    async with VectorMemory(path=folder, embedder=WordsEmbedder(512)) as memory:
        for turns in range(40):
            async with anyio.create_task_group() as group:
                group.start_soon(memory.recall, "dog")
                for _ in range(turns):
                    await anyio.lowlevel.checkpoint()
                group.cancel_scope.cancel()
        for number in (0, COUNT - 1):
            assert await found(memory, f"room {number}", 1) == [f"room {number} is empty"]
        assert await found(memory, "dog", 1) == ["My kitten sleeps"]


async def test_meaning_is_found_though_few_vectors_are_in_ram(folder) -> None:
    embedder = WordsEmbedder(512)
    async with VectorMemory(path=folder, embedder=embedder) as memory:
        (hit,) = await memory.recall("dog", 1)
        assert hit.message.content == "My kitten sleeps"
        assert hit.why["meaning"] > 0
        assert vectors_in_ram(memory) == 0
        assert embedder.texts == ["dog"]
        kittens = await memory.recall("dog", where=lambda m: "kitten" in m.content)
        assert [each.message.content for each in kittens] == ["My kitten sleeps"]


async def test_the_context_recalls_from_a_large_session(folder) -> None:
    async with VectorMemory(path=folder, embedder=WordsEmbedder(512), recent=3) as memory:
        await memory.set_goal("dog?")
        assert "My kitten sleeps" in (await memory.context())[0].content


async def test_what_is_forgotten_leaves_chroma_too(folder) -> None:
    async with VectorMemory(path=folder, embedder=WordsEmbedder(512)) as memory:
        assert await memory.forget(text="kitten") == 1
        assert len(await stored(memory)) == COUNT - 1
        assert await found(memory, "dog kitten", 5, where=lambda m: "kitten" in m.content) == []
    later = WordsEmbedder(512)
    async with VectorMemory(path=folder, embedder=later) as memory:
        await memory.recall("room 7")
        assert later.texts == ["room 7"]


async def test_what_is_deleted_before_the_first_search_leaves_chroma_too(folder) -> None:
    async with VectorMemory(path=folder, embedder=WordsEmbedder(512)) as memory:
        (kitten,) = await memory.messages(text="kitten")
        await memory.delete(kitten.id)
    async with VectorMemory(path=folder, embedder=WordsEmbedder(512)) as memory:
        await memory.update(said("We drove home"))
        assert kitten.id not in await stored(memory)
        assert len(await stored(memory)) == COUNT - 1


async def test_a_fork_and_a_restored_snapshot_embed_nothing_again(folder) -> None:
    embedder = WordsEmbedder(512)
    async with VectorMemory(path=folder, embedder=embedder) as memory:
        await memory.recall("dog")
        fork = await memory.fork()
        await fork.update(said("only the fork has a truck"))
        assert await found(fork, "dog", 1) == ["My kitten sleeps"]
        assert "only the fork has a truck" not in await found(memory, "truck", 5)
        await memory.restore(await memory.snapshot())
        assert await found(memory, "dog", 1) == ["My kitten sleeps"]
        assert not {"My kitten sleeps", "room 7 is empty"} & {*embedder.texts}
        await fork.aclose()
        assert len(await stored(memory)) == COUNT


async def test_another_model_is_refused_before_anything_is_written(folder) -> None:
    async with VectorMemory(path=folder, embedder=WordsEmbedder(512, name="other")) as memory:
        with pytest.raises(EmbedderMismatchError):
            await memory.update(said("refused"))
        with pytest.raises(EmbedderMismatchError):
            await memory.recall("dog")
        assert await memory.count() == COUNT


async def test_words_decide_while_the_vectors_cannot_be_read_and_they_are_made_again(
    folder, caplog
) -> None:
    embedder = WordsEmbedder(512)
    async with VectorMemory(path=folder, embedder=embedder) as memory:
        await memory.recall("dog")
        shutil.rmtree(store_of(memory)._path)
        assert await found(memory, "kitten", 1) == ["My kitten sleeps"]
        await memory.update(said("We drove home"))
        await memory._vectors.save()
        await memory.update(said("It rained"))
        assert await found(memory, "dog", 1) == ["My kitten sleeps"]
        assert len(await stored(memory)) >= COUNT
    later = WordsEmbedder(512)
    async with VectorMemory(path=folder, embedder=later) as memory:
        await memory.recall("dog")
        assert later.texts == ["dog"]
