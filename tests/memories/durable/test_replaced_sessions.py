"""A session that a fork replaces: the old one is whole, or the new one, whatever happens."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from agent_brain.memories import (
    Journal,
    JournalError,
    Message,
    MessagesMemory,
    RamJournal,
    SessionConflictError,
    SQLiteJournal,
    list_sessions,
    session_key,
)
from agent_brain.memories.store.session import is_branch, read_session_key
from tests.memories.durable.killed_runs import open_journal
from tests.support.journals import Killed, MortalJournal

pytestmark = pytest.mark.anyio


class Exchanging(MortalJournal):
    """Dies, and can replace a session in one step."""

    has_exchange = True


async def waiting(journal: Journal, session: str, said: str) -> MessagesMemory:
    """Return a session whose run was interrupted in a branch."""
    memory = MessagesMemory(journal=journal, session=session)
    await memory.begin(Message.user(said), "run_1", "STATE")
    branch = await memory.branch("a")
    await branch.checkpoint()
    await branch.update([Message.user(f"inside {said}")])
    return MessagesMemory(journal=journal, session=session)


async def plain(journal: Journal, session: str, said: str) -> MessagesMemory:
    """Return a session of an interrupted run without branches, in the same step."""
    memory = MessagesMemory(journal=journal, session=session)
    await memory.begin(Message.user(said), "run_1", "STATE")
    return MessagesMemory(journal=journal, session=session)


async def held(journal: Journal, session: str) -> tuple[list[str], list[str]]:
    """Return what a session says, and what its branch says, if it finds one."""
    memory = MessagesMemory(journal=journal, session=session)
    said = [message.content for message in await memory.messages()]
    if not await memory.has_branches():
        return said, []
    branch = cast("MessagesMemory", await memory.branch("a"))
    return said, [message.content for message in await branch.messages()]


async def set_up(source: Any, target: Any) -> tuple[RamJournal, MessagesMemory]:
    store = RamJournal()
    await target(store, "to", "old")
    return store, await source(store, "from", "new")


STATES = {
    waiting: lambda said: ([said], [said, f"inside {said}"]),
    plain: lambda said: ([said], []),
}
PAIRS = [(waiting, waiting), (waiting, plain), (plain, waiting)]


@pytest.mark.parametrize(("source", "target"), PAIRS)
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("error", [Killed, JournalError])
async def test_a_session_is_replaced_at_once(
    source: Any, target: Any, after: bool, error: type[BaseException]
) -> None:
    before, now = STATES[target]("old"), STATES[source]("new")
    seen = set[str]()
    for dies_at in range(1, 100):
        store, memory = await set_up(source, target)
        mortal = Exchanging(store, dies_at, after=after, error=error)
        try:
            await memory.fork(journal=mortal, session="to", replace=True)
        except error:
            found = await held(store, "to")
            assert found in (before, now)
            seen.add("old" if found == before else "new")
        else:
            assert await held(store, "to") == now
            assert dies_at > mortal.writes
            break
        assert await held(store, "from") == now, "the original has changed"
    assert seen


@pytest.mark.parametrize("after", [False, True])
async def test_where_it_takes_several_steps_the_old_one_is_kept_aside(after: bool) -> None:
    before, now = STATES[waiting]("old"), STATES[waiting]("new")
    for dies_at in range(1, 100):
        store, memory = await set_up(waiting, waiting)
        mortal = MortalJournal(store, dies_at, after=after)
        try:
            await memory.fork(journal=mortal, session="to", replace=True)
        except Killed:
            names = {info.session for info in await list_sessions(store)} - {"from"}
            whole = [await held(store, name) for name in names]
            assert before in whole or now in whole
        else:
            names = {info.session for info in await list_sessions(store)}
            assert names == {"from", "to"}
            assert await held(store, "to") == now
            break


@pytest.mark.parametrize("after", [False, True])
async def test_where_it_takes_several_steps_the_old_one_is_put_back(after: bool) -> None:
    before, now = STATES[waiting]("old"), STATES[waiting]("new")
    for dies_at in range(1, 100):
        store, memory = await set_up(waiting, waiting)
        mortal = MortalJournal(store, dies_at, after=after, error=JournalError)
        try:
            await memory.fork(journal=mortal, session="to", replace=True)
        except JournalError:
            assert await held(store, "to") == before
            await memory.fork(journal=store, session="to", replace=True)
        if dies_at > mortal.writes:
            break
        assert await held(store, "to") == now


async def test_the_error_says_where_the_old_one_is_if_it_cannot_be_put_back() -> None:
    class Broken(MortalJournal):
        async def load(self, session: str, entries: Any) -> None:
            if self.writes > 2:  # the copy was written
                raise JournalError("full")
            await super().load(session, entries)

    store, memory = await set_up(waiting, waiting)
    with pytest.raises(JournalError, match=r"full.*nor put back.*what it was is session") as caught:
        await memory.fork(journal=Broken(store), session="to", replace=True)
    keys = [key for key in await store.sessions() if not is_branch(key)]
    (name,) = {read_session_key(key)[0] for key in keys} - {"from", "to"}
    assert repr(name) in str(caught.value)
    assert await held(store, name) == STATES[waiting]("old")


async def test_a_warning_says_where_the_old_one_is_if_it_cannot_be_removed(caplog: Any) -> None:
    class Broken(MortalJournal):
        async def delete(self, session: str, *args: Any, **options: Any) -> int:
            if session not in (session_key("to"), *to_branches):
                raise JournalError("busy")
            return await super().delete(session, *args, **options)

    store, memory = await set_up(waiting, waiting)
    to_branches = [key for key in await store.sessions() if is_branch(key) and '"to"' in key]
    await memory.fork(journal=Broken(store), session="to", replace=True)
    assert await held(store, "to") == STATES[waiting]("new")
    assert "is still session 'to before" in caplog.text


@pytest.mark.parametrize(("source", "target"), PAIRS)
async def test_a_session_is_replaced_in_a_file(source: Any, target: Any, tmp_path: Path) -> None:
    async with SQLiteJournal(tmp_path / "j.db") as journal:
        await target(journal, "to", "old")
        stale = MessagesMemory(journal=journal, session="to")
        await stale.open()
        memory = await source(journal, "from", "new")
        await memory.fork(journal=journal, session="to", replace=True)
        assert await held(journal, "to") == STATES[source]("new")
        with pytest.raises(SessionConflictError):
            await stale.update([Message.user("of somebody who has read the old one")])


def test_a_session_is_replaced_in_any_journal(journal: tuple[str, str]) -> None:
    async def replace() -> None:
        async with open_journal(*journal) as store:
            await waiting(store, "to", "old")
            memory = await waiting(store, "from", "new")
            await memory.fork(journal=store, session="to", replace=True)
            assert await held(store, "to") == STATES[waiting]("new")
            await store.release(await store.acquire(session_key("to")))
            left = [key for key in await store.sessions() if is_branch(key)]
            assert len(left) == 2

    anyio.run(replace)
