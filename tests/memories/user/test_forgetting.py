"""Forgetting what is known, down to the bytes that every store has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_brain import Brain, MessagesMemory
from agent_brain.memories import Journal, MemoryUseError, UserMemory, forget_in_sessions
from agent_brain.memories.embedders import FunctionEmbedder
from agent_brain.testing import ScriptedLLM
from tests.memories.forgetting.stores import STORES, on_disk, open_store
from tests.memories.forgetting.test_memories import embed
from tests.memories.user.support import by_rules, day, said

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]


async def months_of(journal: Journal) -> UserMemory:
    """Ann's memory: she lived in Paris, then in Zebraville, likes tea, and asked about it."""
    user = UserMemory(journal=journal, tenant="ann", extract=by_rules)
    talks = {
        "may": ["I live in Paris", "I like tea"],
        "june": ["I moved to Zebraville"],
        "july": ["Where do I live?"],
    }
    for month, questions in talks.items():
        place = {"journal": journal, "session": month, "tenant": "ann"}
        llm = ScriptedLLM(["Noted, you said."] * len(questions))
        brain = Brain("react", memory_options=place, llm=llm, user=user, trace=True)
        async with brain:
            for question in questions:
                await brain.run(question)
            await brain.memory.inner.fork(journal=journal, session=f"copy of {month}", tenant="ann")  # type: ignore[attr-defined]
    await user.edit_block("project", "A house, she lives in Zebraville")
    await user.edit_block("taste", "Likes tea")
    chat = MessagesMemory(journal=journal, session="may", tenant="bob")
    await chat.update([said("I live in Paris too")])
    return user


CHOICES: dict[str, tuple[dict[str, Any], list[str], list[str]]] = {
    "slot": ({"slot": "home"}, ["Zebraville", "in Paris"], ["tea"]),
    "text": ({"text": "zebraville"}, ["Zebraville"], ["tea", "Paris"]),
    "person": ({"about": "user"}, ["Zebraville", "tea", "in Paris"], []),
    "conversation": ({"conversation": "may"}, ["I like tea"], ["Zebraville"]),
    "everything": ({"everything": True}, ["Zebraville", "tea", "Noted"], []),
}


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("choice", CHOICES)
async def test_no_byte_of_it_remains(kind: str, choice: str, tmp_path: Path) -> None:
    which, gone, kept = CHOICES[choice]
    async with open_store(kind, tmp_path) as store:
        user = await months_of(store.journal)
        await MessagesMemory(journal=store.journal, session="may", tenant="bob").clear()
        before = await store.scan()
        assert b"Zebraville" in before
        assert await user.forget(**which) >= 1
        after = await store.scan()
        for text in gone:
            assert text.encode() not in after, text
        for text in kept:
            assert text.encode() in after, text
        again = UserMemory(journal=store.journal, tenant="ann")
        assert not [f for f in await again.facts() if f.slot == "home" and "Paris" in f.text] or (
            choice == "conversation"
        )


async def test_what_was_replaced_stays_so_when_its_successor_is_forgotten() -> None:
    user = UserMemory()
    await user.remember("Lives in Paris", slot="home", source=said("Paris", 1))
    porto = await user.remember("Lives in Porto", slot="home", source=said("Porto", 100))
    assert await user.forget(porto.id) == 1
    assert await user.facts() == []
    (paris,) = await user.facts(status="all")
    assert (paris.status, paris.valid_to) == ("ended", day(100))
    assert [fact.text for fact in await user.facts(as_of=day(50))] == ["Lives in Paris"]


async def test_forgetting_in_all_sessions_reaches_what_is_known(tmp_path: Path) -> None:
    async with open_store("sqlite", tmp_path) as store:
        user = await months_of(store.journal)
        await forget_in_sessions(store.journal, tenant="ann", text="Zebraville")
        assert b"Zebraville" not in await store.scan()
        assert [fact.text for fact in await user.facts()] == ["Likes tea"]
        assert [block.name for block in await user.blocks()] == ["taste"]


async def test_no_byte_remains_among_vectors_and_forks(tmp_path: Path) -> None:
    place: dict[str, Any] = {"tenant": "ann", "path": tmp_path / "known"}
    place["embedder"] = FunctionEmbedder(embed)
    user = UserMemory(**place, extract=by_rules)
    async with user:
        assert user.journal is not None
        chat = MessagesMemory(journal=user.journal, session="may", tenant="ann")
        await chat.update([said("I live in Zebraville"), said("I like tea")])
        await chat.fork(journal=user.journal, session="copy", tenant="ann")
        await user.learn("may")
        before = await user.recall("Where is home, Zebraville?")
        assert before[0].text == "Lives in Zebraville"
        assert b"Zebraville" in on_disk(tmp_path)
        await user.forget(text="Zebraville")
        assert [fact.text for fact in await user.facts()] == ["Likes tea"]
        kept, gone = (fact.id.encode() for fact in (await user.facts())[:1] + before[:1])
    assert b"Zebraville" not in on_disk(tmp_path)
    vectors = on_disk(tmp_path / "known" / "vectors")
    assert kept in vectors
    assert gone not in vectors


async def test_a_choice_is_needed() -> None:
    user = UserMemory()
    for which in ({}, {"slot": "home", "text": "Paris"}, {"text": "x"}):
        with pytest.raises(MemoryUseError):
            await user.forget(**which)  # type: ignore[arg-type]
    with pytest.raises(MemoryUseError, match="No fact has the ID"):
        await user.forget("fact_0")


async def test_what_is_known_is_exported_and_loaded() -> None:
    user, other = UserMemory(), UserMemory()
    await user.remember("Lives in Paris", slot="home", source=said("I live in Paris", 1))
    await user.remember("Lives in Porto", slot="home", source=said("I moved to Porto", 2))
    await user.edit_block("project", "A house")
    exported = await user.export()
    assert await other.load(exported) == 2
    assert await other.load(exported) == 0
    assert await other.export() == exported
    with pytest.raises(MemoryUseError, match="version 1"):
        await other.load({"version": 2})
    with pytest.raises(MemoryUseError, match="not what export"):
        await other.load({"version": 1, "facts": [{"text": "x"}]})
