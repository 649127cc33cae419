"""Forgetting what is known, down to the bytes that every store has."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from agent_brain import Brain, Message, MessagesMemory
from agent_brain.memories import (
    Batch,
    Draft,
    Journal,
    MemoryUseError,
    RamJournal,
    UserMemory,
    delete_session,
    forget_in_sessions,
)
from agent_brain.memories.embedders import FunctionEmbedder
from agent_brain.states.events import FactsLearned
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action, ToolContext, tool
from tests.memories.forgetting.stores import STORES, on_disk, open_store
from tests.memories.forgetting.test_memories import embed
from tests.memories.user.support import by_rules, day, said
from tests.support.thorough import first_of

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


@pytest.mark.parametrize(
    ("kind", "choice"),
    first_of(
        product(STORES, CHOICES),
        *product(["sqlite"], CHOICES),
        *product(STORES[:1] + STORES[2:], ["everything", "text"]),
    ),
)
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


WRITTEN = {  # as it is forgotten, and as it was said
    "nfd": ("São Tomé", "Sa\u0303o Tome\u0301", "Tome"),
    "nfc": ("Sa\u0303o Tome\u0301", "São Tomé", "Tom"),
    "line break": ("Baker Street", "Baker\nStreet", "Baker"),
    "no break": ("Baker Street", "Baker\u00a0Street", "Baker"),
    "two spaces": ("baker\tstreet", "Baker  Street", "Baker"),
    "marks": ("O'Brien-Hall", "O’Brien‑Hall", "Brien"),
}


@pytest.mark.parametrize(
    ("kind", "way"),
    first_of(product(STORES, WRITTEN), *product(["ram"], WRITTEN), *product(STORES[1:], ["nfd"])),
)
async def test_a_text_is_found_however_it_is_written(kind: str, way: str, tmp_path: Path) -> None:
    text, written, gone = WRITTEN[way]
    async with open_store(kind, tmp_path) as store:
        user = UserMemory(journal=store.journal, tenant="ann", extract=by_rules)
        place = {"journal": store.journal, "session": "may", "tenant": "ann"}
        llm = ScriptedLLM([f"You said: {written}."])
        async with Brain("react", memory_options=place, llm=llm, user=user, trace=True) as brain:
            await brain.run(f"I like tea. Meet me in {written}!")
        await user.remember(f"Goes to {written}")
        await user.edit_block("place", f"In {written}")
        assert gone.encode() in await store.scan()
        await user.forget(text=text)
        assert gone.encode() not in await store.scan()
        assert [fact.text for fact in await user.facts()] == ["Likes tea"]


async def heard(journal: Journal | None, **conversations: list[Message]) -> None:
    """Have conversations of Ann, in which nobody answers."""
    for name, messages in conversations.items():
        async with MessagesMemory(journal=journal, session=name, tenant="ann") as chat:
            await chat.update(messages)


async def contents(journal: Journal, session: str) -> list[str]:
    chat = MessagesMemory(journal=journal, session=session, tenant="ann")
    return [message.content for message in await chat.dump()]


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("order", [("monday", "tuesday"), ("tuesday", "monday")])
async def test_a_fact_that_another_conversation_tells_too_stays_with_that_source(
    kind: str, order: tuple[str, str], tmp_path: Path
) -> None:
    async with open_store(kind, tmp_path) as store:
        monday = [said("I live in Porto, finally", 1), said("I like tea", 1)]
        tuesday = [said("As I live in Porto, where is a dentist?", 2)]
        await heard(store.journal, monday=monday, tuesday=tuesday, friday=[said("I like tea", 5)])
        user = UserMemory(journal=store.journal, tenant="ann", extract=by_rules)
        await user.learn(*order)
        # What was said before and is learned later is a fact of its own, and replaced at once.
        assert await user.forget(conversation="monday") == 1 + order.index("monday")
        assert await contents(store.journal, "tuesday") == [tuesday[0].content]
        assert await contents(store.journal, "friday") == ["I like tea"]  # not read yet
        assert b"finally" not in await store.scan()
        (home,) = await user.facts()
        assert [source.message for source in home.sources] == [tuesday[0].id]
        assert (home.text, home.said_at) == ("Lives in Porto", day(2))
        again = UserMemory(journal=store.journal, tenant="ann")
        assert await again.facts() == [home]
        assert await again.forget(conversation="tuesday") == 1
        assert b"Porto" not in await store.scan()


async def test_a_fact_that_is_known_as_the_user_says_it_among_other_things_has_that_source() -> (
    None
):
    asked: list[Batch] = []

    def only_new(batch: Batch) -> list[Draft]:  # as models are told to
        asked.append(batch)
        return by_rules(batch) if not batch.facts else []

    user = UserMemory(extract=only_new)
    first, *others = (MessagesMemory() for _ in range(4))
    more = "I live in Porto and need a dentist"
    texts = ["I live in Porto", more, "Do I live in Porto?", "I never said that I live in Porto"]
    for at, (chat, text) in enumerate(zip((first, *others), texts, strict=True)):
        await chat.update([said(text, at)])
        await user.learn(chat)
    (home,) = await user.facts()
    assert [source.quote for source in home.sources] == ["I live in Porto", "I live in Porto"]
    assert len({source.message for source in home.sources}) == 2
    assert len(asked) > 1


@pytest.mark.parametrize("kind", STORES)
async def test_what_says_that_a_fact_was_told_again_is_forgotten_with_it(
    kind: str, tmp_path: Path
) -> None:
    async with open_store(kind, tmp_path) as store:
        told = {"monday": [said("I love Zebracakes", 1)], "tuesday": [said("I like Zebracakes", 2)]}
        await heard(store.journal, **told)
        user = UserMemory(journal=store.journal, tenant="ann", extract=by_rules)
        await user.learn("monday")
        await user.learn("tuesday")
        (fact,) = await user.facts()
        assert len(fact.sources) == 2
        assert await user.forget(fact.id) == 1
        assert b"Zebracakes" not in await store.scan()


async def test_an_older_fact_in_the_same_words_holds_again_without_the_later_conversation() -> None:
    async with RamJournal() as journal:
        old = said("I live in Porto, finally", 1)
        await heard(journal, monday=[old], tuesday=[said("I moved to Porto", 9)])
        user = UserMemory(journal=journal, tenant="ann", extract=by_rules)
        await user.learn("tuesday", "monday")
        assert await user.forget(conversation="tuesday") == 1
        (home,) = await user.facts()
        assert (home.text, home.sources[0].message) == ("Lives in Porto", old.id)
        assert await contents(journal, "monday") == [old.content]


async def test_what_the_program_knows_stays_without_a_conversation() -> None:
    async with RamJournal() as journal:
        user = UserMemory(journal=journal, tenant="ann", extract=by_rules)
        await heard(journal, monday=[said("I like tea", 1)], tuesday=[said("I like milk", 1)])
        await user.learn("tuesday")
        for text in ("Likes tea", "Likes milk"):
            await user.remember(text)
        await user.learn("monday")
        for conversation in ("monday", "tuesday"):
            assert await user.forget(conversation=conversation) == 0
        known = {fact.text: (fact.origin, fact.sources) for fact in await user.facts()}
        assert known == dict.fromkeys(("Likes tea", "Likes milk"), ("program", ()))


async def test_a_conversation_is_forgotten_with_its_copies_in_forks_and_what_these_told() -> None:
    async with RamJournal() as journal:
        await heard(journal, monday=[said("I live in Porto", 1)])
        async with MessagesMemory(journal=journal, session="monday", tenant="ann") as chat:
            await chat.fork(journal=journal, session="copy", tenant="ann")
        await heard(journal, copy=[said("I like tea", 2)])
        user = UserMemory(journal=journal, tenant="ann", extract=by_rules)
        await user.learn("copy")
        await user.learn("monday")
        assert await user.forget(conversation="monday") == 1
        assert [fact.text for fact in await user.facts()] == ["Likes tea"]
        assert await contents(journal, "copy") == ["I like tea"]


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


async def test_a_model_forgets_a_slot_only_when_it_knows_how_much_that_is(tmp_path: Path) -> None:
    async with open_store("sqlite", tmp_path) as store:
        user = await months_of(store.journal)
        facts = len(await user.facts(status="all"))

        def again(messages: list[Message]) -> list[Action]:
            expected = re.search(r"expect=(\d+)", messages[-1].content)
            assert expected is not None, messages[-1].content
            return [Action(name="forget", args={"slot": "home", "expect": int(expected[1])})]

        llm = ScriptedLLM(
            [
                [Action(name="forget", args={"slot": "home", "expect": 99})],
                again,
                [Action(name="forget", args={"slot": "home"})],
                "Done.",
            ]
        )
        place = {"journal": store.journal, "session": "august", "tenant": "ann"}
        async with Brain("react", memory_options=place, llm=llm, user=user) as brain:
            run = brain.stream("Forget where I live and have lived")
            async with run as events:
                async for event in events:
                    if event.kind == "action_finished" and len(llm.calls) == 1:
                        assert len(await user.facts(status="all")) == facts
        results = [call.messages[-1].content for call in llm.calls[1:]]
        assert "would forget 2 facts" in results[0]
        assert results[1:] == [
            "Forgotten.",
            "Nothing is known about that, and no message says so.",
        ]
        assert [fact.text for fact in await user.facts(status="all")] == ["Likes tea"]
        after = await store.scan()
        assert b"Zebraville" not in after
        assert b"I like tea" in after


async def test_a_model_is_told_what_is_left_when_it_forgets_a_fact() -> None:
    user = UserMemory()
    await user.remember("Lives in Paris", slot="home", source=said("Paris", 1))
    porto = await user.remember("Lives in Porto", slot="home", source=said("Porto", 2))
    calls = [
        Action(name="forget", args={"fact_id": porto.id}),
        Action(name="forget", args={"fact_id": porto.id, "slot": "home"}),
        Action(name="forget", args={"text": "P"}),
    ]
    llm = ScriptedLLM([*([call] for call in calls), "Done."])
    async with Brain("react", llm=llm, user=user) as brain:
        await brain.run("Forget where I live now")
    results = [call.messages[-1].content for call in llm.calls[1:]]
    assert results[0] == "Forgotten. Other values of slot 'home' are still known."
    assert "forget() takes one choice" in results[1]
    assert "is too short" in results[2]


class Kept(UserMemory):
    """Refuses to forget."""

    async def forget(self, *_: Any, **choice: Any) -> int:
        raise MemoryUseError(f"Not allowed: {choice['slot']}")


async def test_a_model_forgets_as_the_program_does() -> None:
    user = Kept()
    await user.remember("Lives in Porto", slot="home")
    llm = ScriptedLLM([Action(name="forget", args={"slot": "home", "expect": 1}), "No."])
    async with Brain("react", llm=llm, user=user) as brain:
        result = await brain.run("Forget where I live.")
    assert any("Not allowed: home" in message.content for message in result.messages)
    assert await user.facts(slot="home")


async def test_a_choice_is_needed() -> None:
    user = UserMemory()
    for which in ({}, {"slot": "home", "text": "Paris"}, {"text": "x"}):
        with pytest.raises(MemoryUseError):
            await user.forget(**which)  # type: ignore[arg-type]
    with pytest.raises(MemoryUseError, match="No fact has the ID"):
        await user.forget("fact_0")


async def test_blocks_that_are_too_large_or_too_many_are_not_loaded() -> None:
    user, other = UserMemory(), UserMemory()
    for number in range(20):
        await user.edit_block(f"block {number}", "text")
    exported = await user.export()
    (first, *_) = exported["blocks"]
    large, more = first | {"text": "a" * 2_001}, first | {"name": "one more"}
    with pytest.raises(MemoryUseError, match="at most 2000"):
        await other.load(exported | {"blocks": [large]})
    with pytest.raises(MemoryUseError, match="at most 20 blocks"):
        await other.load(exported | {"blocks": [*exported["blocks"], more]})
    assert await other.blocks() == []
    await other.load(exported)
    assert await other.blocks() == await user.blocks()


async def test_an_old_version_of_a_block_that_is_loaded_is_not_the_newest() -> None:
    user = UserMemory()
    await user.edit_block("project", "A house by the sea")
    exported = await user.export()
    await user.edit_block("project", "A garden")
    await user.forget(text="by the sea")
    await user.load(exported)
    assert [block.text for block in await user.blocks()] == ["A garden"]
    assert [block.version for block in await user.block_history("project")] == [1, 2]
    assert (await user.edit_block("project", "A pond", expect=2)).version == 3


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
    with pytest.raises(MemoryUseError, match="neither facts nor blocks"):
        await other.load({"version": 1})
    for part in ("facts", "blocks"):
        assert await other.load({"version": 1, part: exported[part]}) == 0
    with pytest.raises(MemoryUseError, match="takes what export"):
        await other.load({"version": 1, "facts": [{"text": "x"}]})


def chat(user: UserMemory, session: str, *replies: Any, tools: Any = ()) -> Brain:
    place = {"journal": user.journal, "session": session, "tenant": user.tenant}
    return Brain(
        "react", memory_options=place, llm=ScriptedLLM([*replies]), user=user, tools=[*tools]
    )


async def told_in(user: UserMemory, session: str = "other") -> list[FactsLearned]:
    """What the reader of a run is told."""
    async with chat(user, session, "Ok.") as brain, brain.stream("Hi") as run:
        return [event async for event in run if isinstance(event, FactsLearned)]


@pytest.mark.parametrize("choice", [{"everything": True}, {"conversation": "secret"}])
async def test_what_is_forgotten_is_told_to_nobody(choice: dict[str, Any]) -> None:
    user = UserMemory(journal=RamJournal(), tenant="ann", extract=by_rules)
    async with chat(user, "secret", "Ok.") as brain:
        await brain.run("I like plums")
    assert len(user.untold) == 1
    await user.forget(**choice)
    assert (user.untold, await told_in(user)) == ([], [])


async def test_facts_that_were_forgotten_elsewhere_are_told_to_nobody() -> None:
    user = UserMemory(journal=RamJournal(), tenant="ann", extract=by_rules)
    async with chat(user, "monday", "Ok.") as brain:
        await brain.run("I like plums and I like tea")
    assert user.journal is not None
    await forget_in_sessions(user.journal, tenant="ann", text="plums")
    (tea,) = await user.facts()
    assert [event.added for event in await told_in(user)] == [(tea.id,)]


async def test_a_deleted_session_is_told_to_nobody_and_one_elsewhere_is() -> None:
    user = UserMemory(journal=RamJournal(), tenant="ann", extract=by_rules)
    here = MessagesMemory(journal=user.journal, session="here", tenant="ann")
    elsewhere = MessagesMemory(journal=RamJournal(), session="elsewhere", tenant="ann")
    nowhere = MessagesMemory()
    for memory in (here, elsewhere, nowhere):
        await memory.update([said("I like plums")])
        await user.learn(memory)
    assert user.journal is not None
    await delete_session(user.journal, "here", tenant="ann")
    assert [event.session for event in await told_in(user)] == ["elsewhere", None]


@pytest.mark.parametrize("choice", [{"everything": True}, {"conversation": "own"}])
async def test_a_run_cannot_forget_its_own_conversation(choice: dict[str, Any]) -> None:
    @tool
    async def wipe(context: ToolContext) -> int:
        """Forget this chat."""
        return await user.forget(running=context.memory, **choice)

    user = UserMemory(journal=RamJournal(), tenant="ann")
    await user.remember("Likes tea")
    async with chat(user, "a", "Ok.") as brain:
        await brain.run("First")
    async with chat(user, "own", "One.", Action(name="wipe"), "Done.", tools=[wipe]) as brain:
        await brain.run("First")
        result = await brain.run("Forget all of it")
    (refused,) = [message.content for message in result.messages if message.is_error]
    assert "cannot forget its own conversation" in refused
    assert user.journal is not None
    assert await contents(user.journal, "a") == ["Ok."]
    assert (await contents(user.journal, "own"))[:2] == ["First", "One."]
    assert len(await user.facts()) == 1
    assert await user.forget(**choice) == int("everything" in choice)
    assert "own" not in await user.journal.sessions()


@pytest.mark.parametrize("journal", [None, RamJournal()], ids=["RAM", "journal"])
async def test_what_is_learned_after_everything_is_shown_in_its_place(
    journal: Journal | None,
) -> None:
    user = UserMemory(journal=journal, tenant="ann")
    chat = user.over(MessagesMemory())
    await chat.set_goal("What do you know?")

    async def shown() -> str:
        return "".join(message.content for message in (await chat.context())[:-1])

    await user.remember("Likes tea")
    assert "Likes tea" in await shown()
    await user.forget(everything=True)
    await user.remember("Lives in Porto")
    assert "Lives in Porto" in await shown()
    assert "tea" not in await shown()
    await user.forget(everything=True)
    assert await shown() == ""
