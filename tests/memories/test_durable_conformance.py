"""Memories of a user's own over a journal pass the conformance suite of the built-in ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_brain.memories import (
    DurableMemory,
    Journal,
    Memory,
    MessagesMemory,
    RamJournal,
    SQLiteJournal,
    SummaryMemory,
    TodoMemory,
    WindowedMemory,
)
from agent_brain.testing import memory_conformance
from tests.memories.durable.own import ListMemory, NotedMemory
from tests.support.conformance import pass_all
from tests.support.thorough import first_of

pytestmark = pytest.mark.anyio

MADE: dict[str, Any] = {
    "list": ListMemory,
    "noted": NotedMemory,
    "windowed": lambda: WindowedMemory(max_messages=3),
    "summary": lambda: SummaryMemory(max_messages=3),
    "todo": lambda: TodoMemory(ListMemory()),
}
HOLDS = {"windowed": 3}
USUAL = ("list", "noted", "over")


def made(name: str, **options: Any) -> Memory:
    if name == "over":
        return TodoMemory(DurableMemory(ListMemory, **options))
    return DurableMemory(MADE[name], **options)


@pytest.mark.parametrize("name", first_of([*MADE, "over"], *USUAL))
async def test_it_behaves(name: str) -> None:
    def make(tools: Any = ()) -> Memory:
        return made(name, tools=tools)

    await pass_all(memory_conformance(make, query_face=True, holds=HOLDS.get(name)))


@pytest.mark.parametrize(
    ("name", "journal"),
    [("list", "ram"), ("noted", "ram"), ("todo", "ram"), ("over", "ram"), ("noted", "sqlite")],
)
async def test_it_lasts(name: str, journal: str, tmp_path: Path) -> None:
    files = iter(range(100))

    def new_journal() -> Journal:
        if journal == "ram":
            return RamJournal()
        return SQLiteJournal(tmp_path / f"journal-{next(files)}.db")

    def opened(on: Journal, session: str, tenant: str | None) -> Memory:
        return made(name, journal=on, session=session, tenant=tenant)

    holds = HOLDS.get(name)
    general = len(memory_conformance(MessagesMemory, holds=holds))
    every = memory_conformance(MessagesMemory, journaled=opened, journal=new_journal, holds=holds)
    await pass_all(every[general:])
