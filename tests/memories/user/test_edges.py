"""What is known about a user, at its edges: windows, other memories, wrong input, runs in progress."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_brain import Brain, Message, MessagesMemory, WindowedMemory, create_memory
from agent_brain.memories import (
    Cited,
    Draft,
    JournalError,
    MemoryDefinitionError,
    MemoryUseError,
    RamJournal,
    SQLiteJournal,
    UserMemory,
    list_sessions,
)
from agent_brain.testing import FakeMemory, ScriptedLLM
from tests.memories.user.support import by_rules, day, said

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("kind", ["windowed", "summary", "layered"])
async def test_what_has_left_a_window_is_learned_too(kind: str, tmp_path: Path) -> None:
    async with SQLiteJournal(tmp_path / "agents.db") as journal:
        user = UserMemory(journal=journal, tenant="ann", extract=by_rules)
        place: dict[str, Any] = {"journal": journal, "session": "long", "tenant": "ann"}
        memory = create_memory(kind, max_messages=4, **place)
        async with user.over(memory):
            for n in range(30):
                await memory.update([said(f"I like food{n}", n)])
        assert len(await user.facts()) == 30
        assert (await user.learn()).messages == 0


async def test_many_messages_are_read_in_one_pass() -> None:
    batches = []

    def extract(batch: Any) -> list[Draft]:
        batches.append((len(batch.messages), len(batch.seen)))
        return []

    journal = RamJournal()
    chat = MessagesMemory(journal=journal, session="long", tenant="ann")
    await chat.update([said(f"I like food{n}", n / 24) for n in range(150)])
    user = UserMemory(journal=journal, tenant="ann", extract=extract)
    assert (await user.learn("long")).messages == 150
    assert batches[0] == (20, 0)
    assert batches[-1] == (10, 100)


async def test_a_memory_of_four_methods_is_learned_from() -> None:
    user = UserMemory(extract=by_rules)
    fake = FakeMemory()
    async with user.over(fake):
        await fake.set_goal(said("I live in Porto", 1))
        await fake.update([Message.assistant("Nice")])
    assert [fact.text for fact in await user.facts()] == ["Lives in Porto"]


@pytest.mark.parametrize(
    ("known", "text"),
    [
        ("Likes tea", "I do not like tea"),
        ("Is vegan", "I'm not vegan"),
        ("Me gusta el pescado", "No me gusta el pescado"),
        ("J'aime le poisson", "Je n'aime pas le poisson"),
        ("Takes 50 mg of metoprolol", "I take 100 mg of metoprolol"),
        ("Meets Ann on 3 June", "I meet Ann on 4 June"),
    ],
)
async def test_a_negation_or_another_number_is_new(known: str, text: str) -> None:
    user = UserMemory()
    await user.remember(known)
    assert await user.is_new(text)


async def test_quotes_may_have_other_quotation_marks_and_dashes() -> None:
    message = said("I’m vegan – and I like “Tosca”…", 1)

    def extract(batch: Any) -> list[Draft]:
        quotes = ("I'm vegan - and", 'I like "Tosca"...')
        return [
            Draft(text=text, sources=(Cited(message=message.id, quote=quote),))
            for text, quote in zip(("Is vegan", "Likes Tosca"), quotes, strict=True)
        ]

    user, memory = UserMemory(extract=extract), MessagesMemory()
    await memory.update([message])
    assert [f.origin for f in (await user.learn(memory)).facts] == ["user", "user"]


async def test_the_conversations_of_others_are_refused() -> None:
    journal = RamJournal()
    user = UserMemory(journal=journal, tenant="ann", extract=by_rules)
    for tenant in ("bob", None):
        bob = MessagesMemory(journal=journal, session="chat", tenant=tenant)
        await bob.update([said("I live in Rome")])
        with pytest.raises(MemoryUseError, match="is of tenant"):
            user.over(bob)
        with pytest.raises(MemoryUseError, match="is of tenant"):
            await user.learn(bob)
    with pytest.raises(MemoryUseError, match="has no session 'chat'"):
        await user.learn("chat")


async def test_what_was_replaced_is_not_shown_as_a_message_either() -> None:
    journal = RamJournal()
    for n, text in enumerate(("I live in Paris", "I moved to Porto")):
        chat = MessagesMemory(journal=journal, session=f"chat {n}", tenant="ann")
        await chat.update([said(text, n)])
    user = UserMemory(journal=journal, tenant="ann", extract=by_rules)
    await user.learn()
    memory = user.over(MessagesMemory())
    await memory.set_goal("In which city do I live?")
    text = (await memory.context())[0].content
    assert "home: Lives in Porto" in text
    assert "Paris" not in text


async def test_a_run_in_progress_is_not_deleted_under_its_feet(tmp_path: Path) -> None:
    async with SQLiteJournal(tmp_path / "agents.db") as journal:
        user = UserMemory(journal=journal, tenant="ann")
        await user.remember("Likes tea")
        place = {"journal": journal, "session": "chat", "tenant": "ann"}
        async with MessagesMemory(journal=journal, session="a", tenant="ann") as before:
            await before.update([said("I like milk")])
        llm = ScriptedLLM(["Tea.", "Tea."])
        async with Brain("react", memory_options=place, llm=llm, user=user) as brain:
            async with brain.stream("What do I like?") as run:
                await anext(aiter(run))
                for which in ({"everything": True}, {"conversation": "chat"}):
                    with pytest.raises(JournalError, match="in use"):
                        await user.forget(**which)
            assert [fact.text for fact in await user.facts()] == ["Likes tea"]
            async with MessagesMemory(journal=journal, session="a", tenant="ann") as before:
                assert [message.content for message in await before.dump()] == ["I like milk"]
            assert await user.forget(everything=True) == 1
            assert await list_sessions(journal, tenant="ann") == []


async def test_a_reader_only_recalls() -> None:
    journal = RamJournal()
    await UserMemory(journal=journal, tenant="ann").remember("Likes tea")
    reader = UserMemory(journal=journal, tenant="ann", extract=by_rules, readonly=True)
    assert [tool.name for tool in reader.tools()] == ["recall_user"]
    async with reader.over(MessagesMemory()) as memory:
        await memory.set_goal("I like milk. What else do I like?")
        assert "Likes tea" in (await memory.context())[0].content
    assert [fact.text for fact in await reader.facts()] == ["Likes tea"]


async def test_wrong_input_is_refused_with_what_to_do() -> None:
    user = UserMemory(extract=lambda _: None)  # type: ignore[arg-type,return-value]
    fact = await user.remember("Likes tea", source=said("I like tea", 1))
    memory = MessagesMemory()
    await memory.update([said("I like milk", 2)])
    refused: dict[str, Any] = {
        "everything='no'": lambda: user.forget(everything="no"),  # type: ignore[arg-type]
        "recall\\(k=0\\)": lambda: user.recall("tea", k=0),
        "status='old'": lambda: user.facts(status="old"),  # type: ignore[arg-type]
        "kind='x'": lambda: user.facts(kind="x"),  # type: ignore[arg-type]
        "slot=\\) takes a text": lambda: user.facts(slot=3),  # type: ignore[arg-type]
        "the fact|text": lambda: user.remember("   "),
        "list of drafts": lambda: user.learn(memory),
        "quote= takes a text": lambda: user.remember("Likes milk", source=said("I"), quote=3),  # type: ignore[arg-type]
        "conversation= takes a text": lambda: user.remember("x", source=said("I"), conversation=3),  # type: ignore[arg-type]
        "replaces= takes a name": lambda: user.remember("Likes milk", replaces=3),  # type: ignore[arg-type]
        "valid_to is before valid_from": lambda: user.remember(
            "Lives in Rome", valid_from=day(9), valid_to=day(8)
        ),
        "expires_at is before valid_from": lambda: user.remember("x", expires_at=day(8)),
        "history\\(\\) takes a text": lambda: user.history([]),  # type: ignore[arg-type]
        "store\\(\\) takes a fact": lambda: user.store("Likes tea"),  # type: ignore[arg-type]
        "is a memory, or the name": lambda: user.learn(3),  # type: ignore[arg-type]
        "forget\\(slot=\\) takes a text": lambda: user.forget(slot=3),  # type: ignore[arg-type]
        "forget\\(about=\\) takes a text": lambda: user.forget(about=3),  # type: ignore[arg-type]
    }
    for match, call in refused.items():
        with pytest.raises(MemoryUseError, match=match):
            await call()
    assert await user.forget(fact) == 1
    with pytest.raises(MemoryDefinitionError, match="remember, recall_user, forget, edit_block"):
        UserMemory(approve=["forgett"])
    with pytest.raises(MemoryDefinitionError, match="profile_tokens"):
        UserMemory(profile_tokens=-1)
    with pytest.raises(MemoryDefinitionError, match="is where UserMemory stores"):
        MessagesMemory(journal=RamJournal(), session="(user)", tenant="ann")
    with pytest.raises(MemoryDefinitionError, match="already"):
        user.over(user.over(WindowedMemory()))
    with pytest.raises(MemoryUseError, match="is a memory, or the name"):
        user.over("chat")  # type: ignore[arg-type]
    for name in ("names", "approve"):
        with pytest.raises(MemoryDefinitionError, match=f"{name}= takes a name"):
            UserMemory(**{name: 3})  # type: ignore[arg-type]


async def test_characters_that_no_database_takes_are_left_out() -> None:
    user = UserMemory()
    fact = await user.remember("Likes\x00 tea", slot="\x00drink", about="Ann\x00")
    assert (fact.text, fact.slot, fact.about) == ("Likes tea", "drink", "Ann")
    with pytest.raises(MemoryUseError, match="text"):
        await user.remember("\x00")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"text": ""}, "remember(''): text: String should have at least 1 character"),
        ({"text": None}, "remember(None): text: "),
        ({"text": "x" * 100_000}, f"remember('{'x' * 99}): text: "),
        ({"text": "Likes tea", "slot": ""}, "remember('Likes tea'): slot: "),
        ({"text": "Likes tea", "about": ""}, "remember('Likes tea'): about: "),
        ({"text": "Likes tea", "kind": "foo"}, "remember('Likes tea'): kind: "),
    ],
)
async def test_an_error_says_only_what_is_wrong(fields: dict[str, str], told: str) -> None:
    with pytest.raises(MemoryUseError) as raised:
        await UserMemory().remember(**fields)  # type: ignore[arg-type]
    assert str(raised.value).startswith(told)
    assert "valid_from" not in str(raised.value)
    assert ";" not in str(raised.value)


@pytest.mark.parametrize("text", ["", " \n"])
async def test_a_correction_that_is_empty_is_refused_as_such(text: str) -> None:
    user = UserMemory()
    fact = await user.remember("Likes tea")
    with pytest.raises(MemoryUseError, match="the text is empty"):
        await user.correct(fact.id, text)
    assert await user.facts() == [fact]
