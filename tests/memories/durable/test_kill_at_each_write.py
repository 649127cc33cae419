"""Every public operation of every built-in memory, cut off at each of its writes.

The next memory of the session has what was before the operation or what is after it, nothing in
between; and what should be gone for good is gone when it has opened.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from agent_brain.memories import (
    AutoMemory,
    Control,
    JournalError,
    Message,
    MessagesMemory,
    RamJournal,
    Snapshot,
    StoredMemory,
    SummaryMemory,
    VectorMemory,
    WindowedMemory,
    session_key,
)
from agent_brain.memories.runs.human_requests import HumanRequests
from agent_brain.memories.views.summary_writer import outline
from agent_brain.tools import Action
from tests.support.journals import Killed, MortalJournal
from tests.support.thorough import first_of

pytestmark = pytest.mark.anyio

MEMORIES: dict[str, Callable[..., StoredMemory]] = {
    "messages": MessagesMemory,
    "vector": VectorMemory,
    "auto": lambda **place: AutoMemory(max_tokens=60, summarize=outline, **place),
    **{
        f"windowed-{size}": lambda size=size, **place: WindowedMemory(max_messages=size, **place)
        for size in (1, 2, 3)
    },
    **{
        f"summary-{size}": lambda size=size, **place: SummaryMemory(max_messages=size, **place)
        for size in (1, 2, 3)
    },
}
PAY = Action(name="pay", args={"to": "SECRET"}, id="pay-1")


async def prepare(make: Callable[..., StoredMemory], store: RamJournal) -> None:
    """A session with two turns, whose second one waits for a person."""
    memory = make(journal=store)
    await memory.set_goal(Message.user("first", id="goal-1"))
    await memory.update([Message.assistant("the SECRET answer", id="answer-1")])
    await memory.keep("note", {"a": 1})
    await memory.set_goal(Message.user("pay", id="goal-2"))
    memory.control.begin("run-1", "ACTION")
    await memory.update([Message.assistant("paying", [PAY], id="asks")])
    memory.control.next_actions = [PAY]
    memory.control.scratch = {"plan": "pay SECRET"}
    memory.control.human_requests = HumanRequests(approvals=[PAY.id])
    memory.control.status = "waiting"
    await memory.checkpoint()


async def state_of(memory: StoredMemory) -> dict[str, Any]:
    return {
        "goal": [m.id for m in await memory.goal()],
        "messages": [(m.id, sorted(m.tags)) for m in await memory.messages()],
        "control": memory.control.model_dump(mode="json"),
        "note": await memory.kept("note"),
        "summary": getattr(memory, "summary", ""),
    }


def snapshot() -> Snapshot:
    goal = Message.user("restored", id="goal-9")
    return Snapshot(
        goal=[goal],
        messages=[goal, Message.assistant("so", id="answer-9")],
        control=Control(run_id="run-9", step=9),
        views={"note": "restored"},
    )


async def begin(memory: StoredMemory) -> None:
    result = Message.tool("not run", PAY, is_error=True, id="result")
    await memory.begin(Message.user("third", id="goal-3"), "run-2", "REASON", before=[result])


async def checkpoint(memory: StoredMemory) -> None:
    memory.control.step = 7
    await memory.checkpoint()


OPERATIONS: dict[str, Callable[[StoredMemory], Awaitable[object]]] = {
    "set_goal": lambda m: m.set_goal(Message.user("third", id="goal-3")),
    "begin": begin,
    "update": lambda m: m.update([Message.user(text, id=text) for text in "abc"]),
    "keep": lambda m: m.keep("note", {"b": 2}),
    "tag": lambda m: m.tag("asks", "seen"),
    "untag": lambda m: m.untag("asks", "seen"),
    "checkpoint": checkpoint,
    "delete": lambda m: m.delete("asks"),
    "forget a call": lambda m: m.forget("asks"),
    "forget a text": lambda m: m.forget(text="secret"),
    "clear": lambda m: m.clear(),
    "clear but the pinned": lambda m: m.clear(keep="pinned"),
    "restore": lambda m: m.restore(snapshot()),
    "load": lambda m: m.load(snapshot()),
    "load a list": lambda m: m.load([Message.user("only", id="only")]),
    "merge": lambda m: m.load([Message.user("more", id="more")], merge=True),
}
FOR_GOOD = ("forget a text", "clear", "clear but the pinned", "restore", "load", "load a list")


async def write_half_a_step(store: RamJournal, make: Callable[..., StoredMemory]) -> None:
    memory = make(journal=store)
    await memory.open()
    memory.control.status = "running"
    await memory.checkpoint()
    await memory.update([Message.user("half a step", id="half")])


async def after_it(
    name: str, make: Callable[..., StoredMemory], kill: int, *, after: bool
) -> tuple[dict[str, Any], MortalJournal, RamJournal]:
    """The state of the next memory; and the journals, of this memory and of the next."""
    store = RamJournal()
    await prepare(make, store)
    if name == "rollback":
        await write_half_a_step(store, make)
    journal = MortalJournal(store, kill, after=after)
    memory = make(journal=journal)
    await memory.open()
    try:
        await (memory.rollback() if name == "rollback" else OPERATIONS[name](memory))
    except Killed:
        assert journal.dead
    later = make(journal=store)
    await later.open()
    return await state_of(later), journal, store


@pytest.mark.parametrize("memory", first_of(MEMORIES, "messages", "summary-1"))
@pytest.mark.parametrize("name", [*OPERATIONS, "rollback"])
async def test_a_kill_at_any_write_leaves_all_of_it_or_nothing(memory: str, name: str) -> None:
    make = MEMORIES[memory]
    before, _, _ = await after_it(name, make, 1, after=False)
    whole, journal, _ = await after_it(name, make, 10**9, after=False)
    assert journal.appends == 1, "it is one append"
    for kill in range(1, journal.writes + 1):
        for after in (False, True):
            found, _, store = await after_it(name, make, kill, after=after)
            assert found == (before if (kill, after) == (1, False) else whole), (kill, after)
            if name in FOR_GOOD and found == whole:
                entries = repr(await store.read(session_key("default")))
                assert "SECRET" not in entries, (kill, after)


@pytest.mark.parametrize("memory", first_of(MEMORIES, "messages", "summary-1"))
@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("written", [False, True])
async def test_a_write_that_fails_changes_nothing_in_ram_either(
    memory: str, name: str, written: bool
) -> None:
    """Or all of it, if the entries were written before it failed."""
    make = MEMORIES[memory]
    store = RamJournal()
    await prepare(make, store)
    journal = MortalJournal(store, 1, after=written, error=JournalError)
    here = make(journal=journal)
    await here.open()
    before = await state_of(here)
    with pytest.raises(JournalError, match="killed"):
        await OPERATIONS[name](here)
    later = make(journal=store)
    await later.open()
    if name == "checkpoint":
        before["control"]["step"] = 7
    assert await state_of(here) == (await state_of(later) if written else before)
    if not written:
        await OPERATIONS[name](here)
        later = make(journal=store)
        await later.open()
        assert await state_of(here) == await state_of(later)


@pytest.mark.parametrize("memory", first_of(MEMORIES, "messages", "summary-1"))
async def test_a_fork_that_is_cut_off_is_whole_or_absent(memory: str) -> None:
    make = MEMORIES[memory]
    for replace in (False, True):
        for kill in range(1, 4):
            for after in (False, True):
                store = RamJournal()
                original = make()
                await original.restore(snapshot())
                if replace:
                    await make(journal=store, session="copy").update(
                        [Message.user("old", id="old")]
                    )
                with suppress(Killed):
                    await original.fork(
                        journal=MortalJournal(store, kill, after=after),
                        session="copy",
                        replace=replace,
                    )
                later = make(journal=store, session="copy")
                found = [m.id for m in await later.messages()]
                if (kill, after) == (1, False):
                    assert found == (["old"] if replace else [])
                else:
                    assert found == [m.id for m in await original.messages()]
                    assert later.control.step == 9
                    assert "old" not in repr(await store.read(session_key("copy")))


@pytest.mark.parametrize("size", [1, 2, 3])
async def test_a_summary_is_whole_or_absent(size: int) -> None:
    async def compact(kill: int, *, after: bool) -> tuple[dict[str, Any], MortalJournal]:
        store = RamJournal()
        await SummaryMemory(max_messages=size, journal=store).update(
            [Message.user(f"message {n}", id=str(n)) for n in range(6)]
        )
        journal = MortalJournal(store, kill, after=after)
        memory = SummaryMemory(max_messages=size, journal=journal)
        with suppress(Killed):
            await memory.context()
        later = SummaryMemory(max_messages=size, journal=store)
        await later.open()
        found = await state_of(later)
        found["at"] = None
        return found, journal

    before, _ = await compact(1, after=False)
    whole, journal = await compact(10**9, after=False)
    assert journal.writes == 1
    assert before != whole
    assert (await compact(1, after=True))[0] == whole
