"""Every built-in memory, of every size and over every journal, passes the conformance suite."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_brain.memories import (
    AutoMemory,
    LayeredMemory,
    Memory,
    MessagesMemory,
    RamJournal,
    SQLiteJournal,
    SummaryMemory,
    TodoMemory,
    VectorMemory,
    WindowedMemory,
    registry,
)
from agent_brain.memories.views.summary_writer import outline
from agent_brain.testing import Check, FakeMemory, memory_conformance
from tests.support.conformance import pass_all
from tests.support.thorough import thorough

pytestmark = pytest.mark.anyio

SIZES = [1, 2, 3, 30]
MARKS: dict[int | None, Any] = dict.fromkeys((2, 3, 30), pytest.mark.thorough)


def layered(size: int, long: type[MessagesMemory | VectorMemory], **place: Any) -> LayeredMemory:
    elsewhere = {**place, "session": json.dumps([place.get("session"), "long"])}
    return LayeredMemory(WindowedMemory(max_messages=size, **place), long(**elsewhere))


def make_memory(name: str, size: int | None, **place: Any) -> Memory:
    """A memory by name; ``todo-`` before it puts a to-do list over it."""
    if name.startswith("todo-"):
        return TodoMemory(make_memory(name.removeprefix("todo-"), size, **place))
    match name:
        case "messages":
            return MessagesMemory(**place)
        case "auto":
            return AutoMemory(max_tokens=100 * size if size else None, **place)
        case "auto-summary":
            return AutoMemory(max_tokens=100 * (size or 1), summarize=outline, **place)
        case "windowed":
            return WindowedMemory(max_messages=size or 100, **place)
        case "windowed-tokens":
            return WindowedMemory(max_tokens=10_000_000, **place)
        case "summary":
            return SummaryMemory(max_messages=size or 50, **place)
        case "vector":
            return VectorMemory(recent=size or 30, **place)
        case "layered":
            return layered(size or 30, MessagesMemory, **place)
        case "layered-vector":
            return layered(size or 30, VectorMemory, **place)
    raise ValueError(name)


SIZED = ["auto", "windowed", "summary", "vector", "layered", "layered-vector"]
MEMORIES: list[tuple[str, int | None]] = [("messages", None), ("windowed-tokens", None)]
MEMORIES += [("windowed", None), ("summary", None), ("auto", None), ("auto-summary", 1)]
MEMORIES += [(name, size) for name in SIZED for size in SIZES]
MEMORIES += [
    ("todo-messages", None),
    *((f"todo-{name}", size) for name in SIZED for size in (1, 3)),
]


def test_no_memory_is_left_out() -> None:
    run = {part for name, _ in MEMORIES for part in name.split("-")}
    missing = set(registry._registry.built_in) - run
    assert not missing, f"add to make_memory and MEMORIES: {missing}"


def holds(name: str, size: int | None) -> int | None:
    """How many messages it is sure to hold: only windows let any go without being asked."""
    return size if name.endswith("windowed") else None


@pytest.mark.parametrize(
    "name, size",
    [
        pytest.param(name, size, id=f"{name}-{size or 'default'}", marks=MARKS.get(size, ()))
        for name, size in MEMORIES[1:]
    ],
)
async def test_a_memory_behaves(name: str, size: int | None) -> None:
    def make() -> Memory:
        return make_memory(name, size)

    await pass_all(memory_conformance(make, query_face=True, holds=holds(name, size)))


async def test_the_memory_of_tests_behaves() -> None:
    await pass_all(memory_conformance(FakeMemory))


@pytest.mark.also_on_trio
@pytest.mark.parametrize("check", memory_conformance(MessagesMemory, query_face=True), ids=str)
async def test_the_memory_that_keeps_everything_behaves_on_both_event_loops(check: Check) -> None:
    await check()


LASTING: list[Any] = [(*memory, "ram", "asyncio") for memory in MEMORIES if memory[1] not in MARKS]
LASTING += [(name, size, "sqlite", "asyncio") for name, size in MEMORIES if size in (None, 1)]
LASTING += [("messages", None, "ram", "trio"), ("messages", None, "sqlite", "trio")]
LASTING += thorough((*memory, "ram", "asyncio") for memory in MEMORIES if memory[1] in MARKS)
LASTING += thorough(
    (name, size, journal, "trio")
    for name, size in MEMORIES[1:]
    for journal in ("ram", "sqlite")
    if size in (None, 1)
)


@pytest.mark.parametrize("name, size, journal, anyio_backend", LASTING)
async def test_a_memory_lasts(name, size, journal, tmp_path) -> None:
    files = iter(range(100))

    def new_journal():
        if journal == "ram":
            return RamJournal()
        return SQLiteJournal(tmp_path / f"journal-{next(files)}.db")

    def made(on, session, tenant):
        return make_memory(name, size, journal=on, session=session, tenant=tenant)

    general = len(memory_conformance(MessagesMemory, holds=holds(name, size)))
    every = memory_conformance(
        MessagesMemory, journaled=made, journal=new_journal, holds=holds(name, size)
    )
    await pass_all(every[general:])
