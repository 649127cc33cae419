"""Repetitions that a memory is asked to leave out, and what a long-term memory keeps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from agent_brain.memories import (
    Attachment,
    DurableMemory,
    LayeredMemory,
    MemoryDefinitionError,
    MemoryUseError,
    Message,
    MessagesMemory,
    RamJournal,
    SummaryMemory,
    VectorMemory,
    WindowedMemory,
    create_memory,
)
from agent_brain.testing import FakeMemory
from agent_brain.tools import Action

pytestmark = pytest.mark.anyio

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


def yes(**fields: Any) -> Message:
    return Message.user("yes", **fields)


@pytest.mark.parametrize(
    "make",
    [
        *map(partial, [MessagesMemory, WindowedMemory, SummaryMemory, VectorMemory]),
        partial(create_memory, "layered"),
        lambda **options: MessagesMemory(journal=RamJournal(), **options),
        lambda **options: DurableMemory(FakeMemory, journal=RamJournal(), **options),
    ],
)
async def test_what_is_said_again_in_a_turn_is_added_once(make) -> None:
    memory = make(dedupe=1)
    first, found = yes(), Message.assistant("Found it.")
    assert await memory.update([first, yes()]) == [first.id]
    assert await memory.update([yes()]) == []
    await memory.update([found])
    assert await memory.update([Message.assistant("Found it."), found]) == []
    second = yes()  # to another question
    assert await memory.update([second]) == [second.id]
    again = Message.assistant("Found it.")
    assert await memory.update([again]) == [again.id]
    assert await memory.messages() == await memory.context() == [first, found, second, again]


async def test_more_turns_are_looked_at_where_that_is_asked_for() -> None:
    memory = MessagesMemory(dedupe=2)
    said = [yes(), Message.assistant("And?"), yes(), Message.assistant("No?"), yes()]
    assert await memory.update(said) == [said[0].id, said[1].id, said[3].id]
    talk = [Message.user("no"), Message.assistant("Well."), Message.user("hm")]
    await memory.update(talk)
    assert await memory.update([later := yes()]) == [later.id]


async def test_repetitions_are_found_within_a_time_after_a_restart(tmp_path) -> None:
    options = {"journal": tmp_path / "said.db", "dedupe": timedelta(minutes=5)}
    async with MessagesMemory(**options) as memory:
        await memory.update([Message.assistant("Reminder: tea", created_at=NOON)])
    async with MessagesMemory(**options) as memory:
        copy = await memory.fork()
        for over in (memory, copy):
            for minutes, added in ((-5, 0), (5, 0), (6, 1), (7, 0)):
                again = Message.assistant(
                    "Reminder: tea", created_at=NOON + timedelta(minutes=minutes)
                )
                assert await over.update([again]) == [again.id] * added
            assert await over.count() == 2


async def test_only_the_same_words_of_the_same_speaker_are_a_repetition() -> None:
    memory = MessagesMemory(dedupe=timedelta(days=1))
    call = Action(name="look", args={})
    said = [
        yes(),
        yes(name="Ann"),
        yes(sent_from="bob"),
        yes(send_to="ann"),
        yes(attachments=Attachment(media_type="image/png", url="https://example.com/a.png")),
        Message.assistant("yes"),
        Message.user("Yes"),
        Message.assistant("yes", call),
        Message.tool("yes", call),
        Message.assistant("yes", again := Action(name="look", args={})),
        Message.tool("yes", again),
    ]
    assert len(await memory.update(said)) == len(said)
    goal = yes()
    await memory.set_goal(goal)  # a question is always one
    assert await memory.goal() == [goal]


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "1", timedelta(0)])
def test_a_window_that_is_none_is_refused(wrong) -> None:
    with pytest.raises(MemoryDefinitionError, match="a timedelta, or a number of turns"):
        MessagesMemory(dedupe=wrong)


async def test_programs_that_share_a_session_leave_out_what_another_one_said() -> None:
    journal = RamJournal()
    ann, bob = (
        MessagesMemory(journal=journal, session="team", shared=True, dedupe=timedelta(hours=1))
        for _ in range(2)
    )
    await ann.count()
    await bob.update([Message.assistant("done")])
    assert await ann.update([Message.assistant("done")]) == []
    assert await bob.count() == 1


@pytest.mark.parametrize(
    ("keeps", "kept"),
    [
        ("user", "ac"),
        (["user", "assistant"], "abc"),
        (lambda message: "keep" in message.tags, "b"),
        (None, "abcd"),
    ],
)
async def test_a_long_term_memory_gets_what_is_to_be_kept(keeps, kept, tmp_path) -> None:
    call = Action(name="look", args={})
    said = [
        Message.user("a"),
        Message.assistant("b", call, tags={"keep"}),
        Message.tool("d", call),
        Message.user("c"),
    ]
    for _ in range(2):
        short = WindowedMemory(max_messages=2, journal=tmp_path / "chat.db", session="chat")
        long = VectorMemory(journal=tmp_path / "user.db", session="user", shared=True)
        async with LayeredMemory(short, long, keeps=keeps) as memory:
            await memory.update(said)
            said = said[4:]
        async with MessagesMemory(journal=tmp_path / "user.db", session="user") as stored:
            held = [message.content for message in await stored.messages()]
            assert sorted(held) == sorted(kept)


async def test_a_memory_by_name_and_its_copy_keep_the_same() -> None:
    memory = create_memory("layered", long="messages", max_messages=1, keeps="user")
    copy = await memory.fork()
    assert isinstance(copy, LayeredMemory)
    await copy.update([Message.assistant("a"), Message.user("b"), Message.user("c")])
    assert [m.content for m in await copy.messages()] == ["b", "c"]
    asked = create_memory("layered", long="messages", max_messages=1, keeps="user", dedupe=1)
    await asked.update([yes(), Message.assistant("Really?"), yes(), yes(), Message.assistant("Ok")])
    await asked.aclose()
    assert isinstance(asked, LayeredMemory)
    assert [m.content for m in await asked.long.messages()] == ["yes", "yes"]
    with pytest.raises(MemoryUseError, match="There is no role 'robot'"):
        create_memory("layered", keeps="robot")
