"""Sessions are opened without decoding what is old, and are the same as before."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import anyio
import pytest
from hypothesis import given, settings

from agent_brain.memories import (
    Entry,
    JournalError,
    Message,
    MessagesMemory,
    RamJournal,
    SQLiteJournal,
    SummaryMemory,
    WindowedMemory,
    session_key,
)
from agent_brain.tools import Action
from tests.memories.windows.traces import TRACES, play
from tests.support.thorough import examples

pytestmark = pytest.mark.anyio


class Durable(RamJournal):
    """Like a journal on disk: it keeps what has left a window."""

    persistent = True


async def nothing(told: list[Message]) -> None: ...


@pytest.mark.parametrize("journal_of", [RamJournal, lambda: SQLiteJournal(":memory:")])
@settings(max_examples=examples(40), deadline=None)
@given(trace=TRACES)
def test_a_session_is_the_same_when_it_is_opened_again(journal_of, trace) -> None:
    async def run() -> None:
        journal = journal_of()
        memory = MessagesMemory(journal=journal)
        await play(memory, trace, nothing)
        later = MessagesMemory(journal=journal)
        assert await later.count() == await memory.count()
        assert await later.messages() == await memory.messages()
        assert await later.goal() == await memory.goal()
        assert await later.turn() == await memory.turn()
        await journal.aclose()

    anyio.run(run)


QUOTED = '{"id":"a","role":"system","pinned":true,"expires_at":"x","tool_calls":[]}'


@pytest.mark.parametrize("name", [None, "Ann", QUOTED])
async def test_a_window_over_a_file_keeps_what_never_leaves_it(name, tmp_path) -> None:
    soon = datetime.now(UTC) + timedelta(seconds=5)
    call = Action(name="look", args={})
    async with SQLiteJournal(tmp_path / "brain.db") as journal:
        memory = WindowedMemory(max_messages=6, journal=journal, clock=lambda: soon)
        kept = [Message.system("rules", name=name), Message.user("kept", pinned=True, name=name)]
        await memory.update([*kept, Message.user("soon", expires_at=soon + timedelta(1))])
        await memory.set_goal("goal")
        await memory.update([Message.user(QUOTED, name=name) for _ in range(50)])
        await memory.update([Message.assistant("", [call], name=name)])
        await memory.update([Message.user(QUOTED, id='quoted "\\', name=name)] * 2)
        later = WindowedMemory(max_messages=6, journal=journal, clock=lambda: soon)
        assert await later.context() == await memory.context()
        assert {*kept} <= {*await later.context()}
        await later.update([Message.tool("late", call)])
        await memory.reopen()
        assert await later.context() == await memory.context()
        everything = MessagesMemory(journal=journal, clock=lambda: soon + timedelta(2))
        assert "soon" not in [m.content for m in await everything.messages()]


async def test_what_is_old_is_decoded_when_it_is_used() -> None:
    journal = RamJournal()
    said = [Message.user(str(number)) for number in range(50)]
    await MessagesMemory(journal=journal).update(said)
    memory = MessagesMemory(journal=journal)
    assert await memory.count() == memory.store.log.encoded == 50
    assert await memory.messages(last=2) == said[-2:]
    assert await memory.get(said[0].id) == said[0]
    assert memory.store.log.encoded == 47
    assert await memory.context() == said


async def test_a_known_id_is_ignored_before_it_is_decoded() -> None:
    journal = RamJournal()
    said = Message.user("a")
    await MessagesMemory(journal=journal).update([said])
    memory = MessagesMemory(journal=journal)
    await memory.update([said, Message.user("b")])
    assert [m.content for m in await memory.messages()] == ["a", "b"]


async def test_a_late_result_joins_a_call_that_is_not_decoded() -> None:
    journal = RamJournal()
    call = Action(name="look", args={"id": "other"})
    asked, between = Message.assistant("", [call]), Message.user("between")
    await MessagesMemory(journal=journal).update([asked, between])
    memory = MessagesMemory(journal=journal)
    result = Message.tool("late", call)
    await memory.update([result])
    assert await memory.context() == [asked, result, between]


async def test_changes_of_what_is_not_decoded_hold() -> None:
    journal = RamJournal()
    said = [Message.user(text, id=text) for text in "abcd"]
    memory = MessagesMemory(journal=journal)
    await memory.update(said)
    await memory.tag("a", "seen")
    await memory.delete("b")
    await memory.update([said[1]])
    await memory.forget("c")
    later = MessagesMemory(journal=journal)
    assert [(m.id, {*m.tags}) for m in await later.messages()] == [
        ("a", {"seen"}),
        ("d", set()),
        ("b", set()),
    ]


async def test_what_expires_is_forgotten_although_it_is_not_decoded() -> None:
    journal = RamJournal()
    soon = datetime.now(UTC) + timedelta(seconds=5)
    await MessagesMemory(journal=journal).update(
        [Message.user("a", expires_at=soon), Message.user("b")]
    )
    later = MessagesMemory(journal=journal, clock=lambda: soon + timedelta(seconds=1))
    assert [m.content for m in await later.messages()] == ["b"]


async def test_a_window_over_a_long_session_holds_only_what_it_shows() -> None:
    journal = Durable()
    pinned = Message.user("rules", pinned=True)
    memory = WindowedMemory(max_messages=5, journal=journal)
    await memory.set_goal("goal")
    await memory.update([Message.system("system"), pinned])
    for number in range(200):
        await memory.update([Message.user(str(number))])
    later = WindowedMemory(max_messages=5, journal=journal)
    assert await later.context() == await memory.context()
    assert [m.content for m in await later.context()] == ["goal", "system", "rules", "198", "199"]
    assert len(later.store.log) == 5
    assert len(await later.turn()) == len(await memory.turn()) == 203
    assert len(await later.history()) == 203


async def test_a_group_that_waits_for_a_result_is_in_the_window_however_old_it_is() -> None:
    journal = Durable()
    call = Action(name="look", args={})
    memory = WindowedMemory(max_messages=2, journal=journal)
    await memory.update([Message.assistant("", [call])])
    await memory.update([Message.user(str(number)) for number in range(100)])
    later = WindowedMemory(max_messages=2, journal=journal)
    await later.open()
    result = Message.tool("late", call)
    for opened in (memory, later):
        if opened is later:
            await later.reopen()
        await opened.update([result])
    assert await later.context() == await memory.context()


async def test_a_summary_of_a_long_session_decodes_what_came_after_it() -> None:
    journal = Durable()
    memory = SummaryMemory(max_messages=4, journal=journal)
    for number in range(30):
        await memory.update([Message.user(str(number))])
        await memory.context()
    later = SummaryMemory(max_messages=4, journal=journal)
    assert await later.context() == await memory.context()
    assert later.summarised == memory.summarised


async def test_an_entry_that_is_not_a_message_is_reported_when_it_is_used() -> None:
    journal = RamJournal()
    await journal.append(session_key("default"), [Entry("message", {"id": "a", "role": "nobody"})])
    memory = MessagesMemory(journal=journal)
    assert await memory.count() == 1
    with pytest.raises(JournalError, match="Entry 1 of the session cannot be read"):
        await memory.messages()


async def test_an_entry_without_an_id_is_reported_when_the_session_is_opened() -> None:
    journal = RamJournal()
    await journal.append(session_key("default"), [Entry("message", ["nothing"])])
    with pytest.raises(JournalError, match="Entry 1 of the session cannot be read"):
        await MessagesMemory(journal=journal).open()


@pytest.mark.parametrize(
    ("texts", "much"),
    [
        ([], False),
        (["Hi"], False),
        (["Hi"] * 300, False),
        (["Hi"] * 501, True),
        (["x" * 10**5], True),
    ],
)
async def test_only_a_long_session_is_opened_in_a_thread(texts, much, monkeypatch) -> None:
    journal = RamJournal()
    entries = [Entry("message", Message.user(text).model_dump(mode="json")) for text in texts]
    if entries:
        await journal.append(session_key("default"), entries)
    called, run_sync = [], anyio.to_thread.run_sync

    async def in_thread(work, *args):
        called.append(work)
        return await run_sync(work, *args)

    monkeypatch.setattr(anyio.to_thread, "run_sync", in_thread)
    async with MessagesMemory(journal=journal) as memory:
        assert bool(called) == much
        assert [message.content for message in await memory.messages()] == texts
