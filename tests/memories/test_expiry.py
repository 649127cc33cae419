"""Messages stop being remembered when they should."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from agent_brain.memories import (
    MemoryDefinitionError,
    Message,
    MessagesMemory,
    RamJournal,
    SummaryMemory,
    WindowedMemory,
)
from agent_brain.memories.store.session import session_key
from agent_brain.tools import Action

pytestmark = pytest.mark.anyio

START = datetime(2024, 5, 1, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def pass_(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def said(text: str, clock: Clock, **fields) -> Message:
    return Message.user(text, created_at=clock.now, **fields)


async def contents(memory) -> list[str]:
    return [message.content for message in await memory.context()]


async def test_messages_go_when_their_time_has_come() -> None:
    clock = Clock()
    memory = MessagesMemory(clock=clock)
    for seconds in (30, 10, 20):
        expires = clock.now + timedelta(seconds=seconds)
        await memory.update([said(str(seconds), clock, expires_at=expires)])
    await memory.update([said("always", clock)])
    assert await contents(memory) == ["30", "10", "20", "always"]
    clock.pass_(10)
    assert await contents(memory) == ["30", "20", "always"]
    clock.pass_(10)
    assert await memory.count() == 2
    clock.pass_(100)
    assert [m.content for m in await memory.dump()] == ["always"]


async def test_a_ttl_spares_pinned_messages_and_the_goal_of_the_turn() -> None:
    clock = Clock()
    memory = MessagesMemory(clock=clock, ttl=60)
    await memory.update([said("pinned", clock, pinned=True), said("plain", clock)])
    await memory.set_goal(said("goal", clock))
    clock.pass_(60)
    assert await contents(memory) == ["pinned", "goal"]
    await memory.set_goal(said("next", clock))
    assert await contents(memory) == ["pinned", "next"]


async def test_a_call_that_waits_for_its_results_stays() -> None:
    clock = Clock()
    memory = MessagesMemory(clock=clock, ttl=timedelta(seconds=60))
    call = Action(name="slow", args={})
    asking = Message.assistant("", [call], created_at=clock.now)
    await memory.update([asking])
    memory.next_actions = [call]
    clock.pass_(100)
    assert await memory.get(asking.id) == asking
    await memory.update([Message.tool("done", call, created_at=clock.now)])
    memory.next_actions = []
    assert await memory.messages() == [], "the group goes together"


async def test_what_was_deleted_does_not_expire_again() -> None:
    clock = Clock()
    memory = SummaryMemory(clock=clock, ttl=60, max_messages=3)
    message = said("a", clock)
    await memory.update([message, *[said("b", clock, pinned=True) for _ in range(3)]])
    await memory.delete(message.id)
    await memory.keep("summary", {"text": "kept", "upto": 0, "spared": []})
    clock.pass_(100)
    await memory.open()
    assert memory.summary == "kept"


async def test_a_summary_goes_when_something_in_it_expires() -> None:
    clock = Clock()
    memory = SummaryMemory(clock=clock, max_messages=4, keep=2)
    secret = said("SECRET", clock, expires_at=clock.now + timedelta(hours=1))
    await memory.update([secret, *[said(f"{n}", clock) for n in range(6)]])
    assert "SECRET" in (await contents(memory))[0]
    clock.pass_(3600)
    assert "SECRET" not in str(await memory.snapshot())
    assert "SECRET" not in str(await contents(memory))


async def test_what_has_left_a_window_expires_in_the_journal_too() -> None:
    clock, journal = Clock(), RamJournal()
    journal.persistent = True  # type: ignore[misc]
    memory = WindowedMemory(clock=clock, ttl=60, max_messages=2, journal=journal)
    await memory.update([said(f"{n}", clock) for n in range(5)])
    clock.pass_(60)
    assert await memory.history() == []


async def test_a_later_process_forgets_what_has_expired_meanwhile() -> None:
    clock, journal = Clock(), RamJournal()
    memory = MessagesMemory(clock=clock, ttl=60, journal=journal)
    await memory.update([said("old", clock)])
    clock.pass_(60)
    later = MessagesMemory(clock=clock, ttl=60, journal=journal)
    await later.update([said("new", clock)])
    assert await contents(later) == ["new"]


@pytest.mark.parametrize("ttl", [0, -1, timedelta(0)])
async def test_a_ttl_of_no_time_is_refused(ttl) -> None:
    with pytest.raises(MemoryDefinitionError, match="ttl="):
        MessagesMemory(ttl=ttl)


async def test_what_has_left_a_window_expires_in_the_journal() -> None:
    clock, journal = Clock(), RamJournal()
    memory = WindowedMemory(max_messages=3, journal=journal, clock=clock)
    soon = clock.now + timedelta(seconds=10)
    await memory.update([said("leaves soon", clock, expires_at=soon)])
    for number in range(5):
        await memory.update([said(str(number), clock)])
    clock.pass_(10)
    await memory.context()
    assert "leaves soon" not in repr(await journal.read(session_key("default"), history=True))
