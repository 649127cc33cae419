"""What a run writes to a journal: one append for each step."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from agent_brain import (
    LLM,
    Brain,
    LayeredMemory,
    Memory,
    Message,
    MessagesMemory,
    Net,
    State,
    WindowedMemory,
    tool,
)
from agent_brain.errors import ResumeError
from agent_brain.memories import Journal, RamJournal, Role
from agent_brain.states import Hook, RunRequest, StateEntered
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action, ToolContext
from tests.support.journals import Killed, MortalJournal

pytestmark = pytest.mark.anyio


class Appends(RamJournal):
    """Notes the kinds of the entries of each append."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds: list[list[str]] = []

    async def append(self, session: str, entries: Any, **options: Any) -> int:
        self.kinds.append([entry.kind for entry in entries])
        return await super().append(session, entries, **options)


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Only(Enum):
    TALK = "talk"


class Talk(State):
    """Says three things in one step."""

    async def run(self, memory: Memory) -> AsyncIterator[str]:
        for number in range(3):
            await memory.update([Message.assistant(str(number))])
        yield "done"

    async def next_state(self, memory: Memory) -> None:
        return None


class Calling(LLM):
    """Calls the only tool until it sees a result, then answers."""

    async def stream(self, messages: Any, *, tools: Any = (), **options: Any) -> AsyncIterator[Any]:
        if any(message.role is Role.TOOL for message in messages):
            yield "Done."
        else:
            args: dict[str, Any] = {"a": 1, "b": 2} if tools[0].name == "add" else {}
            yield Action(name=tools[0].name, args=args)


def one_call() -> ScriptedLLM:
    return ScriptedLLM([[Action(name="add", args={"a": 1, "b": 2})], "The sum is 3."])


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_run_with_a_tool_call_is_five_appends(*, streamed: bool) -> None:
    journal = Appends()
    brain = Brain("react", WindowedMemory([add], journal=journal), llm=one_call())
    if streamed:
        async with brain.stream("1 + 2?") as run:
            async for _ in run:
                pass
    else:
        await brain.run("1 + 2?")
    assert journal.kinds == [
        ["goal", "message", "step"],
        ["message", "step", "call_begun"],
        ["message", "step"],
        ["message", "step"],
        ["step", "step"],
    ]


async def test_what_leaves_a_window_is_written_before_it_is_handed_over() -> None:
    journal, written = Appends(), list[bool]()

    async def hand_over(messages: list[Message]) -> None:
        stored = str(
            [entry.data for key in await journal.sessions() for entry in await journal.read(key)]
        )
        written.extend(message.id in stored for message in messages)

    memory = WindowedMemory(max_messages=1, on_evict=hand_over, journal=journal)
    await Brain(Net({Only.TALK: Talk()}), memory).run("go")
    assert written
    assert all(written)


async def test_what_hooks_record_at_the_end_of_a_run_is_written() -> None:
    journal = RamJournal()
    memory = WindowedMemory(journal=journal)

    @tool
    async def note() -> str:
        """Note something."""
        await memory.update([Message.user("noted")])
        return "ok"

    memory.add_tools([note])
    llm = ScriptedLLM([[Action(name="note", args={})], "Done."])
    async with Brain("react", memory, llm=llm).stream("go") as run:
        async for event in run:
            if type(event).__name__ == "RunFinished":
                await memory.update([Message.user("late")])
    stored = [m.content for m in await WindowedMemory(journal=journal).dump()]
    assert "noted" in stored
    assert "late" in stored


async def test_a_checkpoint_of_a_subclass_is_called_after_each_step() -> None:
    class Counting(WindowedMemory):
        written = 0

        async def checkpoint(self) -> None:
            self.written += 1
            await super().checkpoint()

    memory = Counting([add], journal=RamJournal())
    result = await Brain("react", memory, llm=one_call()).run("1 + 2?")
    assert memory.written == result.steps + 1  # and the end of the run


async def test_what_others_write_during_a_run_is_stored_when_update_returns() -> None:
    journal = RamJournal()
    memory = MessagesMemory(journal=journal)
    stored: list[bool] = []

    async def is_stored(message: Message) -> bool:
        entries = [entry for key in await journal.sessions() for entry in await journal.read(key)]
        return message.id in str([entry.data for entry in entries])

    @tool
    async def slow() -> str:
        """Let the program write beside the run, and write too."""
        async with anyio.create_task_group() as group:
            group.start_soon(write, "of another task")
        await write("of the call")
        return "ok"

    async def write(text: str) -> None:
        message = Message.user(text)
        await memory.update([message])
        stored.append(await is_stored(message))

    memory.add_tools([slow])
    async with Brain("react", memory, llm=Calling()).stream("go") as run:
        async for event in run:
            if isinstance(event, StateEntered):
                await write("of the reader")
    assert len(stored) > 4
    assert all(stored)


class Note(Hook):
    async def before_run(self, request: RunRequest) -> None:
        assert request.memory is not None
        await request.memory.update([Message.user("noted")])


async def test_a_hook_may_write_before_a_run_that_was_killed_continues() -> None:
    store = RamJournal()
    brain = Brain("react", WindowedMemory([add], journal=MortalJournal(store, 3)), llm=one_call())
    with pytest.raises(Killed):
        await brain.run("1 + 2?")
    memory = WindowedMemory([add], journal=store)
    result = await Brain("react", memory, llm=Calling(), hooks=[Note()]).resume()
    assert result.answer == "Done."
    assert "noted" in [message.content for message in await memory.messages()]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_what_a_finished_call_wrote_stays_where_a_window_hands_it_over(
    *, after: bool
) -> None:
    @tool
    async def note(context: ToolContext) -> str:
        """Note two things."""
        for text in ("first", "second"):
            await context.memory.update([Message.user(text)])
        return "both noted"

    def memory_over(journal: Journal) -> LayeredMemory:
        short = WindowedMemory([note], max_messages=3, journal=journal, session="short")
        return LayeredMemory(short, MessagesMemory(journal=journal, session="long"))

    at = deaths = 0
    while deaths == at:
        at += 1
        store = RamJournal()
        mortal = MortalJournal(store, at, after=after)
        llm = ScriptedLLM([[Action(name="note", args={})], "Done."])
        with suppress(Killed):
            await Brain("react", memory_over(mortal), llm=llm).run("go")
        deaths += mortal.dead
        memory = memory_over(store)
        with suppress(ResumeError):  # the goal was not written
            await Brain("react", memory, llm=ScriptedLLM(["Done."] * 2)).resume()
            said = [message.content for message in await memory.messages()]
            if "both noted" in said:
                assert (said.count("first"), said.count("second")) == (1, 1), f"killed at {at}"
    assert at > 5


async def test_a_task_may_write_while_a_run_takes_its_lease(tmp_path: Path) -> None:
    place = tmp_path / "a.db"
    async with WindowedMemory([add], journal=place) as memory:
        brain = Brain("react", memory, llm=Calling())
        async with anyio.create_task_group() as group:
            group.start_soon(brain.run, "1 + 2?")
            for number in range(20):
                await memory.update([Message.user(f"{number}")])
                await anyio.lowlevel.checkpoint()
        said = [message.content for message in await memory.messages(role="user")]
    assert [text for text in said if text.isdigit()] == [str(number) for number in range(20)]
