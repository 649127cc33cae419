"""An embedder that fails, or is cut off: the record is whole, words decide, and it is tried again."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import pytest
from chromadb.utils.embedding_functions import ONNXMiniLM_L6_V2

from agent_brain.memories import EmbedderMismatchError, Message, VectorMemory
from agent_brain.memories.embedders import EmbeddingError
from agent_brain.memories.vectors.chroma import key_of
from tests.memories.vector.support import WordsEmbedder, found, said, store_of, stored

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("fault", ["raises", "count", "nan", "shape", "dimension"])
async def test_words_decide_while_it_fails_and_it_is_tried_again(embedder, fault, caplog) -> None:
    good = embedder.embed

    async def bad(texts):
        if fault == "raises":
            raise ConnectionError("no way")
        vectors = await good(texts)
        return {
            "count": vectors[1:],
            "nan": [[float("nan")] * 32 for _ in vectors],
            "shape": vectors[0],
            "dimension": [vector[1:] for vector in vectors],
        }[fault]

    memory = VectorMemory(embedder=embedder, recent=1)
    embedder.embed = bad
    with caplog.at_level(logging.WARNING):
        await memory.update(said("My kitten sleeps", "We drove home"))
    assert "could not be embedded" in caplog.text
    assert await memory.count() == 2
    assert await found(memory, "kitten", 1) == ["My kitten sleeps"]
    await memory.set_goal("kitten?")
    assert "My kitten" in (await memory.context())[0].content
    embedder.embed = good
    await memory.update(said("later"))
    first = (await memory.recall("dog", where=lambda m: m.content != "kitten?"))[0]
    assert first.message.content == "My kitten sleeps"
    assert first.why["meaning"] > 0


async def test_minilm_without_its_download_says_once_what_to_do(monkeypatch, caplog) -> None:
    def fail(function, texts):
        raise ConnectionError("no route")

    monkeypatch.setattr(ONNXMiniLM_L6_V2, "__call__", fail)
    memory = VectorMemory(embedder="minilm")
    with caplog.at_level(logging.WARNING):
        for text in ("My kitten sleeps", "We drove home"):
            await memory.update(said(text))
    (record,) = caplog.records
    assert "recall finds them only by their words until the embedder works" in record.getMessage()
    assert "or 'wordllama', which downloads nothing" in record.getMessage()
    assert await found(memory, "kitten", 1) == ["My kitten sleeps"]


async def test_vectors_of_another_length_are_refused_before_anything_is_recorded(embedder) -> None:
    embedder.dimension = None
    memory = VectorMemory(embedder=embedder)
    await memory.update(said("My kitten sleeps"))
    embedder.makes = 16
    with pytest.raises(EmbedderMismatchError, match="reindex"):
        await memory.update(said("We drove home", "It rained"))
    assert await memory.count() == 1
    with pytest.raises(EmbedderMismatchError):
        await memory.recall("kitten")
    await memory.reindex()
    assert await found(memory, "dog", 1) == ["My kitten sleeps"]


async def test_another_embedder_of_one_name_is_refused_before_anything_is_recorded(
    tmp_path,
) -> None:
    async with VectorMemory(embedder=WordsEmbedder(None), path=tmp_path) as memory:
        await memory.update(said("My kitten sleeps"))
    other = WordsEmbedder(None)
    other.makes = 16
    memory = VectorMemory(embedder=other, path=tmp_path)
    with pytest.raises(EmbedderMismatchError, match="16 numbers"):
        await memory.update(said("We drove home"))
    await memory.aclose()
    async with VectorMemory(path=tmp_path) as later:
        assert [m.content for m in await later.messages()] == ["My kitten sleeps"]


async def test_what_is_embedded_before_it_is_recorded_is_embedded_once_and_kept(tmp_path) -> None:
    embedder = WordsEmbedder(None)
    async with VectorMemory(embedder=embedder, path=tmp_path) as memory:
        await memory.update(said("My kitten sleeps"))
        await memory.update(said("We drove home", "It rained"))
        assert embedder.texts == ["My kitten sleeps", "We drove home", "It rained"]
    again = WordsEmbedder(None)
    async with VectorMemory(embedder=again, path=tmp_path) as memory:
        assert await found(memory, "dog", 1) == ["My kitten sleeps"]
        assert again.texts == ["dog"]


async def test_a_reindex_says_that_the_embedder_fails(embedder) -> None:
    memory = VectorMemory(embedder=embedder)
    await memory.update(said("My kitten sleeps"))
    embedder.broken = True
    with pytest.raises(EmbeddingError, match="out of order"):
        await memory.reindex()
    assert await found(memory, "kitten", 1) == ["My kitten sleeps"]
    embedder.broken = False
    assert await found(memory, "dog", 1) == ["My kitten sleeps"]


async def test_one_text_that_no_model_takes_does_not_hold_up_the_others(embedder) -> None:
    embedder.hates = "poison"
    memory = VectorMemory(embedder=embedder)
    await memory.update(
        said(*[f"kitten {n}" for n in range(10)], "poison", *[f"car {n}" for n in range(10)])
    )
    for number in range(12):
        await memory.update(said(f"later {number}"))
        assert f"later {number}" in embedder.texts  # what is new goes first
    assert len({*embedder.texts}) == 32
    assert await found(memory, "poison", 1) == ["poison"]
    embedder.hates = None
    await memory.update(said("end"))
    assert "poison" in embedder.texts


async def test_a_question_is_asked_by_words_if_it_cannot_be_embedded(embedder) -> None:
    memory = VectorMemory(embedder=embedder)
    await memory.update(said("My kitten sleeps", "We drove home"))
    embedder.broken = True
    (first,) = await memory.recall("kitten", 1)
    assert first.message.content == "My kitten sleeps"
    assert "meaning" not in first.why


async def test_a_broken_embedder_is_asked_once_a_step(embedder) -> None:
    memory = VectorMemory(embedder=embedder, recent=2)
    await memory.update(said(*[f"kitten {n}" for n in range(5)]))
    await memory.set_goal("kitten?")
    embedder.broken = True
    await memory.update(said("a"))
    calls = embedder.calls
    for _ in range(3):
        await memory.context()
    assert embedder.calls == calls


class SlowEmbedder(WordsEmbedder):
    """Waits for a sign."""

    def __init__(self) -> None:
        super().__init__()
        self.slow = True
        self.started, self.go_on = anyio.Event(), anyio.Event()

    async def embed(self, texts):
        self.started.set()
        if self.slow:
            await self.go_on.wait()
        return await super().embed(texts)


async def test_an_update_that_is_cut_off_is_made_up_for() -> None:
    embedder = SlowEmbedder()
    memory = VectorMemory(embedder=embedder)
    async with anyio.create_task_group() as group:
        group.start_soon(memory.update, said("My kitten sleeps", "We drove home"))
        await embedder.started.wait()
        group.cancel_scope.cancel()
    embedder.slow = False
    assert await found(memory, "dog", 1) == ["My kitten sleeps"]
    assert embedder.texts == ["My kitten sleeps", "We drove home", "dog"]


@pytest.mark.parametrize("count", [3, 500])
async def test_an_update_that_is_cut_off_at_once_is_made_up_for(embedder, count) -> None:
    memory = VectorMemory(embedder=embedder)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await memory.update(said(*[f"kitten {n}" for n in range(count)]))
    if await memory.count():
        assert len(await found(memory, "kitten", count)) == count


async def test_a_slow_embedder_does_not_hold_up_the_context() -> None:
    embedder = SlowEmbedder()
    embedder.slow = False
    memory = VectorMemory(embedder=embedder, recent=2)
    await memory.update(said("My kitten sleeps", "a", "b", "c"))
    await memory.set_goal("kitten?")
    await memory.context()
    embedder.slow = True
    async with anyio.create_task_group() as group:
        embedder.started = anyio.Event()
        group.start_soon(memory.update, said("new"))
        await embedder.started.wait()
        assert (await memory.context())[-1].content == "new"
        embedder.go_on.set()


async def test_what_is_forgotten_while_it_is_embedded_stays_forgotten(tmp_path) -> None:
    embedder = SlowEmbedder()
    memory = VectorMemory(embedder=embedder, path=tmp_path)
    async with anyio.create_task_group() as group:
        group.start_soon(memory.update, said("My kitten sleeps", "We drove home"))
        await embedder.started.wait()
        await memory.forget(text="kitten")
        embedder.go_on.set()
    embedder.slow = False
    assert await found(memory, "dog kitten", 5, where=lambda m: "kitten" in m.content) == []
    await memory.aclose()
    assert len(await stored(memory)) == 1
    await store_of(memory).aclose()


async def test_what_is_forgotten_while_it_is_written_stays_forgotten(
    tmp_path, embedder, monkeypatch
) -> None:
    memory = VectorMemory(embedder=embedder, path=tmp_path)
    await memory.update(said(*[f"kitten {n}" for n in range(40)]))
    add, begun, go_on = store_of(memory).add, anyio.Event(), anyio.Event()

    async def slow_add(rows: Any) -> None:
        begun.set()
        await go_on.wait()
        await add(rows)

    monkeypatch.setattr(store_of(memory), "add", slow_add)
    async with anyio.create_task_group() as group:
        group.start_soon(memory._vectors.save)
        await begun.wait()
        group.start_soon(lambda: memory.forget(text="kitten 1"))
        await anyio.wait_all_tasks_blocked()
        go_on.set()
    left = await stored(memory)
    assert left == {m.id for m in await memory.messages()}
    assert len(left) == 29
    await memory.aclose()


async def test_what_is_said_anew_while_it_is_written_is_written_anew(
    tmp_path, embedder, monkeypatch
) -> None:
    memory = VectorMemory(embedder=embedder, path=tmp_path)
    await memory.update([Message.user("kitten", id="m"), *said("rain")])
    add = store_of(memory).add

    async def add_and_change(rows: Any) -> None:
        await add(rows)
        if memory.store.log.get("m") == first:
            await memory.delete("m")
            await memory.update([Message.user("truck", id="m")])

    first = await memory.get("m")
    monkeypatch.setattr(store_of(memory), "add", add_and_change)
    save = memory._vectors.save
    monkeypatch.setattr(memory._vectors, "save", _nothing)  # which delete() and update() call
    await save()
    keys = await store_of(memory).keys()
    assert key_of("m", "truck") in keys
    assert key_of("m", "kitten") not in keys
    await memory.aclose()


async def _nothing(**options: bool) -> None:
    pass
