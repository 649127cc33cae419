"""A wrapper passes on what it names, and says what the inner memory cannot do."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from agent_brain.memories import (
    Memory,
    MemoryUseError,
    Message,
    MessagesMemory,
    RamJournal,
    StoredMemory,
    TodoMemory,
    VectorMemory,
    WindowedMemory,
    WrappingMemory,
)
from agent_brain.testing import FakeMemory

pytestmark = pytest.mark.anyio


def face(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_the_whole_query_face_is_passed_on_by_name() -> None:
    assert face(StoredMemory) <= face(WrappingMemory)
    assert face(Memory) <= face(WrappingMemory)
    assert "__getattr__" not in vars(WrappingMemory)


def test_it_takes_what_the_inner_memory_takes() -> None:
    for name in face(StoredMemory) - {"fork"}:
        inner, outer = getattr(StoredMemory, name), getattr(WrappingMemory, name)
        if inspect.isfunction(inner):
            assert positional(outer) == positional(inner), name


def positional(function: Any) -> list[str]:
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]


CALLS = {
    "messages": (),
    "get": ("id",),
    "count": (),
    "find_news": (),
    "tag": ("id", "x"),
    "untag": ("id", "x"),
    "pin": ("id",),
    "unpin": ("id",),
    "delete": ("id",),
    "clear": (),
    "forget": ("id",),
    "keep": ("name", 1),
    "kept": ("name",),
    "reopen": (),
    "history": (),
    "recall": ("question",),
}


@pytest.mark.parametrize("method", CALLS)
async def test_what_the_inner_memory_cannot_do_is_said(method) -> None:
    memory = WrappingMemory(WrappingMemory(FakeMemory()))
    with pytest.raises(MemoryUseError, match=rf"{method}\(\).*FakeMemory does not have it"):
        await getattr(memory, method)(*CALLS[method])


async def test_unknown_names_raise_attribute_error() -> None:
    with pytest.raises(AttributeError):
        TodoMemory().no_such_thing  # type: ignore[attr-defined]  # noqa: B018


async def test_a_memory_of_four_methods_is_exported_and_loaded_through_a_wrapper() -> None:
    memory, other = WrappingMemory(FakeMemory("goal")), WrappingMemory(FakeMemory())
    await memory.update([Message.assistant("a")])
    assert await other.load(await memory.export()) == 2
    assert await other.context() == await memory.context()
    assert other.journal is None


async def test_wrapped_memories_are_listed() -> None:
    inner = MessagesMemory()
    outer = TodoMemory(WrappingMemory(inner))
    (between,) = outer.wrapped
    assert between.wrapped == (inner,)
    assert inner.wrapped == ()
    with pytest.raises(AttributeError):
        inner.wrapped = ()  # type: ignore[misc]


async def test_a_run_begins_in_the_inner_memory() -> None:
    journal = RamJournal()
    memory = TodoMemory(MessagesMemory(journal=journal))
    assert memory.journal is journal
    await memory.begin(Message.user("goal"), "run-1", "START", before=[Message.user("before")])
    later = TodoMemory(MessagesMemory(journal=journal))
    await later.open()
    assert [m.content for m in await later.messages()] == ["before", "goal"]
    assert (later.control.run_id, later.control.state) == ("run-1", "START")


async def test_recall_and_history_are_passed_on() -> None:
    memory = TodoMemory(VectorMemory())
    await memory.update([Message.user("my cat is Tom")])
    assert [r.message.content for r in await memory.recall("cat", 1)] == ["my cat is Tom"]
    assert await memory.recall("Who won the chess tournament?", min_score=0.3) == []
    windowed = TodoMemory(WindowedMemory())
    await windowed.update([Message.user("a")])
    assert [m.content for m in await windowed.history()] == ["a"]
