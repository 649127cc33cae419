"""A run that cannot start leaves everything as it was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from agent_brain import (
    AnswerState,
    Brain,
    Limits,
    Memory,
    MessagesMemory,
    Net,
    StopReason,
    SubnetState,
    react,
    tool,
)
from agent_brain.errors import JournalError
from agent_brain.memories import Entry, Journal, RamJournal, SQLiteJournal
from agent_brain.memories.journal.lease import Lease
from agent_brain.states import RunFailed
from agent_brain.testing import FakeMemory, ScriptedLLM
from agent_brain.tools import Action
from agent_brain.tools.toolset import ToolSource
from tests.brain.nets import Steps

pytestmark = pytest.mark.anyio


class Faulty(RamJournal):
    """Fails, or hangs, at the next appends or reads, a given number of times."""

    def __init__(self) -> None:
        super().__init__()
        self.fail: Callable[[], Any] | None = None

    async def append(
        self,
        session: str,
        entries: Sequence[Entry],
        *,
        expect: int | None = None,
        lease: Lease | None = None,
    ) -> int:
        if self.fail is not None:
            await self.fail()
        return await super().append(session, entries, expect=expect, lease=lease)


async def broken() -> None:
    raise JournalError("the disk is gone")


class Shop:
    """A payment that needs approval."""

    def __init__(self) -> None:
        self.paid: list[int] = []

        @tool(requires_approval=True)
        def pay(amount: int) -> str:
            """Pay."""
            self.paid.append(amount)
            return "paid"

        self.pay = pay


async def waiting(shop: Shop, journal: Journal, **options: Any) -> Brain:
    llm = ScriptedLLM([[Action(name="pay", args={"amount": 5})], "Paid."])
    brain = Brain(react(llm), MessagesMemory([shop.pay], journal=journal), **options)
    assert (await brain.run("Pay 5.")).stop_reason is StopReason.APPROVAL
    return brain


async def reopened(shop: Shop, journal: Journal) -> Brain:
    brain = Brain(react(ScriptedLLM(["Paid."])), MessagesMemory([shop.pay], journal=journal))
    await brain.memory.open()
    return brain


async def test_an_approval_whose_first_write_fails_waits_on() -> None:
    shop, journal = Shop(), Faulty()
    brain = await waiting(shop, journal)
    journal.fail = broken
    with pytest.raises(JournalError, match="the disk is gone") as caught:
        await brain.resume(approve=True)
    assert not getattr(caught.value, "__notes__", [])
    journal.fail = None
    assert brain.memory.control.status == "waiting"
    other = await reopened(shop, journal)
    assert other.memory.control.status == "waiting"
    assert (await other.resume(approve=True)).answer == "Paid."
    assert shop.paid == [5]


async def test_an_approval_given_again_after_a_failure_is_carried_out_once() -> None:
    shop, journal = Shop(), Faulty()
    brain = await waiting(shop, journal)
    journal.fail = broken
    with pytest.raises(JournalError):
        await brain.resume(approve=True)
    journal.fail = None
    assert (await brain.resume(approve=True)).answer == "Paid."
    assert shop.paid == [5]


async def test_a_memory_that_does_not_open_keeps_what_waits() -> None:
    shop, journal = Shop(), Faulty()
    brain = await waiting(shop, journal)

    class Stubborn(MessagesMemory):
        async def open(self) -> None:
            raise OSError("not now")

    stubborn = Brain(react(ScriptedLLM()), Stubborn([shop.pay], journal=journal))
    with pytest.raises(OSError, match="not now"):
        await stubborn.resume(approve=True)
    assert (await brain.resume(approve=True)).answer == "Paid."


async def test_a_source_of_tools_that_fails_keeps_what_waits() -> None:
    shop, journal = Shop(), Faulty()
    brain = await waiting(shop, journal)

    class Source:
        changed = True
        tools: tuple[Any, ...] = ()

        async def refresh(self, taken: Any) -> Any:
            raise ConnectionError("the server is gone")

        async def aclose(self) -> None: ...

    brain._sources = (cast(ToolSource, Source()),)
    with pytest.raises(ConnectionError):
        await brain.resume(approve=True)
    brain._sources = ()
    assert (await brain.resume(approve=True)).answer == "Paid."


async def test_a_time_limit_at_the_start_ends_as_a_result_and_keeps_what_waits() -> None:
    shop, journal = Shop(), Faulty()
    brain = await waiting(shop, journal)
    journal.fail = anyio.sleep_forever
    brain.limits = Limits(timeout=0.01)
    result = await brain.resume(approve=True)
    assert (result.stop_reason, result.answer, shop.paid) == (StopReason.TIMEOUT, "", [])
    journal.fail, brain.limits = None, Limits()
    assert (await brain.resume(approve=True)).answer == "Paid."


class NeverOpens(FakeMemory):
    async def open(self) -> None:
        await anyio.sleep_forever()


async def test_a_time_limit_before_the_first_event_ends_as_a_result() -> None:
    result = await Brain(react(ScriptedLLM()), NeverOpens(), limits=Limits(timeout=0.01)).run("go")
    assert (result.stop_reason, result.steps, result.messages) == (StopReason.TIMEOUT, 0, [])


class BrokenGoal(FakeMemory):
    async def set_goal(self, goal: Any) -> None:
        raise ValueError("no goals today")


async def test_an_error_before_the_first_event_has_no_note_of_ours() -> None:
    brain = Brain(react(ScriptedLLM()), BrokenGoal())
    events = []

    async def read() -> None:
        async with brain.stream("go") as run:
            async for event in run:
                events.append(event)

    with pytest.raises(ValueError, match="no goals today") as caught:
        await read()
    assert not getattr(caught.value, "__notes__", [])
    assert [type(event) for event in events] == [RunFailed]
    assert brain.memory.control.status == "idle"


async def test_a_new_goal_whose_start_fails_leaves_the_run_that_waits() -> None:
    shop, journal = Shop(), Faulty()
    brain = await waiting(shop, journal)
    before = await brain.memory.snapshot()
    journal.fail = broken
    with pytest.raises(JournalError):
        await brain.run("Something else.")
    journal.fail = None
    after = await brain.memory.snapshot()
    assert after.control == before.control
    assert (after.goal, after.messages) == (before.goal, before.messages)
    assert (await brain.resume(approve=True)).answer == "Paid."
    assert shop.paid == [5]


async def test_leaving_before_the_first_event_changes_nothing(tmp_path: Path) -> None:
    shop = Shop()
    async with SQLiteJournal(tmp_path / "brain.db") as journal:
        brain = await waiting(shop, journal)
        async with brain.stream_resume(approve=True):
            pass
        other = await reopened(shop, journal)
        assert (await other.resume(approve=True)).answer == "Paid."
    assert shop.paid == [5]


async def test_a_memory_of_ones_own_is_left_alone_too() -> None:
    class Own(Memory):
        """Four methods, and writes that can fail."""

        def __init__(self) -> None:
            super().__init__()
            self.messages: list[Any] = []
            self.broken = False

        async def set_goal(self, goal: Any) -> None:
            if self.broken:
                raise OSError("full")
            self.messages = [goal]

        async def update(self, messages: list[Any]) -> None:
            self.messages += messages

        async def goal(self) -> list[Any]:
            return self.messages[:1]

        async def dump(self) -> list[Any]:
            return self.messages[1:]

    brain = Brain(react(ScriptedLLM(["one", "two"])), Own())
    await brain.run("go")
    memory: Any = brain.memory
    memory.broken = True
    with pytest.raises(OSError, match="full"):
        await brain.run("again")
    assert memory.control.stop_reason == "done"
    assert [m.content for m in memory.messages] == ["go", "one"]


async def test_a_brain_opens_the_models_of_its_net() -> None:
    class Opens(ScriptedLLM):
        opened = 0

        async def open(self) -> None:
            self.opened += 1

    inner, outer = Opens(["yes"]), Opens(["yes"])
    asks = Net({Steps.ONE: AnswerState(inner, ask=True)})
    net = Net({Steps.ONE: SubnetState(asks, on_done=Steps.TWO), Steps.TWO: AnswerState(outer)})
    async with Brain(net):
        assert (inner.opened, outer.opened) == (1, 1)
    async with await Brain.create(net):
        assert (inner.opened, outer.opened) == (3, 3)
