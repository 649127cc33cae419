"""Forgetting for a user: every session of a tenant, with its copies, on every kind of journal."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agent_brain import Brain, Message, MessagesMemory
from agent_brain.memories import (
    Entry,
    JournalError,
    RamJournal,
    SummaryMemory,
    VectorMemory,
    WindowedMemory,
    forget_in_sessions,
    session_key,
)
from agent_brain.memories.embedders import FunctionEmbedder
from agent_brain.testing import ScriptedLLM
from agent_brain.workers.event_log import log_key
from tests.memories.forgetting.places import PLACES, SECRET, TEXT
from tests.memories.forgetting.stores import STORES, Store, on_disk, open_store

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]


SOME = ["tag that was removed", "edited arguments", "recorded call", "nested brain that waits"]


async def fill(store: Store) -> None:
    """Sessions of Ann with the secret, a copy, events of a run, a title, and sessions of others."""
    journal = store.journal
    for place in SOME:
        await PLACES[place](journal)
        key = session_key(place, "ann")
        for found in await journal.sessions():
            if found.startswith(session_key("default")[:-1]):
                moved = key[:-1] + found[len(session_key("default")) - 1 :]
                await journal.load(moved, await journal.read(found, history=True))
                await journal.delete(found)
    for session, tenant in (("chat", "ann"), ("chat", "bob"), ("chat", "anna")):
        said = [Message.user(f"I am {SECRET}."), Message.user("Remember it.")]
        memory = MessagesMemory(journal=journal, session=session, tenant=tenant)
        await memory.update(said)
    chat = MessagesMemory(journal=journal, session="chat", tenant="ann")
    await chat.fork(journal=journal, session="copy", tenant="ann")
    await journal.append(
        log_key("run", "ann"),
        [
            Entry("started", {"first": 1, "events": [{"kind": "text_delta", "text": "I am zeb"}]}),
            Entry("events", {"first": 2, "events": [{"kind": "text_delta", "text": "ra-4711."}]}),
            Entry("ended", {"part": 0, "outcome": {"answer": f"I am {SECRET}."}}),
        ],
    )
    await journal.append(
        '{"session": ["ann", "chat"]}',
        [Entry("session", {"id": "chat", "title": f"I am {SECRET}", "at": "2026-01-01"})],
    )


@pytest.mark.parametrize("kind", STORES)
async def test_no_byte_of_it_is_left(kind: str, tmp_path: Path) -> None:
    async with open_store(kind, tmp_path) as store:
        await fill(store)
        whole = (await store.scan()).count(SECRET.encode())
        assert await forget_in_sessions(store.journal, tenant="ann", text=TEXT) >= 5
        for tenant in ("bob", "anna"):
            memory = MessagesMemory(journal=store.journal, session="chat", tenant=tenant)
            assert len(await memory.messages(text=SECRET)) == 1, "of another tenant"
            await memory.clear()
        left = await store.scan()
        assert whole > 20
        assert SECRET.encode() not in left
        events = [entry.data for entry in await store.journal.read(log_key("run", "ann"))]
        assert "zeb" not in repr(events)
        assert "I am [forgotten]" in repr(events), "what else was said is there"
        chat = MessagesMemory(journal=store.journal, session="copy", tenant="ann")
        assert [m.content for m in await chat.messages()] == ["Remember it."]
        assert await forget_in_sessions(store.journal, tenant="ann", text=TEXT) == 0


async def test_what_was_stored_while_it_came_goes_with_the_whole() -> None:
    journal, key = RamJournal(), log_key("run", "ann")
    grown: list[dict[str, Any]] = [
        {"kind": "partial_output", "response_id": "r", "output": output}
        for output in ({"to": "zeb"}, {"to": "zebra-47"}, {"to": SECRET, "amount": 5})
    ]
    args = [
        {"kind": "action_delta", "id": "1", "name": "pay", "text": text}
        for text in ('{"to": "\\u007a', "ebra\\u002d47", '11", "amount": 5}')
    ]
    others = [{"kind": "partial_output", "response_id": "s", "output": {"to": "ze"}}]
    for number, event in enumerate([*grown, *args, *others], 1):
        await journal.append(key, [Entry("events", {"first": number, "events": [event]})])
    await forget_in_sessions(journal, tenant="ann", text=TEXT)
    left = repr([entry.data for entry in await journal.read(key)])
    assert "ebra" not in left
    assert left.count("'to': '[forgotten]', 'amount': 5") == 3
    assert "'to': 'ze'" in left, "of another response"


async def test_a_session_in_use_is_named_and_the_others_forget(tmp_path: Path) -> None:
    async with open_store("sqlite", tmp_path) as store:
        for session in ("one", "two", "three"):
            memory = MessagesMemory(journal=store.journal, session=session, tenant="ann")
            await memory.update([Message.user(f"I am {SECRET}.")])
        used = MessagesMemory(journal=store.journal, session="two", tenant="ann")
        await used.acquire()
        with pytest.raises(JournalError, match=r"in 2 of 3 sessions.*'two'.*in use"):
            await forget_in_sessions(store.journal, tenant="ann", text=SECRET)
        await used.release()
        assert await forget_in_sessions(store.journal, tenant="ann", text=SECRET) == 1
        assert SECRET.encode() not in await store.scan()


async def test_what_a_summary_tells_of_forgotten_messages_goes_too(tmp_path: Path) -> None:
    async with open_store("sqlite", tmp_path) as store:

        async def summarize(before: str, messages: object) -> str:
            return "They talked about a striped animal."

        place: dict[str, Any] = {"journal": store.journal, "session": "s", "tenant": "ann"}
        memory = SummaryMemory(max_messages=2, summarize=summarize, **place)
        for number in range(6):
            await memory.update([Message.user(f"{number} {SECRET if number == 1 else ''}")])
            await memory.context()
        assert b"striped" in await store.scan()
        assert await forget_in_sessions(store.journal, tenant="ann", text=SECRET) == 1
        left = await store.scan()
        assert b"striped" not in left
        assert SECRET.encode() not in left


async def test_the_vectors_of_forgotten_messages_go_too(tmp_path: Path) -> None:
    def embed(texts: list[str]) -> list[list[float]]:
        return [[1.0, 0.1 * len(text), 0.5] for text in texts]

    make = partial(VectorMemory, path=tmp_path / "vectors", embedder=FunctionEmbedder(embed))
    async with open_store("sqlite", tmp_path) as store:
        for session in ("one", "two"):
            place: dict[str, Any] = {
                "journal": store.journal,
                "session": session,
                "tenant": "ann",
            }
            async with make(**place) as memory:
                said = [Message.user(f"I am {SECRET}.", id=f"the-{session}-one")]
                await memory.update([*said, Message.user("A fine day.", id=f"fine-{session}")])
        assert b"the-one-one" in on_disk(tmp_path / "vectors")
        found = await forget_in_sessions(store.journal, tenant="ann", memory=make, text=SECRET)
        assert found == 2
    left = on_disk(tmp_path)
    indexes = [*(tmp_path / "vectors").rglob("data_level0.bin")]
    assert indexes
    assert not any(b"".join(map(Path.read_bytes, indexes))), "the RAM of the process is in a file"
    assert b"the-one-one" not in left
    assert b"the-two-one" not in left
    assert b"fine-two" in left


async def test_it_is_asked_for_by_other_criteria_too(tmp_path: Path) -> None:
    async with open_store("ram", tmp_path) as store:
        place: dict[str, Any] = {"journal": store.journal, "session": "s", "tenant": "ann"}
        await WindowedMemory(max_messages=1, **place).update(
            [
                Message.user(str(number), tags={"private"} if number % 2 else ())
                for number in range(6)
            ]
        )
        assert await forget_in_sessions(store.journal, tenant="ann", tags="private") == 3
        assert [m.content for m in await MessagesMemory(**place).messages()] == ["0", "2", "4"]


async def test_a_run_continues_after_something_else_was_forgotten(tmp_path: Path) -> None:
    async with open_store("ram", tmp_path) as store:
        place: dict[str, Any] = {"journal": store.journal, "session": "s", "tenant": "ann"}
        memory = MessagesMemory(**place)
        await memory.update([Message.user(f"I am {SECRET}.")])
        await forget_in_sessions(store.journal, tenant="ann", text=SECRET)
        result = await Brain(memory=memory, llm=ScriptedLLM(["Hello."])).run("Hi")
        assert result.answer == "Hello."
        assert [m.content for m in await memory.messages()] == ["Hi", "Hello."]
