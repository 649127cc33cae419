"""A session that is opened to be read: nothing is ever written."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent_brain.memories import (
    AutoMemory,
    JournalError,
    MemoryDefinitionError,
    Message,
    MessagesMemory,
    ReadOnlyMemoryError,
    SQLiteJournal,
    SummaryMemory,
    TodoMemory,
    VectorMemory,
    WindowedMemory,
    create_memory,
    session_key,
)
from tests.memories.vector.support import WordsEmbedder, bytes_under
from tests.support.thorough import first_of

pytestmark = pytest.mark.anyio


def layered(**options):
    return create_memory("layered", long="messages", **options)


MEMORIES: dict[str, Callable[..., Any]] = {
    "messages": MessagesMemory,
    "vector": VectorMemory,
    "auto": lambda **o: AutoMemory(max_tokens=60, **o),
    **{f"windowed-{n}": lambda n=n, **o: WindowedMemory(max_messages=n, **o) for n in (1, 2, 3)},
    **{f"layered-{n}": lambda n=n, **o: layered(max_messages=n, **o) for n in (1, 2, 3)},
    "todo": lambda **o: create_memory("todo", **o),
    **{f"summary-{n}": lambda n=n, **o: SummaryMemory(max_messages=n, **o) for n in (1, 2, 3)},
}
USUAL = [name for name in MEMORIES if not name.endswith(("-2", "-3"))]
WRITING = {
    "set_goal": lambda m: m.set_goal("x"),
    "begin": lambda m: m.begin(Message.user("x"), "run", "STATE"),
    "update": lambda m: m.update([Message.user("x")]),
    "update of nothing": lambda m: m.update([]),
    "keep": lambda m: m.keep("name", 1),
    "tag": lambda m: m.tag("goal", "x"),
    "untag": lambda m: m.untag("goal", "x"),
    "delete": lambda m: m.delete("goal"),
    "delete of nothing": lambda m: m.delete("unknown"),
    "forget": lambda m: m.forget("goal"),
    "clear": lambda m: m.clear(),
    "load": lambda m: m.load([]),
    "merge": lambda m: m.load([], merge=True),
    "restore": lambda m: m.restore(m.kept_snapshot),
    "checkpoint": lambda m: m.checkpoint(),
    "rollback": lambda m: m.rollback(),
}


@pytest.fixture(params=first_of(MEMORIES, *USUAL))
def make(request):
    return MEMORIES[request.param]


async def read_everything(memory) -> None:
    await memory.open()
    await memory.goal()
    await memory.dump()
    await memory.context()
    await memory.turn()
    await memory.messages(text="a")
    await memory.find_news()
    await memory.snapshot()
    await memory.count()
    await memory.kept("note")


async def test_reading_writes_nothing(make, tmp_path) -> None:
    """Neither what is too much for the context nor what has expired."""
    path, now = tmp_path / "journal.db", datetime.now(UTC)
    async with SQLiteJournal(path) as journal:
        writer = make(journal=journal, clock=lambda: now)
        await writer.set_goal(Message.user("goal", id="goal"))
        late = Message.user("gone", id="late", expires_at=now + timedelta(minutes=1))
        said = [Message.user(f"message {n}") for n in range(9)]
        await writer.update([*said[:8], late, said[8]])
        before = await journal.read(session_key("default"))
        now += timedelta(hours=1)
        async with make(journal=path, clock=lambda: now, readonly=True) as viewer:
            await read_everything(viewer)
            assert await viewer.get("late") is None
            assert (await viewer.context())[-1].content == "message 8"
        assert await journal.read(session_key("default")) == before
        now -= timedelta(hours=1)
        await writer.update([Message.user("goes on")])


@pytest.mark.parametrize("what", WRITING)
@pytest.mark.parametrize("name", USUAL)
async def test_writing_is_refused(name, what, tmp_path) -> None:
    make, path = MEMORIES[name], tmp_path / "journal.db"
    async with make(journal=path) as writer:
        await writer.set_goal(Message.user("goal", id="goal"))
        await writer.checkpoint()
    before = path.read_bytes()
    async with make(journal=path, readonly=True) as viewer:
        viewer.kept_snapshot = await viewer.snapshot()
        with pytest.raises(ReadOnlyMemoryError, match=r"readonly=True"):
            await WRITING[what](viewer)
        assert [m.id for m in await viewer.messages()] == ["goal"]
    assert path.read_bytes() == before


async def test_it_sees_what_others_wrote_after_reopen(make, tmp_path) -> None:
    path = tmp_path / "journal.db"
    async with make(journal=path) as writer, make(journal=path, readonly=True) as viewer:
        await writer.update([Message.user("one")])
        assert await viewer.count() == 0
        await writer.update([Message.user("two")])
        writer.control.step = 3
        await writer.checkpoint()
        await viewer.reopen()
        assert (await viewer.context())[-1].content == "two"
        assert viewer.control.step == 3
        await writer.update([Message.user("three")])


async def test_a_fork_of_it_can_be_written(make, tmp_path) -> None:
    path = tmp_path / "journal.db"
    async with make(journal=path) as writer:
        await writer.update([Message.user("one")])
    async with make(journal=path, readonly=True) as viewer:
        fork = await viewer.fork()
        await fork.update([Message.user("two")])
        assert (await fork.messages())[-1].content == "two"


async def test_a_forget_that_was_cut_off_is_left_to_a_writer_and_hidden(tmp_path) -> None:
    from agent_brain.memories import Entry

    path = tmp_path / "journal.db"
    async with SQLiteJournal(path) as journal:
        memory = MessagesMemory(journal=journal)
        await memory.update([Message.user("SECRET", id="secret"), Message.user("public")])
        await journal.append(session_key("default"), [Entry("forget", ["secret"])])
    async with MessagesMemory(journal=path, readonly=True) as viewer:
        assert [m.content for m in await viewer.messages()] == ["public"]
    assert b"SECRET" in bytes_under(tmp_path)
    async with MessagesMemory(journal=path) as writer:
        await writer.open()
    assert b"SECRET" not in bytes_under(tmp_path)


async def test_it_needs_a_journal_and_makes_none(make, tmp_path) -> None:
    with pytest.raises(MemoryDefinitionError, match="journal="):
        make(readonly=True)
    viewer = make(journal=tmp_path / "none.db", readonly=True)
    with pytest.raises(JournalError, match="cannot be opened"):
        await viewer.open()
    await viewer.aclose()
    assert [*tmp_path.iterdir()] == []


async def test_a_journal_may_be_read_only_too(tmp_path) -> None:
    from agent_brain.memories import Entry

    path = tmp_path / "journal #1?.db"
    async with SQLiteJournal(path) as journal:
        await journal.append("s", [Entry("k", 1)])
        async with SQLiteJournal(path, readonly=True) as viewer:
            assert [entry.data for entry in await viewer.read("s")] == [1]
            await journal.append("s", [Entry("k", 2)])
            assert await viewer.last("s") == await journal.last("s")
            with pytest.raises(JournalError, match="readonly=True"):
                await viewer.append("s", [Entry("k", 3)])
            with pytest.raises(JournalError, match="readonly=True"):
                await viewer.delete("s")


async def test_vectors_are_read_and_not_written(tmp_path) -> None:
    async with VectorMemory(path=tmp_path, embedder=WordsEmbedder()) as writer:
        await writer.update([Message.user("My kitten sleeps"), Message.user("We drove home")])
    embedder = WordsEmbedder()
    async with VectorMemory(path=tmp_path, embedder=embedder, readonly=True) as viewer:
        (hit,) = await viewer.recall("dog", 1)
        assert hit.message.content == "My kitten sleeps"
        assert embedder.texts == ["dog"]
        with pytest.raises(ReadOnlyMemoryError):
            await viewer.reindex()
    missing = tmp_path / "missing"
    viewer = VectorMemory(path=missing, embedder=embedder, readonly=True)
    with pytest.raises(JournalError):
        await viewer.recall("dog")
    await viewer.aclose()
    assert not missing.exists()


async def test_it_goes_through_a_wrapper_and_by_name(tmp_path) -> None:
    path = tmp_path / "journal.db"
    async with create_memory("todo", journal=path) as writer:
        assert isinstance(writer, TodoMemory)
        await writer.add_todo("look")
    async with create_memory("todo", journal=path, readonly=True) as viewer:
        assert "look" in (await viewer.context())[0].content
        with pytest.raises(ReadOnlyMemoryError):
            await viewer.add_todo("more")  # type: ignore[attr-defined]
    async with create_memory("layered", journal=path, session="l", max_messages=2) as writer:
        await writer.update([Message.user(str(n)) for n in range(5)])
    async with create_memory(
        "layered", journal=path, session="l", max_messages=2, readonly=True
    ) as viewer:
        assert [m.content for m in await viewer.context()][-2:] == ["3", "4"]
        with pytest.raises(ReadOnlyMemoryError):
            await viewer.update([Message.user("more")])


@pytest.mark.parametrize("size", [1, 2, 3])
async def test_a_summary_is_not_made_by_reading(size, tmp_path) -> None:
    path = tmp_path / "journal.db"
    async with SummaryMemory(journal=path, max_messages=size) as writer:
        await writer.update([Message.user(str(n)) for n in range(9)])
        async with SummaryMemory(journal=path, max_messages=size, readonly=True) as viewer:
            assert len(await viewer.context()) <= size
            with pytest.raises(ReadOnlyMemoryError):
                await viewer.compact()
        await writer.context()
        assert writer.summary
