"""What the journal records of a run: small entries inside a step, one entry at its end."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import pytest

from agent_brain import Brain, Message, tool
from agent_brain.memories import (
    Entry,
    JournalError,
    Memory,
    MessagesMemory,
    RamJournal,
    SQLiteJournal,
    TodoMemory,
    session_key,
)
from agent_brain.memories.store.events import VERSIONS
from agent_brain.nets import Net
from agent_brain.states import State
from agent_brain.states.tool_round import ToolRound
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action, ToolContext
from tests.support.journals import Killed, MortalJournal

pytestmark = pytest.mark.anyio
KEY = session_key("default")


async def kinds(journal: RamJournal) -> list[str]:
    return [entry.kind for entry in await journal.read(KEY, history=True)]


@tool
async def look(number: int) -> str:
    """Look something up."""
    return f"seen {number} " * 10


def calls(count: int) -> list[Any]:
    return [Action(name="look", args={"number": number}) for number in range(count)]


async def test_calls_are_appended_and_not_written_again() -> None:
    journal = RamJournal()
    memory = MessagesMemory(journal=journal)
    await Brain("react", memory, [look], llm=ScriptedLLM([calls(3), "ok"])).run("go")
    found = await kinds(journal)
    assert found.count("call_begun") == 3
    assert found.count("call_finished") == 2  # the last result is written with the step
    assert "amend" not in found
    assert not (await journal.read(KEY))[-1].data["pending"]  # type: ignore[call-overload, index]


@pytest.mark.parametrize("length", [30_000, 50_000])
async def test_a_round_of_long_results_takes_twice_their_size(length: int, tmp_path: Path) -> None:
    """Each is in the entry of its call, and in a message."""

    @tool
    async def page(number: int) -> str:
        """Read a page."""
        return "x" * length

    place = tmp_path / "journal.db"
    async with SQLiteJournal(place) as journal:
        memory = MessagesMemory(journal=journal)
        actions = [Action(name="page", args={"number": number}) for number in range(40)]
        await Brain("react", memory, [page], llm=ScriptedLLM([actions, "ok"])).run("go")
    whole = sum(file.stat().st_size for file in tmp_path.iterdir())
    shortened = 40_000 if length > 40_000 else 0  # with the whole text in its metadata
    assert whole < 2.5 * 40 * (length + shortened), whole


class Half(Enum):
    ONE = "one"
    TWO = "two"


class Diary(State):
    """Writes when it is entered, and then in the middle of its step."""

    async def on_enter(self, memory: Memory) -> None:
        await memory.update([Message.assistant("I begin")])

    async def run(self, memory: Memory) -> AsyncIterator[str]:
        await memory.update([Message.assistant("half way")])
        yield "text"
        await memory.update([Message.assistant("I end")])

    async def next_state(self, memory: Memory) -> Literal[Half.TWO] | None:
        return Half.TWO if memory.control.step == 0 else None


@pytest.mark.parametrize("write", range(1, 12))
async def test_what_half_a_step_wrote_goes(write: int) -> None:
    store = RamJournal()
    net = Net({Half.ONE: Diary(), Half.TWO: Diary()})
    journal = MortalJournal(store, write, after=True)
    try:
        await Brain(net, MessagesMemory(journal=journal)).run(Message.user("go"))
    except Killed:
        memory = MessagesMemory(journal=store)
        await memory.update([Message.user("written by another program")])
        if memory.control.run_id is not None:
            await Brain(net, memory).resume()
        told = [m.content for m in await memory.dump()]
        assert told.count("written by another program") == 1
    said = [m.content for m in await MessagesMemory(journal=store).dump()]
    if "I end" in said:
        assert said.count("I begin") == said.count("half way") == said.count("I end") == 2


class OneStep(State):
    """Asks, runs the calls and asks again, all in one step."""

    def __init__(self, llm: ScriptedLLM) -> None:
        self.llm = llm

    async def run(self, memory: Memory) -> AsyncIterator[Any]:
        while True:
            call = self.llm.call(
                await memory.context(), tools=list(memory.available_tools.values())
            )
            yield call
            asked = Message.assistant(call.text, tool_calls=tuple(call.actions))
            await memory.update([asked])
            if not call.actions:
                return
            memory.next_actions = call.actions
            yield ToolRound(memory, "OneStep")

    async def next_state(self, memory: Memory) -> None:
        return None


async def test_a_call_inside_the_step_that_asked_for_it_is_not_repeated() -> None:
    paid: list[int] = []

    @tool
    async def pay(number: int) -> str:
        """Pay."""
        paid.append(number)
        return f"paid {number}"

    def answer(messages: list[Message]) -> Any:
        results = [m.content for m in messages if m.role == "tool"]
        if len(results) < 3:
            return Action(name="pay", args={"number": len(results)})
        return " and ".join(results)

    for write in range(1, 30):
        paid.clear()
        store = RamJournal()

        def brain(journal: Any) -> Brain:
            net = Net({Half.ONE: OneStep(ScriptedLLM([answer] * 50))})
            return Brain(net, MessagesMemory(journal=journal), [pay])

        try:
            await brain(MortalJournal(store, write, after=True)).run("go")
        except Killed:
            again = brain(store)
            await again.memory.open()
            if again.memory.control.run_id is not None:
                await again.resume()
            told = " ".join(m.content for m in await again.memory.dump())
            assert len(paid) == len({*paid}) or "may or may not" in told, (write, paid)
            assert paid == sorted({*paid}), (write, paid)


async def test_what_a_finished_call_wrote_stays_with_its_result() -> None:
    """Another call of the round dies; the list, the message and the note are not written again."""
    store = RamJournal()
    journal = MortalJournal(store)

    @tool
    async def note(context: ToolContext) -> str:
        """Write into the memory."""
        assert context.memory is not None
        await context.memory.update([Message.user("noted by a tool")])
        context.memory.control.scratch["noted"] = True
        return "noted"

    @tool
    async def die() -> str:
        """Die."""
        journal.die()
        raise Killed

    def brain(memory: Memory, *turns: Any) -> Brain:
        return Brain("react", memory, [note, die], llm=ScriptedLLM([*turns]))

    def todo(journal: Any) -> TodoMemory:
        return TodoMemory(MessagesMemory(journal=journal))

    calls = [
        Action(name="add_todo", args={"text": "buy milk"}),
        Action(name="note", args={}),
        Action(name="die", args={}),
    ]
    net_options: Any = {"max_concurrency": 1}
    first = Brain(
        "react",
        todo(journal),
        [note, die],
        llm=ScriptedLLM([calls]),
        net_options=net_options,
    )
    with pytest.raises(Killed):
        await first.run("go")
    memory = todo(store)
    await brain(memory, "ok").resume()
    assert [item.text for item in await memory.todos()] == ["buy milk"]
    said = [m.content for m in await memory.dump()]
    assert said.count("noted by a tool") == said.count("noted") == 1
    assert memory.control.scratch["noted"]


async def test_unknown_fields_are_ignored() -> None:
    journal = RamJournal()
    memory = MessagesMemory(journal=journal)
    first = Message.user("hello", id="m1")
    await memory.begin(first, "run-1", "START")
    await memory.tag("m1", "seen")
    later: list[Entry] = []
    for entry in await journal.read(KEY):
        data = entry.data
        later.append(Entry(entry.kind, {**data, "new": [1]} if isinstance(data, dict) else data))
    copy = RamJournal()
    await copy.append(KEY, later)
    read = MessagesMemory(journal=copy)
    assert [m.tags for m in await read.messages()] == [frozenset({"seen"})]
    assert read.control.run_id == "run-1"


@pytest.mark.parametrize("kind", [*VERSIONS])
async def test_a_newer_version_is_refused(kind: str) -> None:
    journal = RamJournal()
    await journal.append(KEY, [Entry(kind, None, version=VERSIONS[kind] + 1)])
    with pytest.raises(JournalError, match=f"{kind!r} in version {VERSIONS[kind] + 1}"):
        await MessagesMemory(journal=journal).open()
    assert len(await journal.read(KEY)) == 1


async def test_an_unknown_kind_is_refused() -> None:
    journal = RamJournal()
    await journal.append(KEY, [Entry("miracle", None)])
    with pytest.raises(JournalError, match="its kind 'miracle' is unknown"):
        await MessagesMemory(journal=journal).open()


DEFAULTS: dict[str, dict[str, Any]] = {
    "message": {
        "attachments": [],
        "cause_by": None,
        "expires_at": None,
        "is_error": False,
        "metadata": {},
        "name": None,
        "occurred_at": None,
        "pinned": False,
        "sent_from": None,
        "tags": [],
        "tool_call_id": None,
        "tool_calls": [],
    },
}


def test_the_defaults_that_messages_leave_out_are_those_of_their_version() -> None:
    """Changing one changes the meaning of every stored message: raise the version of the kind."""
    dumped = Message.user("hello").model_dump(mode="json")
    found = {name: dumped[name] for name in DEFAULTS["message"]}
    assert found == DEFAULTS["message"]
    kept = {"id", "role", "content", "created_at", "send_to"}
    assert dumped.keys() - found.keys() <= kept, (
        "a new field: is its default what old entries mean?"
    )
    assert json.dumps(VERSIONS["message"]) == "1"
