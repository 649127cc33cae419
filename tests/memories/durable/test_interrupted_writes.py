"""Writes and leases whose end the journal did not tell."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Literal

import anyio
import pytest

from agent_brain import Brain, Memory, Net, react
from agent_brain.memories import (
    Entry,
    JournalError,
    LeaseHeldError,
    Message,
    MessagesMemory,
    RamJournal,
    SQLiteJournal,
)
from agent_brain.memories.journal.lease import Lease
from agent_brain.states.events import ActionFinished
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from tests.support.journals import Killed, MortalJournal

pytestmark = [pytest.mark.anyio, pytest.mark.also_on_trio]


class Breaking(RamJournal):
    """The answer of one append is lost, when somebody else waits to write."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.breaks = anyio.Event(), anyio.Event()

    async def append(
        self,
        session: str,
        entries: Sequence[Entry],
        *,
        expect: int | None = None,
        lease: Lease | None = None,
    ) -> int:
        last = await super().append(session, entries, expect=expect, lease=lease)
        if not self.breaks.is_set():
            self.begun.set()
            await self.breaks.wait()
            raise JournalError("the answer is lost")
        return last


async def test_a_writer_that_waited_for_an_interrupted_write_is_told() -> None:
    journal, errors = Breaking(), dict[str, Exception]()
    memory = MessagesMemory(journal=journal)

    async def write(text: str) -> None:
        try:
            await memory.update([Message.user(text, id=text)])
        except JournalError as error:
            errors[text] = error

    async with anyio.create_task_group() as group:
        group.start_soon(write, "first")
        await journal.begun.wait()
        group.start_soon(write, "second")
        await anyio.wait_all_tasks_blocked()
        journal.breaks.set()
    assert str(errors["first"]) == "the answer is lost"
    assert type(errors["second"]) is JournalError
    assert "Nothing of this one was written: do it again" in str(errors["second"])
    await write("second")
    later = MessagesMemory(journal=journal)
    for which in (memory, later):
        assert [m.id for m in await which.messages()] == ["first", "second"]


class KeepsLeases(SQLiteJournal):
    """Cannot give a lease back, and may lose the answer that it has one."""

    loses = False

    async def _take_lease(self, lease: Lease, *, over: str | None = None) -> Lease | None:
        holder = await super()._take_lease(lease, over=over)
        if self.loses:
            raise JournalError("no answer")
        return holder

    async def release(self, lease: Lease) -> None:
        self._heartbeat.remove(lease)
        raise JournalError("no answer")


async def test_a_lease_that_could_not_be_given_back_is_taken_over_in_the_process(
    tmp_path: Path,
) -> None:
    path = tmp_path / "journal.db"
    async with KeepsLeases(path) as journal, SQLiteJournal(path) as later:
        memory, other = MessagesMemory(journal=journal), MessagesMemory(journal=later)
        await memory.acquire()
        with pytest.raises(LeaseHeldError):
            await other.acquire()
        await memory.release()
        await other.acquire()
        await other.release()
        journal.loses = True
        with pytest.raises(JournalError, match="no answer"):
            await memory.acquire()
        await other.acquire()
        await other.release()


class Hanging(RamJournal):
    """Never ends the write of a value, which may be done."""

    done = False

    def __init__(self) -> None:
        super().__init__()
        self.hangs = anyio.Event()

    async def append(
        self,
        session: str,
        entries: Sequence[Entry],
        *,
        expect: int | None = None,
        lease: Lease | None = None,
    ) -> int:
        if entries[-1:] and entries[-1].kind == "view":
            if self.done:
                await super().append(session, entries, expect=expect, lease=lease)
            self.hangs.set()
            await anyio.sleep_forever()
        return await super().append(session, entries, expect=expect, lease=lease)


class Steps(Enum):
    FIRST = "first"
    SECOND = "second"


class Interrupted:
    """A program that keeps a value while a step runs, and gives up."""

    def __init__(self, *, done: bool = False) -> None:
        self.journal = Hanging()
        self.journal.done = done
        self.mortal = MortalJournal(self.journal)
        self.memory = MessagesMemory(journal=self.mortal)
        self.may_begin, self.ended = anyio.Event(), anyio.Event()
        self.scope = anyio.CancelScope()

    async def keep(self) -> None:
        await self.may_begin.wait()
        with self.scope:
            await self.memory.keep("colour", "red")
        self.ended.set()

    async def begin(self) -> None:
        self.may_begin.set()
        await self.journal.hangs.wait()

    async def end(self) -> None:
        self.scope.cancel()
        await self.ended.wait()

    async def texts(self) -> list[str]:
        """Return what the memory and the session have, which is the same."""
        later = MessagesMemory(journal=self.journal)
        first, second = [
            [message.content for message in await memory.messages()]
            for memory in (self.memory, later)
        ]
        assert first == second
        return first


@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("looks", [False, True])
async def test_a_step_keeps_its_messages_when_the_write_of_another_task_is_cancelled(
    *, done: bool, looks: bool
) -> None:
    program = Interrupted(done=done)

    async def first(memory: Memory) -> Literal[Steps.SECOND]:
        await memory.update([Message.assistant("one")])
        await program.begin()
        await program.end()
        if looks:
            assert [m.content for m in await memory.context()] == ["go", "one"]
            await memory.update([Message.assistant("and a half")])
        return Steps.SECOND

    async def second(memory: Memory) -> str:
        return "two"

    brain = Brain(Net({Steps.FIRST: first, Steps.SECOND: second}), program.memory)
    async with anyio.create_task_group() as group:
        group.start_soon(program.keep)
        result = await brain.run("go")
    assert result.answer == "two"
    assert await program.texts() == ["go", "one", *["and a half"] * looks, "two"]
    assert await program.memory.kept("colour") == ("red" if done else None)


async def test_a_step_that_waited_for_an_interrupted_write_is_told() -> None:
    program = Interrupted()

    async def only(memory: Memory) -> None:
        await program.begin()
        async with anyio.create_task_group() as group:
            group.start_soon(write, memory)
            await anyio.wait_all_tasks_blocked()
            await program.end()

    async def write(memory: Memory) -> None:
        with pytest.raises(JournalError, match="do it again"):
            await memory.update([Message.assistant("one")])
        await memory.update([Message.assistant("one")])

    async with anyio.create_task_group() as group:
        group.start_soon(program.keep)
        await Brain(Net({Steps.FIRST: only}), program.memory).run("go")
    assert await program.texts() == ["go", "one"]


async def test_what_a_finished_call_wrote_stays_when_the_write_of_another_call_is_cancelled() -> (
    None
):
    program = Interrupted()

    async def note() -> str:
        await program.memory.update([Message.user("noted")])
        await program.begin()
        await program.end()
        await program.memory.count()
        return "done"

    async def wait() -> str:
        await anyio.sleep_forever()
        return ""

    calls = [Action(name="note", args={}), Action(name="wait", args={})]
    program.memory.add_tools([note, wait])
    async with anyio.create_task_group() as group:
        group.start_soon(program.keep)
        with suppress(Killed):
            async with Brain(react(ScriptedLLM([calls])), program.memory).stream("go") as run:
                async for event in run:
                    if isinstance(event, ActionFinished):
                        program.mortal.die()
                        break
        assert program.mortal.dead
    later = MessagesMemory([note, wait], journal=program.journal)
    result = await Brain(react(ScriptedLLM(["Fine."])), later).resume()
    assert result.answer == "Fine."
    assert "noted" in [message.content for message in await later.messages()]
