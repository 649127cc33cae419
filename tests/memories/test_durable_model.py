"""Whatever happens to a session, a memory of a user's own is as one that got the surviving calls."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_brain.memories import DurableMemory, JournalError, Memory, Message, RamJournal
from tests.memories.durable.own import ListMemory, NotedMemory
from tests.support.journals import MortalJournal
from tests.support.thorough import examples

IDS = st.sampled_from("abcdefghij")
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("goal"), IDS),
        st.tuples(st.just("begin"), IDS),
        st.tuples(st.just("update"), st.lists(IDS, max_size=3)),
        st.tuples(st.just("refused"), st.lists(IDS, max_size=2)),
        st.tuples(st.just("unwritten"), st.lists(IDS, min_size=1, max_size=2)),
        st.tuples(st.sampled_from(["step", "rollback", "reopen", "copy"]), st.none()),
    ),
    max_size=20,
)
REFUSED = Message.user("refused", id="refused")


def message(name: str) -> Message:
    return Message.user(name, id=name)


async def contents(memory: Memory) -> dict[str, Any]:
    return {
        "goal": [m.id for m in await memory.goal()],
        "dump": [m.id for m in await memory.dump()],
    }


class Model:
    """The calls that survive, as a plain list."""

    def __init__(self) -> None:
        self.calls: list[tuple[bool, list[str]]] = []
        self.safe: list[tuple[bool, list[str]]] | None = None

    def add(self, names: list[str]) -> None:
        known = {name for _, some in self.calls for name in some}
        if fresh := [name for name in dict.fromkeys(names) if name not in known]:
            self.calls.append((False, fresh))

    def set_goal(self, name: str) -> None:
        self.calls.append((True, [name]))

    def step(self) -> None:
        self.safe = [*self.calls]

    def rollback(self) -> None:
        if self.safe is not None:
            self.calls = [*self.safe]

    async def plain(self) -> dict[str, Any]:
        memory = ListMemory()
        for is_goal, names in self.calls:
            if is_goal:
                await memory.set_goal(message(names[0]))
            else:
                await memory.update([message(name) for name in names])
        return {**(await contents(memory)), "goals": memory.goals}


async def live(kind: type[ListMemory], operations: list[tuple[str, Any]]) -> None:
    store, model = RamJournal(), Model()
    memory = DurableMemory(kind, journal=store)
    for what, value in operations:
        if what == "goal":
            await memory.set_goal(message(value))
            model.set_goal(value)
        elif what == "begin":
            await memory.begin(message(value), "run", "START")
            model.set_goal(value)
            model.step()
        elif what == "update":
            await memory.update([message(name) for name in value])
            model.add(value)
        elif what == "refused":
            await memory.open()
            memory.made.refuses = "refused"  # type: ignore[attr-defined]
            with suppress(ValueError):
                await memory.update([*map(message, value), REFUSED])
        elif what == "unwritten":
            journal = MortalJournal(store, 1, error=JournalError)
            broken = DurableMemory(kind, journal=journal)
            with suppress(JournalError):
                await broken.update([message(name) for name in value])
            assert await contents(broken) == await contents(memory)
        elif what == "step":
            memory.control.step += 1
            await memory.checkpoint()
            model.step()
        elif what == "rollback":
            await memory.rollback()
            model.rollback()
        elif what == "reopen":
            await memory.inner.release()
            memory = DurableMemory(kind, journal=store)
            await memory.inner.acquire()  # as a run that continues
        else:
            copied = await memory.fork()
            assert await contents(copied) == await contents(memory)
        wanted = await model.plain()
        assert {**(await contents(memory)), "goals": memory.made.goals} == wanted  # type: ignore[attr-defined]


@settings(max_examples=examples(40))
@given(OPERATIONS)
def test_it_is_as_one_that_got_the_surviving_calls(operations: list[tuple[str, Any]]) -> None:
    anyio.run(live, ListMemory, operations)


class Restored(NotedMemory):
    """Also says which goals there were, and in which order its messages came."""

    async def snapshot(self) -> Any:
        snapshot = await super().snapshot()
        snapshot.views |= {"goals": [*self.goals], "order": [*self.said]}
        return snapshot

    async def restore(self, snapshot: Any) -> None:
        held = {m.id: m for m in [*snapshot.goal, *snapshot.messages]}
        self.said = {i: held[i] for i in snapshot.views["order"]}
        self.goals = [*snapshot.views["goals"]]


@settings(max_examples=examples(40))
@given(OPERATIONS)
def test_so_is_one_whose_state_is_stored(operations: list[tuple[str, Any]]) -> None:
    anyio.run(live, Restored, operations)
