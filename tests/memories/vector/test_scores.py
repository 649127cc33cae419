"""Newer facts before older ones; scores that can be compared between questions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from agent_brain.memories import MemoryUseError, Message, VectorMemory
from benchmarks.minilm import minilm
from tests.memories.vector.support import found, said

pytestmark = pytest.mark.anyio

TALK = [
    "We should paint the kitchen before the winter",
    "The train to Kiel was late again",
    "Do you know a good dentist?",
    "I baked bread with rye flour this morning",
    "The printer in the hall is out of paper",
    "Our neighbours have a new puppy",
    "The film about the lighthouse was long",
    "I will water the tomatoes tonight",
]
FACTS = [
    ("My favourite colour is blue", "My favourite colour is green", "What is my favourite colour?"),
    ("I live in Paris", "I live in Rome", "Where do I live?"),
    ("My phone number is 5551234", "My phone number is 5559876", "What is my phone number?"),
    ("The wifi password is sunflower", "The wifi password is marigold", "The wifi password?"),
]


@pytest.fixture(params=["words", "minilm"])
def embedder(request):
    return minilm() if request.param == "minilm" else None


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(("one", "other", "question"), FACTS)
async def test_of_two_facts_that_fit_equally_the_newer_is_recalled_first(
    embedder, one, other, question, swapped
) -> None:
    older, newer = (other, one) if swapped else (one, other)
    memory = VectorMemory(embedder=embedder)
    await memory.update(said(*TALK[:3], older, *TALK[3:6], newer, *TALK[6:]))
    assert await found(memory, question, 2) == [newer, older]


async def test_newer_goes_by_the_time_of_a_message_and_not_by_its_place(embedder) -> None:
    now = datetime.now(UTC)
    memory = VectorMemory(embedder=embedder)
    await memory.update(
        [
            *said(*TALK[:4]),
            Message.user("I live in Rome", created_at=now),
            *said(*TALK[4:]),
            Message.user("I live in Paris", created_at=now - timedelta(days=300)),
        ]
    )
    assert await found(memory, "Where do I live?", 1) == ["I live in Rome"]


async def test_what_another_speaker_says_of_themselves_is_another_fact() -> None:
    memory = VectorMemory()
    await memory.update(
        [Message.user("I live in Paris", name="Ann"), Message.user("I live in Rome", name="Bob")]
    )
    assert await found(memory, "Where does Ann live?", 1) == ["I live in Paris"]


async def test_the_reasons_add_up_to_the_score(embedder) -> None:
    memory = VectorMemory(embedder=embedder)
    await memory.update(said(*TALK, "I live in Paris", "I live in Rome"))
    for hit in await memory.recall("Where do I live in Kiel?", 10):
        assert sum(hit.why.values()) == pytest.approx(hit.score, abs=1e-5)
        assert hit.score <= 1


@pytest.mark.parametrize("size", [1, 2, 3, 8])
async def test_a_question_that_nothing_answers_scores_low(embedder, size) -> None:
    memory = VectorMemory(embedder=embedder)
    await memory.update(said(*TALK[:size]))
    for question in ("kitchen paint before winter", "paint the kitchen"):
        answered = await memory.recall(question, 1, min_score=0.35)
        assert [hit.message.content for hit in answered] == [TALK[0]]
    for question in ("Who won the chess tournament?", "salary of the accountant in 1987"):
        assert await memory.recall(question, min_score=0.35) == []


async def test_scores_do_not_depend_on_filters_or_on_how_many_are_asked_for(embedder) -> None:
    memory = VectorMemory(embedder=embedder)
    await memory.update(said(*TALK))
    whole = {hit.message.id: hit.score for hit in await memory.recall("late train to Kiel", 8)}
    (first,) = await memory.recall("late train to Kiel", 1)
    assert whole[first.message.id] == first.score
    rest = await memory.recall("late train to Kiel", 3, where=lambda m: "train" not in m.content)
    assert all(whole[hit.message.id] == hit.score for hit in rest)


async def test_the_block_in_the_context_has_only_what_fits_well_enough(embedder) -> None:
    memory = VectorMemory(embedder=embedder, recent=1, min_score=0.35)
    await memory.update(said(*TALK))
    await memory.set_goal("Who won the chess tournament?")
    assert len(await memory.context()) == 1
    assert await memory.recall("Who won the chess tournament?", 9, min_score=0.35) == []
    await memory.set_goal("When will we paint the kitchen?")
    assert TALK[0] in (await memory.context())[0].content


@pytest.mark.parametrize("score", [-0.1, 1.5])
async def test_a_score_that_is_none_is_refused(score) -> None:
    with pytest.raises(MemoryUseError, match="from 0 to 1"):
        VectorMemory(min_score=score)
    memory = VectorMemory()
    with pytest.raises(MemoryUseError, match="from 0 to 1"):
        await memory.recall("x", min_score=score)
