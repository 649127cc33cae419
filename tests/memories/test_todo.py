"""The to-do list that the model keeps."""

from __future__ import annotations

import contextlib

import anyio
import pytest

from agent_brain import Brain
from agent_brain.common.text import count_tokens
from agent_brain.memories import (
    MemoryUseError,
    Message,
    MessagesMemory,
    RamJournal,
    SnapshotError,
    SQLiteJournal,
    TodoMemory,
    WindowedMemory,
    create_memory,
)
from agent_brain.memories.views.tokens import message_tokens
from agent_brain.testing import FakeMemory, ScriptedLLM
from agent_brain.tools import Action, ToolError
from tests.support.journals import Killed, MortalJournal

pytestmark = pytest.mark.anyio


async def test_the_model_edits_the_list_and_always_sees_it() -> None:
    memory = TodoMemory(WindowedMemory(max_messages=4))
    llm = ScriptedLLM(
        [
            [
                Action(name="add_todo", args={"text": "find flights"}),
                Action(name="add_todo", args={"text": "book"}),
            ],
            Action(name="complete_todo", args={"number": 1}),
            Action(name="revise_todo", args={"number": 2, "text": "book for two"}),
            "done",
        ]
    )
    await Brain("react", memory, llm=llm).run("Plan my trip")
    assert len({call.messages[0].content for call in llm.calls}) == 1  # the prompt can be cached
    assert not [m for m in llm.calls[0].messages if m.id == "todo-list"]
    lists = [next(m for m in call.messages if m.id == "todo-list") for call in llm.calls[1:]]
    assert {m.role for m in lists} == {"user"}
    assert all("not a request of the user" in m.content for m in lists)
    seen = ["", *(m.content for m in lists)]
    assert seen[1].endswith("1. [ ] find flights\n2. [ ] book")
    assert seen[2].endswith("1. [x] find flights\n2. [ ] book")
    assert seen[3].endswith("1. [x] find flights\n2. [ ] book for two")
    goals = [
        next(m for m in call.messages[1:] if m.id != "todo-list").content for call in llm.calls
    ]
    assert goals == ["Plan my trip"] * 4


async def test_items_added_at_once_all_arrive() -> None:
    memory = TodoMemory(MessagesMemory(journal=RamJournal()))
    async with anyio.create_task_group() as group:
        for number in range(10):
            group.start_soon(memory.add_todo, f"{number}")
    assert [todo.number for todo in await memory.todos()] == list(range(1, 11))
    assert {todo.text for todo in await memory.todos()} == set("0123456789")


async def test_the_list_lasts_with_the_session_and_over_turns() -> None:
    journal = RamJournal()
    memory = TodoMemory(MessagesMemory(journal=journal))
    await memory.set_goal("first")
    await memory.add_todo("one")
    await memory.set_goal("second")
    later = TodoMemory(MessagesMemory(journal=journal))
    assert await later.todos() == await memory.todos()
    assert (await later.context())[1].content.endswith("1. [ ] one")


@pytest.mark.parametrize("inner", [MessagesMemory, FakeMemory])
async def test_snapshots_and_forks_have_a_list_of_their_own(inner) -> None:
    memory = TodoMemory(inner())
    await memory.add_todo("one")
    fork = await memory.fork()
    await fork.get_tool("add_todo").execute(text="two")  # type: ignore[union-attr]
    assert [todo.text for todo in await memory.todos()] == ["one"]
    assert [todo.text for todo in await fork.todos()] == ["one", "two"]
    other = TodoMemory(inner())
    await other.restore(await fork.snapshot())
    assert await other.todos() == await fork.todos()


async def test_what_makes_no_sense_is_reported_to_the_model() -> None:
    memory = TodoMemory()
    for edit in (memory.complete_todo, memory.remove_todo):
        with pytest.raises(ToolError, match="no item 7; its items are: none"):
            await edit(7)
    with pytest.raises(ToolError, match="needs a text"):
        await memory.add_todo("  ")


async def test_what_the_inner_memory_offers_is_reached_through_it() -> None:
    memory = create_memory("todo", inner="windowed", max_messages=2)
    await memory.update([Message.user(f"{n}") for n in range(5)])
    assert await memory.count() == 2  # type: ignore[attr-defined]
    assert [m.content for m in await memory.messages(last=1)] == ["4"]  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        memory.no_such_thing  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(MemoryUseError):
        create_memory("todo", inner=MessagesMemory(), max_messages=2)


def over(name: str, **options) -> TodoMemory:
    """A to-do list over a memory by name."""
    if name == "layered":
        options["long"] = "messages"
    memory = create_memory("todo", inner=name, **options)
    assert isinstance(memory, TodoMemory)
    return memory


INNER = ["messages", "windowed", "summary", "vector", "layered"]


async def test_items_are_removed_and_numbers_are_not_given_twice() -> None:
    memory = TodoMemory()
    for text in ("one", "two"):
        await memory.add_todo(text)
    assert "two" not in await memory.get_tool("remove_todo").execute(number=2)  # type: ignore[union-attr]
    await memory.add_todo("three")
    assert [(todo.number, todo.text) for todo in await memory.todos()] == [(1, "one"), (3, "three")]
    await memory.remove_todo(1)
    assert await memory.remove_todo(3) == "The to-do list is empty."
    assert await memory.context() == []


@pytest.mark.parametrize("name", INNER)
async def test_over_any_memory_it_lasts_and_is_exported(name, tmp_path) -> None:
    async with SQLiteJournal(tmp_path / "journal.db") as journal:
        memory = over(name, journal=journal)
        await memory.set_goal("goal")
        await memory.add_todo("one")
        later, other = over(name, journal=journal), over(name)
        assert await later.todos() == await memory.todos()
        await other.load(await later.export())
        assert await other.todos() == await memory.todos()
        assert "1. [ ] one" in (await other.context())[-2].content


@pytest.mark.parametrize("name", INNER)
async def test_clearing_and_forgetting_reach_the_list(name, tmp_path) -> None:
    async with SQLiteJournal(tmp_path / "journal.db") as journal:
        memory = over(name, journal=journal)
        await memory.add_todo("before")
        await memory.update([Message.user("my card is 4111-22")])
        await memory.add_todo("pay with 4111-22")
        assert await memory.forget(text="4111-22") == 1
        assert [todo.text for todo in await memory.todos()] == ["before"]
        for session in await journal.sessions():
            assert "4111-22" not in repr(await journal.read(session))
        await memory.add_todo("SECRET")
        assert await memory.forget(text="secret") == 0
        assert await memory.forget(role="tool") == 0
        assert [todo.text for todo in await memory.todos()] == ["before"]
        await memory.clear()
        assert await memory.todos() == []
        assert await over(name, journal=journal).todos() == []


@pytest.mark.parametrize("name", ["windowed", "layered", "summary", "vector"])
async def test_it_counts_in_the_token_limit(name) -> None:
    options: dict[str, object] = {"max_tokens": 400}
    if name in ("windowed", "layered", "summary"):
        options["max_messages"] = None
    memory = over(name, **options)
    inner = memory.inner
    await memory.set_goal("goal")
    await memory.update([Message.user("some words " * 5) for _ in range(40)])
    for number in range(8):
        await memory.add_todo(f"{number} " + "words " * 10)
        shown = await memory.context()
        if name == "layered":
            held = {m.id for m in await inner.short.messages()}  # type: ignore[attr-defined]
            shown = [m for m in shown if m.id in held or m.id == "todo-list"]
        tokens = sum(message_tokens(m, count_tokens) for m in shown)
        recalled = sum(message_tokens(m, count_tokens) for m in shown if m.metadata.get("recalled"))
        assert tokens - recalled <= 400


async def test_what_is_no_list_is_refused() -> None:
    memory = TodoMemory()
    for value in ([{"text": "one"}], {"items": [{"text": 7}]}):
        with pytest.raises(SnapshotError, match="to-do list"):
            await memory.load({"version": 1, "views": {"todo": value}})


async def test_over_a_memory_of_four_methods_the_list_is_the_wrapper_s() -> None:
    memory = TodoMemory(FakeMemory())
    await memory.add_todo("one")
    other = TodoMemory(FakeMemory())
    await other.load(await memory.export())
    assert [todo.text for todo in await other.todos()] == ["one"]


@pytest.mark.parametrize("dies_at", range(1, 7))
async def test_no_item_is_left_of_what_was_forgotten_when_a_crash_interrupts(dies_at) -> None:
    store = RamJournal()
    journal = MortalJournal(store)
    memory = TodoMemory(MessagesMemory(journal=journal))
    await memory.add_todo("older")
    await memory.update([Message.user("my PIN is 4711"), Message.user("other")])
    await memory.add_todo("use PIN 4711")
    await memory.add_todo("and then pay")
    journal.dies_at, journal.after = journal.writes + dies_at, True
    with contextlib.suppress(Killed):
        await memory.forget(text="4711")
    later = TodoMemory(MessagesMemory(journal=store))
    said = [message.content for message in await later.messages()]
    assert said in (["other"], ["my PIN is 4711", "other"])
    assert [todo.text for todo in await later.todos()] == ["older"]
    if said == ["other"]:
        (key,) = await store.sessions()
        assert "4711" not in str(await store.rows(key))
