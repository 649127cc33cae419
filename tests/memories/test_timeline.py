"""The parts of a session: read from its beginning, from a step, and from its end."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_brain import MessagesMemory
from agent_brain.memories import Message, RamJournal
from agent_brain.memories.journal.entry import Entry
from agent_brain.memories.sessions.timeline import (
    Part,
    find_part,
    message_of,
    read_last_parts,
    read_parts,
)
from agent_brain.memories.store.session import session_key

KEY = session_key("s")
KINDS = ("message", "step", "call_begun")


async def every(journal: Any, after: int = 0) -> list[Part]:
    async with aclosing(read_parts(journal, KEY, after=after)) as parts:
        return [part async for part in parts]


async def journal_of(kinds: list[str]) -> RamJournal:
    journal = RamJournal()
    data: dict[str, Any] = {
        "message": Message.user("Hi").model_dump(mode="json"),
        "step": {"run_id": "r", "step": 1, "state": "A", "status": "running", "spent": {}},
        "call_begun": {"action": {"id": "c", "name": "t"}},
    }
    await journal.append(KEY, [Entry(kind, data[kind]) for kind in kinds])
    return journal


@given(st.lists(st.sampled_from(KINDS), max_size=60), st.integers(1, 5))
def test_pages_from_the_end_make_up_the_whole(kinds, limit):
    async def run() -> None:
        journal = await journal_of(kinds)
        whole = await every(journal)
        found, more = await read_last_parts(journal, KEY, limit)
        while more:
            assert len([part for part in found if part.step]) % limit == 0
            assert found[0].step is not None
            page, more = await read_last_parts(journal, KEY, limit, before=found[0].step.number)
            found = page + found
        assert found == whole

    anyio.run(run)


@given(st.lists(st.sampled_from(KINDS), max_size=30))
def test_what_is_after_a_step_is_the_rest(kinds):
    async def run() -> None:
        journal = await journal_of(kinds)
        whole = await every(journal)
        for at, part in enumerate(whole):
            if part.step is not None:
                assert await every(journal, part.step.number) == whole[at + 1 :]
                assert await find_part(journal, KEY, part.step.number) == part

    anyio.run(run)


@pytest.mark.anyio
async def test_a_number_that_is_no_step_is_not_found():
    journal = await journal_of(["message", "step", "message"])
    assert [await find_part(journal, KEY, number) for number in (0, 1, 3, 4)] == [None] * 4


@pytest.mark.anyio
async def test_what_a_rollback_removed_is_known():
    journal = RamJournal()
    memory = MessagesMemory(journal=journal, session="s", history="all")
    await memory.begin(Message.user("Hello"), "r", "A")
    await memory.update([Message.assistant("Half")])
    await memory.rollback()
    await memory.update([Message.assistant("Whole")])

    last = (await every(journal))[-1]
    messages = [entry for entry in last.entries if entry.kind == "message"]
    gone = [message_of(entry).content for entry in messages if entry.seq in last.undone]
    assert gone == ["Half"]


@pytest.mark.anyio
async def test_what_a_rollback_kept_is_not_undone():
    journal = RamJournal()
    memory = MessagesMemory(journal=journal, session="s", history="all")
    await memory.acquire()
    memory.control.status = "running"
    await memory.begin(Message.user("Hello"), "r", "A")
    await memory.update([Message.assistant("Half")])
    await memory.release()
    other = MessagesMemory(journal=journal, session="s", history="all")
    await other.update([Message.user("Beside")])
    await other.rollback()
    assert [message.content for message in await other.dump()] == ["Beside"]

    last = (await every(journal))[-1]
    messages = [entry for entry in last.entries if entry.kind == "message"]
    gone = [message_of(entry).content for entry in messages if entry.seq in last.undone]
    assert gone == ["Half"]
