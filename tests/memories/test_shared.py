"""A session that many memories append to at the same time."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import anyio
import pytest

from agent_brain.memories import (
    AutoMemory,
    MemoryDefinitionError,
    MemoryUseError,
    Message,
    MessagesMemory,
    RamJournal,
    SessionConflictError,
    SQLiteJournal,
    VectorMemory,
    WindowedMemory,
    delete_session,
)
from tests.support.journals import Killed, MortalJournal

pytestmark = pytest.mark.anyio


def contents(messages: list[Message]) -> list[str]:
    return [message.content for message in messages]


async def test_each_memory_sees_at_its_next_use_what_the_others_wrote() -> None:
    journal = RamJournal()
    one, two = (MessagesMemory(journal=journal, shared=True) for _ in range(2))
    await one.update([Message.user("a")])
    await two.update([Message.user("b")])
    await one.update([Message.user("c")])
    assert contents(await one.messages()) == contents(await two.messages()) == ["a", "b", "c"]


async def test_a_message_that_two_memories_add_is_there_once() -> None:
    journal = RamJournal()
    one, two = (MessagesMemory(journal=journal, shared=True) for _ in range(2))
    await one.open()
    await two.open()
    said = Message.user("a")
    await one.update([said])
    await two.update([said, Message.user("b")])
    later = MessagesMemory(journal=journal, shared=True)
    assert contents(await later.messages()) == ["a", "b"]


async def test_many_memories_write_at_the_same_time(tmp_path) -> None:
    path = tmp_path / "journal.db"
    memories = [MessagesMemory(journal=path, shared=True) for _ in range(5)]

    async def write(number: int) -> None:
        for at in range(10):
            await memories[number].update([Message.user(f"{number}-{at}-{i}") for i in range(2)])

    async with anyio.create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(write, number)
    orders = [contents(await memory.messages()) for memory in memories]
    assert all(order == orders[0] for order in orders)
    assert sorted(orders[0]) == sorted(
        f"{number}-{at}-{i}" for number in range(5) for at in range(10) for i in range(2)
    )
    for number in range(5):
        own = [said for said in orders[0] if said.startswith(f"{number}-")]
        assert own == [f"{number}-{at}-{i}" for at in range(10) for i in range(2)]
    for memory in memories:
        await memory.aclose()


PROGRAM = """
import sys
import anyio
from agent_brain.memories import Message, MessagesMemory

async def main(path, name):
    async with MessagesMemory(journal=path, shared=True) as memory:
        for at in range(20):
            await memory.update([Message.user(f"{name}-{at}")])

anyio.run(main, *sys.argv[1:])
"""


async def test_several_processes_write_at_the_same_time(tmp_path) -> None:
    path = str(tmp_path / "journal.db")
    running = [
        subprocess.Popen([sys.executable, "-c", PROGRAM, path, name]) for name in ("a", "b", "c")
    ]
    for process in running:
        assert await anyio.to_thread.run_sync(process.wait) == 0
    async with MessagesMemory(journal=path, shared=True) as memory:
        said = contents(await memory.messages())
    assert sorted(said) == sorted(f"{name}-{at}" for name in "abc" for at in range(20))


async def test_goal_and_control_are_those_of_each_memory() -> None:
    journal = RamJournal()
    one, two = (MessagesMemory(journal=journal, shared=True) for _ in range(2))
    await one.begin(Message.user("first"), "run-1", "START")
    await two.begin(Message.user("second"), "run-2", "START")
    await one.checkpoint()
    assert contents(await one.goal()) == ["first"]
    assert contents(await two.goal()) == ["second"]
    assert (one.control.run_id, two.control.run_id) == ("run-1", "run-2")
    later = MessagesMemory(journal=journal, shared=True)
    await later.open()
    assert await later.goal() == []
    assert later.control.run_id is None
    assert contents(await one.turn()) == ["first", "second"]


@pytest.mark.parametrize("method", ["delete", "forget"])
async def test_what_one_memory_removes_is_gone_in_all(method) -> None:
    journal = RamJournal()
    one, two = (MessagesMemory(journal=journal, shared=True) for _ in range(2))
    secret = Message.user("SECRET")
    await one.update([secret, Message.user("b")])
    assert await two.count() == 2
    await getattr(one, method)(secret.id)
    assert contents(await two.messages()) == ["b"]
    assert contents(await MessagesMemory(journal=journal, shared=True).messages()) == ["b"]
    if method == "forget":
        assert "SECRET" not in repr(await journal.read((await journal.sessions())[0]))


async def test_what_one_memory_clears_is_gone_in_all() -> None:
    journal = RamJournal()
    one, two = (MessagesMemory(journal=journal, shared=True) for _ in range(2))
    await one.update([Message.user("a")])
    assert await two.count() == 1
    await one.clear()
    await two.update([Message.user("b")])
    assert contents(await one.messages()) == ["b"]


async def test_messages_expire_in_all() -> None:
    from datetime import UTC, datetime

    now = [datetime.now(UTC)]
    journal = RamJournal()
    one, two = (
        MessagesMemory(journal=journal, shared=True, ttl=60, clock=lambda: now[0]) for _ in range(2)
    )
    await one.update([Message.user("a")])
    assert await two.count() == 1
    now[0] += timedelta(seconds=61)
    assert await two.count() == 0
    assert await one.count() == 0


async def test_a_viewer_sees_what_is_written() -> None:
    journal = RamJournal()
    writer = MessagesMemory(journal=journal, shared=True)
    viewer = MessagesMemory(journal=journal, shared=True, readonly=True)
    assert await viewer.count() == 0
    await writer.update([Message.user("a")])
    assert contents(await viewer.messages()) == ["a"]


@pytest.mark.parametrize("kind", ["ram", "sqlite"])
@pytest.mark.parametrize("again", [False, True])
async def test_a_session_that_was_deleted_begins_anew_in_memories_that_have_it_open(
    kind: str, again: bool, tmp_path: Path
) -> None:
    journal = RamJournal() if kind == "ram" else SQLiteJournal(tmp_path / "s.db", durability="os")
    one, two = (MessagesMemory(journal=journal, shared=True) for _ in range(2))
    await one.update([Message.user("a")])
    assert contents(await two.messages()) == ["a"]
    await delete_session(journal, "default")
    before = ["new"] if again else []
    if again:  # its entries may have the numbers that follow those of the old one
        await MessagesMemory(journal=journal, shared=True).update([Message.user("new")])
    assert contents(await two.messages()) == before
    with anyio.fail_after(60):
        await one.update([Message.user("b")])
    for memory in (one, two, MessagesMemory(journal=journal, shared=True)):
        assert contents(await memory.messages()) == [*before, "b"]
    await journal.aclose()


async def test_a_memory_that_is_not_shared_gets_a_conflict() -> None:
    journal = RamJournal()
    alone, shared = MessagesMemory(journal=journal), MessagesMemory(journal=journal, shared=True)
    await alone.update([Message.user("a")])
    await shared.update([Message.user("b")])
    with pytest.raises(SessionConflictError, match="shared=True"):
        await alone.update([Message.user("c")])


@pytest.mark.parametrize("make", [WindowedMemory, VectorMemory, AutoMemory])
async def test_views_show_what_the_others_wrote(make) -> None:
    journal = RamJournal()
    one, two = (make(journal=journal, shared=True) for _ in range(2))
    await one.set_goal("cats?")
    await two.update([Message.user("my cat is Tom")])
    assert contents(await one.context()) == ["cats?", "my cat is Tom"]
    assert (await two.get((await one.goal())[0].id)) is not None


async def test_what_another_memory_wrote_is_recalled() -> None:
    journal = RamJournal()
    one, two = (VectorMemory(journal=journal, shared=True) for _ in range(2))
    await one.open()
    await two.update([Message.user("my cat is Tom")])
    assert [r.message.content for r in await one.recall("cat", 1)] == ["my cat is Tom"]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("dies_at", [1, 2, 3, 4])
async def test_a_kill_at_a_write_neither_loses_nor_doubles(dies_at, after) -> None:
    store = RamJournal()
    other = MessagesMemory(journal=store, shared=True)
    mortal = MessagesMemory(journal=MortalJournal(store, dies_at, after=after), shared=True)
    said = [[Message.user(f"{n}-{i}", id=f"{n}-{i}") for i in range(2)] for n in range(3)]
    written = 0
    try:
        for messages in said:
            await mortal.update(messages)
            written += 1
            await other.update([Message.user(f"other {written}")])
        await mortal.forget("1-0")
    except Killed:
        pass
    later = MessagesMemory(journal=store, shared=True)
    for messages in said:
        await later.update(messages)
    found = contents(await later.messages())
    assert len(found) == len({*found})
    assert {m.content for messages in said for m in messages} <= {*found}
    assert contents(await other.messages()) == found


async def test_a_write_that_fails_once_can_be_repeated() -> None:
    store = RamJournal()
    memory = MessagesMemory(journal=MortalJournal(store, 2, after=True, error=OSError), shared=True)
    await memory.update([Message.user("a")])
    said = Message.user("b")
    with pytest.raises(OSError, match="killed"):
        await memory.update([said])
    await memory.update([said])
    assert contents(await memory.messages()) == ["a", "b"]


async def test_a_fork_is_not_shared() -> None:
    journal = RamJournal()
    memory = MessagesMemory(journal=journal, shared=True)
    await memory.update([Message.user("a")])
    fork = await memory.fork()
    await fork.update([Message.user("b")])
    assert not fork.shared
    assert contents(await memory.messages()) == ["a"]
    assert contents(await fork.messages()) == ["a", "b"]


async def test_what_replaces_everything_is_refused() -> None:
    memory = MessagesMemory(journal=RamJournal(), shared=True)
    with pytest.raises(MemoryUseError, match="merge=True"):
        await memory.load([Message.user("a")])
    assert await memory.load([Message.user("a")], merge=True) == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"shared": True}, "give journal= too"),
        ({"shared": True, "journal": RamJournal(), "on_evict": print}, "do not go together"),
    ],
)
async def test_options_that_make_no_sense_are_refused(options, said) -> None:
    with pytest.raises(MemoryDefinitionError, match=said):
        WindowedMemory(**options)


async def test_a_shared_session_of_a_file_is_read_by_one_that_is_alone(tmp_path) -> None:
    async with SQLiteJournal(tmp_path / "journal.db") as journal:
        shared = MessagesMemory(journal=journal, shared=True)
        await shared.update([Message.user("a")])
        await shared.forget(text="a")
        await shared.update([Message.user("b")])
        alone = MessagesMemory(journal=journal)
        assert contents(await alone.messages()) == ["b"]


async def test_a_reader_sees_what_the_only_writer_has_forgotten(tmp_path) -> None:
    path = tmp_path / "j.db"
    async with (
        MessagesMemory(journal=path) as writer,
        MessagesMemory(journal=path, readonly=True, shared=True) as reader,
    ):
        await writer.update([Message.user("one"), Message.user("a secret"), Message.user("two")])
        assert await reader.count() == 3
        await writer.forget(text="secret")
        assert contents(await reader.messages()) == ["one", "two"]


async def test_what_is_added_again_after_it_was_forgotten_stays() -> None:
    journal = RamJournal()
    memory = MessagesMemory(journal=journal, shared=True)
    said = Message.user("a", id="a")
    await memory.update([said, Message.user("b", id="b")])
    await memory.forget("a")
    await memory.update([said])
    for _ in range(3):
        again = MessagesMemory(journal=journal, shared=True)
        assert contents(await again.messages()) == ["b", "a"]
    await again.forget("b")
    assert contents(await again.messages()) == ["a"]
    assert contents(await MessagesMemory(journal=journal, shared=True).messages()) == ["a"]
