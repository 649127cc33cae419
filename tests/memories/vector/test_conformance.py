"""The memory behaves as every memory does, wherever its vectors are; and runs do, over it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import chromadb
import pytest

from agent_brain import Brain
from agent_brain.memories import VectorMemory, create_memory
from agent_brain.testing import ScriptedLLM, memory_conformance
from agent_brain.testing.conformance.journaled import JOURNALED
from agent_brain.tools import Action, tool
from tests.memories.vector.support import WordsEmbedder, found, said
from tests.support.conformance import pass_all

pytestmark = pytest.mark.anyio
numbers = iter(range(1_000))


def words() -> VectorMemory:
    return VectorMemory()


def in_ram() -> VectorMemory:
    return VectorMemory(embedder=WordsEmbedder())


def in_memory_chroma() -> VectorMemory:
    client, session = chromadb.EphemeralClient(), f"conformance {next(numbers)}"
    return VectorMemory(embedder=WordsEmbedder(), client=client, session=session)


@pytest.mark.parametrize("make", [words, in_ram, in_memory_chroma])
async def test_it_behaves_as_every_memory_does(make) -> None:
    await pass_all(memory_conformance(make, query_face=True))


@pytest.mark.thorough
@pytest.mark.parametrize("place", ["folder", "server"])
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_it_behaves_as_every_memory_does_where_it_is_kept(
    place, tmp_path: Path, request
) -> None:
    made: list[VectorMemory] = []

    def make() -> VectorMemory:
        session = f"{tmp_path} {next(numbers)}"
        where: dict[str, Any] = {"path": tmp_path}
        if place == "server":
            where = {"url": request.getfixturevalue("server").url}
        made.append(VectorMemory(embedder=WordsEmbedder(), session=session, **where))
        return made[-1]

    for check in memory_conformance(make, query_face=True):
        await check()
        while made:
            await made.pop().aclose()


async def test_it_lasts() -> None:
    def make(journal, session, tenant):
        return VectorMemory(
            journal=journal, session=session, tenant=tenant, embedder=WordsEmbedder(), client=client
        )

    client = chromadb.EphemeralClient()
    await pass_all(memory_conformance(words, journaled=make)[-len(JOURNALED) :])


@tool
def look(place: str) -> str:
    """Look somewhere."""
    return f"there is a kitten in the {place}"


async def test_react_runs_over_it_by_one_parameter(tmp_path) -> None:
    options = {"path": str(tmp_path), "embedder": WordsEmbedder(), "recent": 4}
    llm = ScriptedLLM(
        [
            *[Action(name="look", args={"place": place}) for place in ("attic", "cellar", "shed")],
            "It is in the attic.",
            "As I said: the attic.",
        ]
    )
    async with Brain(memory="vector", tools=[look], llm=llm, memory_options=options) as brain:
        assert (
            await brain.run("Where is the kitten of the attic?")
        ).answer == "It is in the attic."
        result = await brain.run("Say again where the kitten in the attic is")
    llm.assert_complete()
    assert result.answer == "As I said: the attic."
    seen = llm.calls[-1].messages
    assert any("recalled" in message.metadata for message in seen)
    async with create_memory("Vector", path=tmp_path, embedder=WordsEmbedder()) as memory:
        assert "there is a kitten in the shed" in await found(memory, "shed", 3)
        await memory.update(said("later"))
