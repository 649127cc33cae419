"""What was said in other sessions of the same tenant."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent_brain.memories import (
    LayeredMemory,
    MemoryUseError,
    Message,
    RamJournal,
    SQLiteJournal,
    TodoMemory,
    UserMemory,
    VectorMemory,
    WindowedMemory,
    create_memory,
)
from agent_brain.memories.recall.index import RecallIndex
from agent_brain.memories.recall.indexing import Item
from agent_brain.tools import Action, ToolError
from agent_brain.tools.builtin import memory_search_tool
from tests.memories.vector.support import WordsEmbedder, said

pytestmark = pytest.mark.anyio


async def everywhere(memory, query: str, k: int = 5, **options) -> list[tuple[str, str]]:
    found = await memory.recall(query, k, scope="tenant", **options)
    return [(each.session, each.message.content) for each in found]


async def remember(journal, tenant: str | None, session: str, *texts: str, **options) -> None:
    async with VectorMemory(journal=journal, tenant=tenant, session=session, **options) as memory:
        await memory.update(said(*texts))


async def test_what_was_said_in_another_session_is_found() -> None:
    journal = RamJournal()
    await remember(journal, "ann", "monday", "My kitten is called Pip", "It rained")
    memory = VectorMemory(journal=journal, tenant="ann", session="tuesday")
    await memory.update(said("We drove home"))
    assert await memory.recall("kitten") == []
    assert await everywhere(memory, "kitten", 1) == [("monday", "My kitten is called Pip")]
    assert await everywhere(memory, "drove home", 1) == [("tuesday", "We drove home")]


async def test_results_of_tools_in_other_sessions_are_found_on_request_only() -> None:
    journal = RamJournal()
    call = Action(name="read_page", args={})
    asked, result = Message.assistant("", [call]), Message.tool("A page about kittens", call)
    async with VectorMemory(journal=journal, tenant="ann", session="monday") as monday:
        await monday.update([*said("My kitten is called Pip"), asked, result])
        assert len(await everywhere(monday, "kitten", 5)) == 2  # its own
    memory = VectorMemory(journal=journal, tenant="ann", session="tuesday")
    await memory.update(said("We drove home"))
    assert await everywhere(memory, "kitten", 5) == [("monday", "My kitten is called Pip")]
    assert len(await everywhere(memory, "kitten", 5, tool_results=True)) == 2
    assert len(await everywhere(TodoMemory(memory), "kitten", 5, tool_results=True)) == 2
    for wanted in (False, True):
        search = memory_search_tool(memory, scope="tenant", tool_results=wanted)
        found = await search.invoke({"query": "kitten"})
        assert "conversation 'monday' user: My kitten is called Pip" in found
        assert ("result of read_page: <data>A page about kittens</data>" in found) is wanted


async def test_no_tenant_finds_what_another_one_said() -> None:
    journal = RamJournal()
    for tenant in ("bob", 'ann", "x', "ann2", "an", None):
        await remember(journal, tenant, "ann", "The kitten of somebody else")
        await remember(journal, tenant, 'x", "ann', "The kitten of somebody else")
    await remember(journal, "ann", "one", "My kitten")
    memory = VectorMemory(journal=journal, tenant="ann", session="two")
    assert await everywhere(memory, "kitten") == [("one", "My kitten")]


async def test_what_others_say_later_is_found_and_what_they_delete_is_not() -> None:
    journal = RamJournal()
    other = VectorMemory(journal=journal, tenant="ann", session="other")
    memory = VectorMemory(journal=journal, tenant="ann", session="own")
    await other.update(said("a kitten"))
    assert await everywhere(memory, "kitten") == [("other", "a kitten")]
    await other.update(said("another kitten"))
    assert len(await everywhere(memory, "kitten")) == 2
    await other.forget(text="another")
    assert await everywhere(memory, "kitten") == [("other", "a kitten")]
    await other.clear()
    assert await everywhere(memory, "kitten") == []


async def test_what_a_session_has_embedded_is_not_embedded_again(tmp_path, embedder) -> None:
    first = VectorMemory(path=tmp_path, tenant="ann", session="one", embedder=embedder)
    await first.update(said("My kitten sleeps", "It rained"))
    await first.aclose()
    later = WordsEmbedder()
    async with VectorMemory(path=tmp_path, tenant="ann", session="two", embedder=later) as memory:
        assert await everywhere(memory, "dog", 1) == [("one", "My kitten sleeps")]
        assert later.texts == ["dog"]
        async with VectorMemory(
            path=tmp_path, tenant="ann", session="one", embedder=embedder
        ) as first:
            await first.update(said("We bought a truck"))
        assert await everywhere(memory, "car", 1) == [("one", "We bought a truck")]
        assert later.texts == ["dog", "car"]


async def test_a_question_to_all_sessions_is_embedded_once(embedder) -> None:
    journal = RamJournal()
    for name in ("one", "two", "three"):
        await remember(journal, "ann", name, "My kitten sleeps", embedder=embedder)
    memory = VectorMemory(journal=journal, tenant="ann", session="own", embedder=embedder)
    await memory.update(said("We drove home"))
    assert len(await everywhere(memory, "dog", 3)) == 3
    assert embedder.texts.count("dog") == 1


async def test_many_sessions_are_ranked_as_one_memory_of_all_of_them(embedder) -> None:
    journal, whole = RamJournal(), VectorMemory(embedder=embedder)
    texts = ["My kitten sleeps", "a truck", "kitten food", "the dog of a friend", "It rained"]
    for day, text in enumerate(texts * 3):
        at = datetime(2025, 3, 1 + day, tzinfo=UTC)
        message = Message.user(f"{text} {day}", created_at=at, metadata={"session": f"s{day % 4}"})
        await whole.update([message])
        one = VectorMemory(journal=journal, tenant="t", session=f"s{day % 4}", embedder=embedder)
        await one.update([message])
        await one.aclose()
    memory = VectorMemory(journal=journal, tenant="t", session="s0", embedder=embedder)
    for question in ("kitten", "which dog?", "truck now"):
        together = await memory.recall(question, 9, scope="tenant")
        alone = await whole.recall(question, 9)
        assert [hit.message.id for hit in together] == [hit.message.id for hit in alone]
        assert [hit.score for hit in together] == pytest.approx([hit.score for hit in alone])


async def test_filters_and_scores_hold_for_all_sessions() -> None:
    journal, start = RamJournal(), datetime(2025, 3, 1, tzinfo=UTC)
    for day in range(4):
        async with VectorMemory(journal=journal, tenant="ann", session=f"day {day}") as memory:
            at = start + timedelta(days=day)
            await memory.update(
                [Message.user(f"kitten {day}", created_at=at, metadata={"odd": day % 2})]
            )
    memory = VectorMemory(journal=journal, tenant="ann", session="now")
    later = await everywhere(memory, "kitten", since=start + timedelta(days=2))
    assert sorted(later) == [("day 2", "kitten 2"), ("day 3", "kitten 3")]
    assert len(await everywhere(memory, "kitten", where={"odd": 1})) == 2
    assert len(await everywhere(memory, "kitten", 3)) == 3
    found = await memory.recall("kitten 2", scope="tenant")
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    assert found[0].session == "day 2"
    assert await everywhere(memory, "zebra") == []


@pytest.mark.parametrize(
    ("options", "scope", "problem"),
    [
        ({"journal": RamJournal()}, "tenant", "tenant='alice'"),
        ({"tenant": "ann"}, "tenant", "journal="),
        ({"tenant": "ann"}, "world", "'session' or 'tenant'"),
    ],
)
async def test_a_scope_that_cannot_be_searched_is_refused(options, scope, problem) -> None:
    with pytest.raises(MemoryUseError, match=problem):
        await VectorMemory(**options).recall("kitten", scope=scope)


async def test_a_fork_searches_the_sessions_beside_its_own(tmp_path) -> None:
    async with SQLiteJournal(tmp_path / "j.db") as journal:
        await remember(journal, "ann", "one", "My kitten")
        memory = VectorMemory(journal=journal, tenant="ann", session="two")
        await memory.update(said("a truck"))
        fork = await memory.fork(journal=journal, session="three", tenant="ann")
        await memory.update(said("another truck"))
        assert {session for session, _ in await everywhere(fork, "kitten truck")} == {
            "one",
            "two",
            "three",
        }


async def test_a_conversation_and_its_long_term_memory_are_found_once() -> None:
    journal = RamJournal()
    for session in ("monday", "tuesday"):
        async with create_memory(
            "layered", journal=journal, tenant="ann", session=session, max_messages=2
        ) as memory:
            await memory.update(said(f"My kitten was ill on {session}", *["It rained"] * 4))
    user = UserMemory(journal=journal, tenant="ann")
    found = await user.recall("kitten", "messages", 2)
    assert sorted(str(each.session) for each in found) == ["monday", "tuesday"]
    async with create_memory("layered", journal=journal, tenant="ann", session="tuesday") as memory:
        assert len({text for _, text in await everywhere(memory, "kitten", 2)}) == 2


@pytest.mark.parametrize("embedder", [None, WordsEmbedder()])
async def test_a_message_with_copies_in_forks_is_found_once(embedder) -> None:
    place: dict[str, Any] = {"journal": RamJournal(), "tenant": "ann"}
    memory = VectorMemory(**place, session="monday", embedder=embedder)
    await memory.update(said("My kitten is called Pip", "I have another kitten"))
    for name in ("fork", "another fork"):
        async with await memory.fork(**place, session=name) as fork:
            await fork.update(said(f"A kitten of the {name}"))
    own = await everywhere(memory, "kitten", 4)
    assert sorted(own) == [
        ("another fork", "A kitten of the another fork"),
        ("fork", "A kitten of the fork"),
        ("monday", "I have another kitten"),
        ("monday", "My kitten is called Pip"),
    ]
    tuesday = VectorMemory(**place, session="tuesday", embedder=embedder)
    elsewhere = await everywhere(tuesday, "kitten", 4)
    assert sorted(text for _, text in elsewhere) == sorted(text for _, text in own)
    await memory.clear()
    assert len(await everywhere(tuesday, "kitten", 9)) == 4
    known = UserMemory(**place)
    found = await known.recall("kitten", "messages", 9)
    assert len({each.message.id for each in found}) == len(found) == 4


async def test_what_has_expired_in_another_session_is_not_found() -> None:
    now = datetime(2026, 3, 1, tzinfo=UTC)
    end = now + timedelta(hours=1)
    place: dict[str, Any] = {"journal": RamJournal(), "tenant": "ann", "clock": lambda: now}
    monday = VectorMemory(**place, session="monday")
    await monday.update([Message.user("My kitten is called Pip", expires_at=end)])
    tuesday = VectorMemory(**place, session="tuesday")
    assert await everywhere(tuesday, "kitten") == [("monday", "My kitten is called Pip")]
    now = end
    assert await everywhere(tuesday, "kitten") == []


async def test_the_messages_of_a_tenant_are_indexed_once(monkeypatch) -> None:
    journal = RamJournal()
    indexed: list[str] = []
    await remember(journal, "ann", "monday", "My kitten is called Pip", "It rained")
    await remember(journal, "ann", "tuesday", "We drove home")
    add = RecallIndex.add

    def counted(self: RecallIndex, items: Iterable[Item]) -> None:
        new = [*items]
        indexed.extend(item.text for item in new)
        add(self, new)

    monkeypatch.setattr(RecallIndex, "add", counted)
    assert await UserMemory(journal=journal, tenant="ann").recall("kitten", "messages", 1)
    assert len(indexed) == 3


async def test_wrappers_and_the_search_tool_pass_the_scope_on() -> None:
    journal = RamJournal()
    await remember(journal, "ann", "monday", "My kitten is called Pip")
    memory = VectorMemory(journal=journal, tenant="ann", session="tuesday")
    layered = LayeredMemory(WindowedMemory(), memory)
    for outer in (memory, TodoMemory(memory), layered):
        assert await everywhere(outer, "kitten") == [("monday", "My kitten is called Pip")]
        assert await outer.recall("kitten") == []
    search = memory_search_tool(memory, scope="tenant")
    assert "Pip" in await search.invoke({"query": "kitten"})
    assert "kitten" not in await memory_search_tool(memory).invoke({"query": "kitten"})
    with pytest.raises(ToolError, match="other conversations"):
        await memory_search_tool(WindowedMemory(), scope="tenant").invoke({"query": "kitten"})
