"""Every kind of memory forgets a text, wherever it keeps it, also if it is killed on the way."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agent_brain import Brain, Message, react
from agent_brain.memories import (
    Journal,
    MessagesMemory,
    RamJournal,
    SummaryMemory,
    TodoMemory,
    VectorMemory,
    WindowedMemory,
    create_memory,
)
from agent_brain.memories.embedders import FunctionEmbedder
from agent_brain.tools import Action
from tests.memories.forgetting.places import SECRET, TEXT, TOOLS, said
from tests.memories.forgetting.stores import STORES, on_disk, open_store
from tests.memories.forgetting.test_kills import copied, everything_in
from tests.support.journals import Killed, MortalJournal

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]


async def summarize(before: str, messages: list[Message]) -> str:
    return "\n".join([before, *(message.content for message in messages)])


def embed(texts: list[str]) -> list[list[float]]:
    return [[1.0, 0.1 * len(text), 0.5] for text in texts]


MEMORIES: dict[str, Callable[..., Any]] = {
    "messages": partial(create_memory, "messages"),
    "windowed": partial(WindowedMemory, max_messages=2),
    "summary": partial(SummaryMemory, max_messages=2, summarize=summarize),
    "layered": partial(create_memory, "layered", long="messages", max_messages=2),
    "todo": lambda **place: TodoMemory(WindowedMemory(max_messages=3, **place)),
}


async def fill(memory: Any) -> None:
    """Two turns with the secret in messages, calls, tags, notes, a to-do list, recorded calls."""
    net = react(said(Action(name="look", args={"at": SECRET}), "Done."), prompt=f"For {SECRET}.")
    brain = Brain(net, memory, TOOLS, trace=True)
    await brain.run(f"I am {SECRET}.")
    memory.control.session["who"] = SECRET
    if isinstance(memory, TodoMemory):
        await memory.add_todo(f"Call {SECRET}")
    await memory.update([Message.user("fine", id="fine"), Message.user("tagged", id="tagged")])
    await memory.tag("tagged", SECRET)
    waiting = Brain(react(said(Action(name="pay", args={"to": SECRET}))), memory, TOOLS, trace=True)
    assert (await waiting.run("And pay.")).stop_reason == "approval"


@pytest.mark.parametrize("name", MEMORIES)
async def test_a_text_is_gone_whatever_the_memory(name: str) -> None:
    filled = RamJournal()
    await fill(MEMORIES[name](journal=filled))
    assert (await everything_in(filled)).count(SECRET) > 10
    whole = MortalJournal(await copied(filled))
    async with MEMORIES[name](journal=whole) as memory:
        assert await memory.forget(text=TEXT) > 3
        assert SECRET not in repr(await memory.export())
    assert SECRET not in await everything_in(whole.store)
    for at in range(1, whole.writes + 1):
        for after in (False, True):
            store = await copied(filled)
            with suppress(Killed):
                killed = MEMORIES[name](journal=MortalJournal(store, at, after=after))
                await killed.forget(text=TEXT)
            async with MEMORIES[name](journal=store) as later:
                await later.open()
                if SECRET in await everything_in(store):
                    ahead = 2 if name == "todo" else 1  # the list is written first
                    assert (at, after) <= (ahead, False), "this was to be continued"
                    await later.forget(text=TEXT)
            assert SECRET not in await everything_in(store), (at, after)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", [kind for kind in STORES if kind != "ram"])
async def test_a_kill_at_each_write_on_every_store(kind: str, tmp_path: Path) -> None:
    filled = RamJournal()
    await fill(MEMORIES["messages"](journal=filled))
    entries = {key: await filled.read(key, history=True) for key in await filled.sessions()}
    async with open_store(kind, tmp_path) as store:

        async def refill(journal: Journal) -> None:
            for key in await journal.sessions():
                await journal.delete(key)
            for key, of_one in entries.items():
                await journal.load(key, of_one)

        at, done = 0, False
        while not done:
            at += 1
            for after in (False, True):
                await refill(store.journal)
                assert SECRET.encode() in await store.scan()
                mortal = MortalJournal(store.journal, at, after=after)
                with suppress(Killed):
                    await MEMORIES["messages"](journal=mortal).forget(text=TEXT)
                    done = True
                later = MEMORIES["messages"](journal=store.journal)
                await later.open()
                if (at, after) == (1, False):
                    continue
                assert SECRET.encode() not in await store.scan(), (at, after)
        assert at > 3


async def test_a_vector_memory_leaves_no_vector(tmp_path: Path) -> None:
    make = partial(VectorMemory, path=tmp_path / "brain", embedder=FunctionEmbedder(embed))
    async with make() as memory:
        await fill(memory)
        marked = [m.id for m in await memory.messages(text=SECRET)]
    assert any(i.encode() in on_disk(tmp_path / "brain" / "vectors") for i in marked)
    async with make() as memory:
        assert await memory.forget(text=TEXT) > 3
    assert SECRET.encode() not in on_disk(tmp_path)
    left = on_disk(tmp_path / "brain" / "vectors")
    assert not any(i.encode() in left for i in marked)
    assert b"fine" in left


async def test_tags_and_pins_stay_where_only_an_id_contains_the_text() -> None:
    journal = RamJournal()
    async with MessagesMemory(journal=journal) as memory:
        await memory.update([Message.user("Buy milk", id="msg_a38b")])
        await memory.tag("msg_a38b", "shopping")
        await memory.pin("msg_a38b")
        assert await memory.forget(text="38") == 0

    async with MessagesMemory(journal=journal) as memory:
        (message,) = await memory.messages()
    assert (message.tags, message.pinned) == (frozenset({"shopping"}), True)
