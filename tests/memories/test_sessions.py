"""The sessions of a journal, as a list."""

from __future__ import annotations

from typing import Any

import pytest

from agent_brain import Brain, Message
from agent_brain.memories import (
    Entry,
    LeaseHeldError,
    MessagesMemory,
    RamJournal,
    delete_session,
    list_sessions,
    session_key,
)
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action

pytestmark = pytest.mark.anyio


async def test_sessions_are_listed_with_what_a_person_wants_to_know() -> None:
    journal = RamJournal()
    for name, tenant in (("one", None), ("two", "ann"), ("three", "ann")):
        memory = MessagesMemory(journal=journal, session=name, tenant=tenant)
        await Brain("react", memory, llm=ScriptedLLM(["ok"])).run(f"Question\n{name}?")
    found = await list_sessions(journal)
    assert {info.session for info in found} == {"one", "two", "three"}
    mine = {info.session: info for info in await list_sessions(journal, tenant="ann")}
    assert mine.keys() == {"two", "three"}
    assert mine["two"].title == "Question two?"
    assert mine["two"].status == "ended"
    assert mine["two"].entries == len(await journal.read(session_key("two", "ann")))
    assert [info.session for info in await list_sessions(journal, tenant=None)] == ["one"]
    assert len(await list_sessions(journal, limit=2)) == 2


@pytest.mark.parametrize("key", ['["x"]', "[]", "[[[[", "{}", "text", "", "[1, 2]", "[" * 5000])
async def test_other_keys_are_not_listed(key: str) -> None:
    journal = RamJournal()
    await journal.append(key, [Entry("a", 1)])
    await MessagesMemory(journal=journal, session="one").update([Message.user("hello")])
    assert [info.session for info in await list_sessions(journal)] == ["one"]


async def test_a_session_that_cannot_be_read_is_listed() -> None:
    journal = RamJournal()
    await journal.append(session_key("bad"), [Entry("message", {"no": "message"})])
    await MessagesMemory(journal=journal, session="good").update([Message.user("hello")])
    found = {info.session: info.status for info in await list_sessions(journal)}
    assert found == {"good": "idle", "bad": "damaged"}


async def test_a_session_is_deleted_by_its_name() -> None:
    journal = RamJournal()
    for tenant in (None, "ann"):
        await MessagesMemory(journal=journal, tenant=tenant).update([Message.user("hello")])
    assert await delete_session(journal, "default", tenant="ann") == 1
    assert [info.tenant for info in await list_sessions(journal)] == [None]
    assert await delete_session(journal, "default", tenant="ann") == 0


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("depth", [10, 150, 190])
async def test_what_can_be_stored_can_be_read(depth: int) -> None:
    journal = RamJournal()
    call = Action(name="f", args={"deep": nested(depth)})
    await MessagesMemory(journal=journal).update([Message.assistant("", tool_calls=[call])])
    (read,) = await MessagesMemory(journal=journal).messages()
    assert read.tool_calls[0].args == {"deep": nested(depth)}


async def test_what_could_not_be_read_again_is_refused() -> None:
    memory = MessagesMemory(journal=RamJournal())
    call = Action(name="f", args={"deep": nested(230)})
    with pytest.raises(ValueError, match="nested more than"):
        await memory.update([Message.assistant("", tool_calls=[call])])
    await memory.update([Message.user("more")])
    assert [message.content for message in await memory.messages()] == ["more"]


@pytest.mark.parametrize(
    "wrong",
    [{"seconds": 0}, {"seconds": float("nan")}, {"seconds": 1e12}, {"wait": -1}, {"seconds": "1"}],
)
async def test_a_wrong_time_of_a_lease_is_refused(wrong: Any) -> None:
    journal = RamJournal()
    with pytest.raises(ValueError, match="number of seconds"):
        await journal.acquire("s", **wrong)
    await journal.release(await journal.acquire("s"))


async def test_errors_name_the_session_as_people_know_it() -> None:
    journal = RamJournal()
    lease = await journal.acquire(session_key("chat", "ann"))
    with pytest.raises(LeaseHeldError, match="session 'chat' of 'ann' is in use by process"):
        await journal.append(lease.session, [Entry("a", 1)])
