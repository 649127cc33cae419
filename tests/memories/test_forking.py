"""A fork with a journal never destroys what a session holds unless it is asked to."""

from __future__ import annotations

import pytest

from agent_brain.memories import (
    MemoryUseError,
    Message,
    MessagesMemory,
    RamJournal,
    SQLiteJournal,
    SummaryMemory,
    VectorMemory,
    WindowedMemory,
)

pytestmark = pytest.mark.anyio

MEMORIES = {
    "messages": MessagesMemory,
    "vector": VectorMemory,
    **{f"windowed-{n}": lambda n=n, **o: WindowedMemory(max_messages=n, **o) for n in (1, 2, 3)},
    **{f"summary-{n}": lambda n=n, **o: SummaryMemory(max_messages=n, **o) for n in (1, 2, 3)},
}


@pytest.fixture(params=MEMORIES)
def make(request):
    return MEMORIES[request.param]


async def said(memory) -> list[str]:
    return [message.content for message in await memory.messages()]


async def test_a_session_that_holds_something_is_refused(make) -> None:
    journal = RamJournal()
    alice = make(journal=journal, session="alice")
    await alice.update([Message.user("Alice's")])
    memory = make(journal=journal, session="bob")
    await memory.update([Message.user("Bob's")])
    with pytest.raises(MemoryUseError, match=r"alice.*replace=True"):
        await memory.fork(journal=journal, session="alice")
    assert await said(make(journal=journal, session="alice")) == ["Alice's"]
    await alice.update([Message.user("more")])
    fork = await memory.fork(journal=journal, session="alice", replace=True)
    assert await said(fork) == await said(make(journal=journal, session="alice")) == ["Bob's"]
    assert await said(make(journal=journal, session="bob")) == ["Bob's"]


async def test_a_session_with_nothing_but_registers_is_refused_too(make) -> None:
    journal = RamJournal()
    alice = make(journal=journal, session="alice")
    alice.control.begin("run-1", "REASON")
    await alice.checkpoint()
    with pytest.raises(MemoryUseError, match="replace=True"):
        await make().fork(journal=journal, session="alice")


@pytest.mark.parametrize("replace", [False, True])
async def test_its_own_session_is_always_refused(make, replace, tmp_path) -> None:
    path = tmp_path / "journal.db"
    (tmp_path / "link.db").symlink_to(path)
    async with SQLiteJournal(path) as journal, make(journal=journal) as memory:
        await memory.update([Message.user("one")])
        for place in (journal, path, tmp_path / "link.db"):
            with pytest.raises(MemoryUseError, match="of the memory itself"):
                await memory.fork(journal=place, replace=replace)
        assert await said(make(journal=journal)) == ["one"]
        await memory.update([Message.user("two")])
        fork = await memory.fork(journal=path, tenant="other")
        await fork.update([Message.user("three")])
        await fork.aclose()
    async with make(journal=path) as later:
        assert (await said(later))[-1] == "two"


async def test_a_refused_fork_closes_what_it_opened(make, tmp_path) -> None:
    async with make(journal=tmp_path / "journal.db") as memory:
        await memory.update([Message.user("one")])
        with pytest.raises(MemoryUseError):
            await memory.fork(journal=tmp_path / "journal.db")
    assert [file.name for file in tmp_path.iterdir()] == ["journal.db"], "a connection is open"
