"""Forgetting that is killed at one of its writes: the next opening of the session finishes it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from agent_brain import MessagesMemory
from agent_brain.memories import Journal, JournalError, RamJournal, session_key
from tests.memories.forgetting.places import PLACES, SECRET, TEXT
from tests.support.journals import Killed, MortalJournal

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]

REMOVALS: dict[str, Callable[[MessagesMemory], Awaitable[object]]] = {
    "forget": lambda memory: memory.forget(text=TEXT),
    "clear": lambda memory: memory.clear(),
}


INSIDE = [place for place in PLACES if "nested" in place or "branch" in place]


async def everything_in(journal: Journal) -> str:
    keys = await journal.sessions()
    return repr([await journal.read(key, history=True) for key in keys])


async def copied(store: RamJournal) -> RamJournal:
    copy = RamJournal()
    for key in await store.sessions():
        await copy.load(key, await store.read(key, history=True))
    return copy


@pytest.mark.parametrize(
    "place,how",
    [*((place, "forget") for place in PLACES), *((p, "clear") for p in PLACES if p in INSIDE)],
)
async def test_a_removal_that_was_killed_is_finished(place: str, how: str) -> None:
    filled = RamJournal()
    await PLACES[place](filled)
    assert SECRET in await everything_in(filled)
    whole = MortalJournal(await copied(filled))
    await REMOVALS[how](MessagesMemory(journal=whole))
    assert whole.writes
    assert SECRET not in await everything_in(whole.store)
    for at in range(1, whole.writes + 1):
        for after in (False, True):
            store = await copied(filled)
            with suppress(Killed):
                await REMOVALS[how](
                    MessagesMemory(journal=MortalJournal(store, dies_at=at, after=after))
                )
            later = MessagesMemory(journal=store)
            await later.open()
            if (at, after) == (1, False):
                assert SECRET in await everything_in(store), "nothing has happened"
                continue
            assert SECRET not in await everything_in(store), (at, after)
            waits = later.control.status == "waiting"
            inside = later.control.human_requests and later.control.human_requests.inside
            branches = [key for key in await store.sessions() if key != session_key("default")]
            assert branches or not (waits and inside), "it waits in a branch that is gone"


@pytest.mark.thorough
@pytest.mark.parametrize("place", [place for place in PLACES if place in INSIDE])
async def test_a_removal_that_failed_is_done_by_the_next_try(place: str) -> None:
    filled = RamJournal()
    await PLACES[place](filled)
    whole = MortalJournal(await copied(filled))
    await REMOVALS["forget"](MessagesMemory(journal=whole))
    for at in range(1, whole.writes + 1):
        for after in (False, True):
            store = await copied(filled)
            failing = MortalJournal(store, dies_at=at, after=after, error=JournalError)
            memory = MessagesMemory(journal=failing)
            with pytest.raises(JournalError):
                await memory.forget(text=TEXT)
            await memory.forget(text=TEXT)
            assert SECRET not in await everything_in(store), (at, after)
