"""What has changed is never shown as it was, in whatever order it is learned."""

from __future__ import annotations

import pytest

from agent_brain import MessagesMemory
from agent_brain.memories import Batch, Cited, Draft, UserMemory
from benchmarks.users.updates import Wrong, measure
from tests.memories.user.support import by_rules, day, said

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_changes_in_any_order() -> None:
    found = await measure(seed=0, rounds=6)
    assert found == Wrong(changes=found.changes, asked=found.asked)
    assert found.changes > 100


@pytest.mark.thorough
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_many_changes_in_any_order() -> None:
    found = await measure(seed=0)
    assert found == Wrong(changes=found.changes, asked=found.asked)
    assert found.changes > 500


async def learned(*days: float, texts: tuple[str, ...], back: str) -> UserMemory:
    """What is known when conversations of some days are learned in the order given."""
    user = UserMemory(extract=by_rules)
    for at, text in zip(days, texts, strict=True):
        chat = MessagesMemory()
        await chat.update([said(text, at)])
        await user.learn(chat)
    assert [fact.text for fact in await user.facts(slot="home")] == [back]
    return user


async def test_what_is_said_again_holds_over_what_arrives_late() -> None:
    again = ("I live in Paris", "I moved to Paris, again", "I moved to Porto")
    user = await learned(10, 200, 100, texts=again, back="Lives in Paris")
    for at, home in ((50, "Paris"), (150, "Porto"), (250, "Paris")):
        assert [f.text for f in await user.facts(as_of=day(at))] == [f"Lives in {home}"]
    other = UserMemory()
    await other.load(await user.export())
    assert [fact.text for fact in await other.facts()] == ["Lives in Paris"]


async def test_what_is_said_again_in_the_same_words_needs_no_extractor() -> None:
    same = ("I live in Paris", "I live in Paris", "I moved to Porto")
    user = await learned(10, 200, 100, texts=same, back="Lives in Paris")
    assert len(await user.facts(status="all")) == 2


async def test_a_denial_in_the_words_of_a_fact_is_new() -> None:
    user = UserMemory()
    await user.remember("Likes tea", source=said("I like tea"))
    assert await user.is_new("I do not like tea")
    assert not await user.is_new("I like tea")


async def test_a_known_fact_that_ends_is_stored() -> None:
    now = day(300)

    def until(batch: Batch) -> list[Draft]:
        source = (Cited(message=batch.messages[0].id, quote="I live in Paris"),)
        return [Draft(text="Lives in Paris", slot="home", sources=source, valid_to=day(150))]

    user = UserMemory(clock=lambda: now, extract=until)
    await user.remember("Lives in Paris", slot="home", source=said("I live in Paris", 1))
    chat = MessagesMemory()
    await chat.update([said("I live in Paris until May", 100)])
    await user.learn(chat)
    assert await user.facts() == []
    assert len(await user.facts(as_of=day(120))) == 1
