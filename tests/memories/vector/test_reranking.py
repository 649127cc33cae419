"""A function that orders what was found."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from agent_brain import Brain, Message, react
from agent_brain.memories import (
    LayeredMemory,
    MemoryDefinitionError,
    Recalled,
    VectorMemory,
    WindowedMemory,
)
from agent_brain.states import model_reranker
from agent_brain.testing import ScriptedLLM

pytestmark = pytest.mark.anyio

CATS = [f"cat {'cat ' * n}number {n}" for n in range(9)]


class Longest:
    """Orders by length, and notes what it was given."""

    def __init__(self) -> None:
        self.given: list[tuple[str, int]] = []

    def __call__(self, query: str, found: list[Recalled]) -> list[Recalled]:
        self.given.append((query, len(found)))
        return sorted(found, key=lambda item: -len(item.message.content))


async def told(memory: VectorMemory) -> None:
    await memory.update([Message.user(text) for text in CATS])


async def test_the_best_of_three_times_as_many_are_returned() -> None:
    rerank = Longest()
    memory = VectorMemory(rerank=rerank)
    await told(memory)
    found = await memory.recall("cat", k=2)
    assert [item.message.content for item in found] == CATS[:-3:-1]
    assert rerank.given == [("cat", 6)]
    again = await (await memory.fork()).recall("cat", k=2)
    assert [item.message.content for item in again] == CATS[:-3:-1]
    assert await memory.recall("dog") == []
    assert len(rerank.given) == 1  # nothing was found, or the same was known


async def test_what_is_shown_is_ordered_too_and_asked_for_once() -> None:
    rerank = Longest()

    async def later(query: str, found: list[Recalled]) -> list[Recalled]:
        return rerank(query, found)[:1]

    memory = VectorMemory(recent=1, k=2, rerank=later)
    await told(memory)
    await memory.set_goal("Which cat?")
    for answer in ("hm", "well"):
        await memory.update([Message.assistant(answer)])
        (block, *_) = await memory.context()
        assert block.content.count("\n- ") == 1
        assert CATS[-1] in block.content
    assert rerank.given == [("Which cat?", 6)]


async def test_a_long_term_memory_of_many_sessions_orders_what_it_recalls(tmp_path) -> None:
    place: dict[str, Any] = {"journal": tmp_path / "cats.db", "tenant": "ann"}
    async with VectorMemory(**place, session="one") as one:
        await told(one)
    async with VectorMemory(**place, session="two", rerank=Longest()) as two:
        await two.update([Message.user("cat")])
        found = await two.recall("cat", k=1, scope="tenant")
        assert [(item.message.content, item.session) for item in found] == [(CATS[-1], "one")]
        memory = LayeredMemory(WindowedMemory(), two, k=1)
        await memory.set_goal("my cat")
        assert (await memory.recall("cat", k=1))[0].message.content == "cat"


@pytest.mark.parametrize(
    "rerank",
    [lambda query, found: 1 / 0, lambda query, found: None, lambda query, found: ["cat"]],
)
async def test_a_function_that_fails_changes_nothing(rerank, caplog) -> None:
    plain, memory = VectorMemory(), VectorMemory(rerank=rerank)
    await told(plain)
    await told(memory)
    with caplog.at_level(logging.WARNING):
        found = await memory.recall("cat", k=3)
    wanted = await plain.recall("cat", k=3)
    assert [item.message.content for item in found] == [item.message.content for item in wanted]
    assert "The reranker failed" in caplog.text


async def test_what_was_not_found_or_is_named_twice_is_not_shown() -> None:
    def inventive(query: str, found: list[Recalled]) -> list[Recalled]:
        return [Recalled(Message.user("a dog"), 1, {}), found[1], found[1], found[0]]

    memory = VectorMemory(rerank=inventive)
    await told(memory)
    found = await memory.recall("cat", k=9)
    assert len(found) == 2
    assert "dog" not in found[0].message.content
    with pytest.raises(MemoryDefinitionError, match="rerank= takes a function"):
        VectorMemory(rerank="model")  # type: ignore[arg-type]


async def test_a_model_that_orders_is_work_of_the_run() -> None:
    llm = ScriptedLLM(["[9]"])
    memory = VectorMemory(recent=1, k=9, rerank=model_reranker(llm))
    await told(memory)
    brain = Brain(react(answers := ScriptedLLM(["That one."])), memory)
    result = await brain.run("Which cat?")
    assert result.usage.requests == 2
    assert len(llm.calls) == len(answers.calls) == 1
