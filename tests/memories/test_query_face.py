"""Files, errors and edges of the query face, besides what the conformance suite checks."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent_brain.memories import (
    DurableMemory,
    Entry,
    LayeredMemory,
    MemoryDefinitionError,
    MemoryUseError,
    Message,
    MessagesMemory,
    RamJournal,
    Snapshot,
    SnapshotError,
    TodoMemory,
    VectorMemory,
    WindowedMemory,
    create_memory,
    memory_names,
    read_session_key,
    register_memory,
    session_key,
)
from agent_brain.testing import FakeMemory
from agent_brain.tools import Action

pytestmark = pytest.mark.anyio


async def filled() -> MessagesMemory:
    memory = MessagesMemory()
    await memory.set_goal("goal")
    await memory.update([Message.user("汉字 \x00"), Message.assistant("b")])
    return memory


async def test_a_file_is_written_whole_and_read_back(tmp_path) -> None:
    memory, path = await filled(), tmp_path / "export.json"
    path.write_text("older", encoding="utf-8")
    await memory.export(path)
    assert "汉字" in path.read_text(encoding="utf-8")
    other = MessagesMemory()
    assert await other.load(path=path) == 3
    assert await other.context() == await memory.context()
    assert [file.name for file in tmp_path.iterdir()] == ["export.json"]


async def test_an_export_that_fails_leaves_the_file(tmp_path, monkeypatch) -> None:
    memory, path = await filled(), tmp_path / "export.json"
    path.write_text("older", encoding="utf-8")

    def fail(handle: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        await memory.export(path)
    assert path.read_text(encoding="utf-8") == "older"
    assert len(list(tmp_path.iterdir())) == 1


async def test_an_export_replaces_no_journal(tmp_path) -> None:
    path = tmp_path / "brain.db"
    async with MessagesMemory(journal=path) as memory:
        await memory.update([Message.user("one")])
        with pytest.raises(FileExistsError, match="is a database"):
            await memory.export(path)
    async with MessagesMemory(journal=path) as later:
        assert await later.count() == 1


async def test_lone_surrogates_are_replaced_in_a_file(tmp_path) -> None:
    memory, later, path = MessagesMemory(), MessagesMemory(), tmp_path / "export.json"
    await memory.keep("note", {"shown": "cut \ud83d"})
    await memory.export(path)
    await later.load(path=path)
    assert await later.kept("note") == {"shown": "cut \ufffd"}


async def test_a_goal_is_added_from_a_snapshot_that_has_it_apart() -> None:
    memory = MessagesMemory()
    goal, answer = Message.user("Where is Ines?"), Message.assistant("In Porto.")
    assert await memory.load(Snapshot(goal=[goal], messages=[answer]), merge=True) == 2
    assert {m.id for m in await memory.messages()} == {goal.id, answer.id}


@pytest.mark.parametrize("content", ["", "{", "[]", '{"version": 99}', '{"messages": [{}]}'])
async def test_a_file_that_is_not_an_export_changes_nothing(content, tmp_path) -> None:
    memory, path = await filled(), tmp_path / "export.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(SnapshotError):
        await memory.load(path=path)
    assert await memory.count() == 3


async def test_a_path_is_not_taken_for_a_text() -> None:
    with pytest.raises(MemoryUseError, match="path="):
        await MessagesMemory().load("export.json")  # type: ignore[arg-type]


async def test_a_list_of_messages_can_be_loaded() -> None:
    memory = await filled()
    memory.control.step = 4
    await memory.load([Message.user("a"), {"role": "user", "content": "b"}])
    assert [m.content for m in await memory.messages()] == ["a", "b"]
    assert memory.control.step == 4
    assert await memory.goal() == []


async def test_restoring_a_snapshot_twice_is_the_same() -> None:
    memory = await filled()
    snapshot = await memory.snapshot()
    await memory.restore(snapshot)
    await memory.restore(snapshot)
    assert await memory.snapshot() == snapshot


async def test_forgetting_by_age_takes_an_aware_moment() -> None:
    memory = await filled()
    with pytest.raises(MemoryUseError, match="time zone"):
        await memory.forget(older_than=datetime(2024, 1, 1))  # noqa: DTZ001
    with pytest.raises(MemoryDefinitionError, match="older_than="):
        await memory.forget(older_than=timedelta(0))


async def test_forgetting_empties_the_registers_of_the_last_run_only() -> None:
    memory = await filled()
    memory.control.scratch["quote"] = "b"
    memory.control.status = "running"
    await memory.forget(text="汉字")
    assert memory.control.scratch
    memory.control.status = "ended"
    await memory.forget(text="b")
    assert not memory.control.scratch


async def test_reading_by_cause_does_not_make_the_cause() -> None:
    memory = await filled()
    assert await memory.messages(cause_by="never") == []
    assert await memory.messages(cause_by=["never"]) == []
    assert await memory.messages(role="user", last=1) == [(await memory.messages())[1]]


async def test_kept_values_are_copies_and_part_of_snapshots() -> None:
    memory = await filled()
    await memory.keep("list", [1])
    (await memory.kept("list")).append(2)  # type: ignore[union-attr]
    fork = await memory.fork()
    await fork.keep("list", None)
    assert await memory.kept("list") == [1]
    assert await fork.kept("list") is None


@pytest.mark.parametrize(
    "make",
    [
        MessagesMemory,
        WindowedMemory,
        VectorMemory,
        lambda: MessagesMemory(journal=RamJournal()),
        lambda: TodoMemory(MessagesMemory()),
        lambda: LayeredMemory(WindowedMemory(max_messages=2), MessagesMemory()),
        lambda: DurableMemory(FakeMemory, journal=RamJournal()),
    ],
)
async def test_what_was_added_is_told_and_deleted_all_or_none(make) -> None:
    memory = make()
    said = [Message.user(text) for text in "abc"]
    assert await memory.update(said[:2]) == [said[0].id, said[1].id]
    assert await memory.update(said) == [said[2].id]
    with pytest.raises(MemoryUseError, match="no message 'x', 'y' here, and nothing was deleted"):
        await memory.delete([said[0].id, "y", "x"], strict=True)
    assert await memory.messages() == said
    assert await memory.delete([said[0].id, said[2].id], strict=True) == 2
    assert await memory.messages() == [said[1]]


@pytest.mark.parametrize("long", [None, {}, {"journal": RamJournal(), "shared": True}])
async def test_clear_keeps_whole_groups(long) -> None:
    call = Action(name="look", args={})
    said = [
        Message.system("rules"),
        Message.user("look"),
        Message.assistant("", call),
        Message.tool("seen", call),
        Message.assistant("done", pinned=True),
    ]
    for keep, left in (
        (lambda message: message.role in ("system", "tool"), [0, 2, 3]),
        ((said[3].id, "unknown"), [2, 3]),
        ("pinned", [4]),
        ([], []),
    ):
        memory: Any = MessagesMemory()
        if long is not None:
            memory = LayeredMemory(WindowedMemory(max_messages=2), MessagesMemory(**long))
        await memory.update(said)
        for wrong in ("pined", 7):
            with pytest.raises(MemoryUseError, match='"pinned", IDs in a list, or a function'):
                await memory.clear(keep=wrong)
        assert await memory.clear(keep=keep) == len(said) - len(left)
        assert await memory.messages() == [said[at] for at in left]
        await memory.clear()


async def test_messages_are_found_by_when_it_happened(tmp_path) -> None:
    then = datetime(2023, 4, 1, 9, tzinfo=UTC)
    trip = Message.user("We went to Porto", occurred_at=then)
    for _ in range(2):
        async with VectorMemory(journal=tmp_path / "trips.db", recent=1) as memory:
            await memory.update([trip, Message.assistant("How was Porto?")])
            await memory.set_goal("Where did we go, Porto?")
            found = await memory.recall("Porto", until=then + timedelta(days=1))
            assert [item.message for item in found] == [trip]
            assert await memory.messages(since=then, until=then + timedelta(1)) == [trip]
            (block, *_) = await memory.context()
            assert ", happened 2023-04-01 09:00] user: We went to Porto" in block.content
    async with MessagesMemory(journal=tmp_path / "trips.db") as memory:
        assert await memory.forget(older_than=timedelta(days=1)) == 0  # it was said just now


def test_session_keys_never_collide() -> None:
    pairs = [("a", None), ("a", "a"), ('["a"]', None), ('a","b', None), ("b", 'a"'), ("null", None)]
    keys = {session_key(session, tenant) for session, tenant in pairs}
    assert len(keys) == len(pairs)
    assert [read_session_key(session_key(*pair)) for pair in pairs] == pairs


@pytest.mark.parametrize(
    "wrong", [{"session": ""}, {"session": None}, {"tenant": ""}, {"tenant": 7}]
)
def test_names_that_are_none_are_refused(wrong) -> None:
    with pytest.raises(MemoryDefinitionError, match="must be a text"):
        MessagesMemory(**wrong)


def test_what_is_not_a_journal_is_refused() -> None:
    with pytest.raises(MemoryDefinitionError, match="not a journal"):
        MessagesMemory(journal=7)  # type: ignore[arg-type]


def test_every_name_is_registered_and_case_does_not_matter() -> None:
    assert {"layered", "messages", "summary", "todo", "windowed"} <= {*memory_names()}
    for name in ("messages", "Windowed", "SUMMARY", "todo"):
        assert create_memory(name).available_tools is not None
    with pytest.raises(MemoryDefinitionError, match="windowed"):
        create_memory("no such memory")
    with pytest.raises(MemoryDefinitionError, match="max_message"):
        create_memory("windowed", max_message=3)  # type: ignore[call-arg]


def test_a_name_that_is_taken_is_refused() -> None:
    with pytest.raises(MemoryDefinitionError, match="already registered"):
        register_memory("Windowed", MessagesMemory)
    register_memory("messages", MessagesMemory)


async def test_an_own_journal_is_closed_with_the_memory(tmp_path) -> None:
    async with MessagesMemory(journal=tmp_path / "journal.db") as memory:
        await memory.update([Message.user("a")])
        assert memory.journal is not None
    assert [file.name for file in tmp_path.iterdir()] == ["journal.db"]
    data = json.dumps((await filled()).control.model_dump(mode="json"))
    assert "idle" in data


async def test_a_rollback_counts_before_its_entries_are_removed() -> None:
    """As after a crash between the two."""
    journal = RamJournal()
    memory = MessagesMemory(journal=journal)
    await memory.update([Message.user("kept")])
    await memory.checkpoint()
    (key,) = await journal.sessions()
    at = await journal.last(key)
    await memory.update([Message.user("half a step")])
    await journal.append(key, [Entry("rollback", {"to": at, "kept": []})])
    later = MessagesMemory(journal=journal)
    await later.update([Message.user("more")])
    assert [m.content for m in await later.messages()] == ["kept", "more"]
    assert [m.content for m in await MessagesMemory(journal=journal).messages()] == ["kept", "more"]


@pytest.mark.parametrize("merge", [False, True])
async def test_of_two_messages_with_one_id_the_first_is_kept(merge: bool) -> None:
    twice = [Message.user(text, id="a") for text in ("first", "second")]
    updated, loaded, restored = MessagesMemory(), MessagesMemory(), MessagesMemory()
    await updated.update(twice)
    await loaded.load(twice, merge=merge)
    await restored.restore(Snapshot(messages=twice))
    for memory in (updated, loaded, restored):
        assert await memory.messages() == twice[:1]
