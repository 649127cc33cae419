"""Every built-in memory over every journal behaves as the suite says."""

from __future__ import annotations

import pytest

from agent_brain.memories import (
    LayeredMemory,
    MessagesMemory,
    RamJournal,
    SQLiteJournal,
    SummaryMemory,
    TodoMemory,
    WindowedMemory,
)
from agent_brain.testing import Check, FakeMemory, memory_conformance
from agent_brain.testing.conformance.journaled import JOURNALED

pytestmark = pytest.mark.anyio

MEMORIES = {
    "messages": MessagesMemory,
    "windowed": WindowedMemory,
    "windowed-tokens": lambda **place: WindowedMemory(max_tokens=10_000_000, **place),
    "summary": SummaryMemory,
    "todo": lambda **place: TodoMemory(MessagesMemory(**place)),
}
SMALL = {  # what a small window has let go is not there, so these need not do all that others do
    f"{name}-{size}": lambda make=make, size=size, **place: make(max_messages=size, **place)
    for name, make in (("windowed", WindowedMemory), ("summary", SummaryMemory))
    for size in (1, 2, 3)
}


def layered() -> LayeredMemory:
    return LayeredMemory(WindowedMemory(max_messages=30), MessagesMemory())


def checks() -> list[object]:
    found = [
        pytest.param(check, id=f"{name}-{check}")
        for name, make in [*MEMORIES.items(), ("layered", layered)]
        for check in memory_conformance(make, query_face=True)  # type: ignore[arg-type]
    ]
    return found + [pytest.param(c, id=f"fake-{c}") for c in memory_conformance(FakeMemory)]  # type: ignore[return-value]


@pytest.mark.parametrize("check", checks())
async def test_a_memory_behaves(check: Check) -> None:
    await check()


@pytest.mark.parametrize("name", [*MEMORIES, *SMALL])
@pytest.mark.parametrize("journal", ["ram", "sqlite"])
@pytest.mark.parametrize("index", range(len(JOURNALED)))
async def test_a_memory_lasts(name, journal, index, tmp_path) -> None:
    def make(on, session, tenant):
        return (MEMORIES | SMALL)[name](journal=on, session=session, tenant=tenant)  # type: ignore[operator]

    def new_journal():
        return RamJournal() if journal == "ram" else SQLiteJournal(tmp_path / "journal.db")

    checks = memory_conformance(MessagesMemory, journaled=make, journal=new_journal)
    await checks[-len(JOURNALED) :][index]()
