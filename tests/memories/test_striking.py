"""Calls that were forgotten, deleted or cleared away do not run, and nothing of them stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_brain import Brain, tool
from agent_brain.errors import ResumeError
from agent_brain.memories import (
    MessagesMemory,
    StoredMemory,
    SummaryMemory,
    VectorMemory,
    WindowedMemory,
    create_memory,
)
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action

pytestmark = pytest.mark.anyio

MEMORIES: dict[str, Any] = {
    "messages": MessagesMemory,
    "vector": VectorMemory,
    **{
        f"windowed-{n}": lambda n=n, **place: WindowedMemory(max_messages=n, **place)
        for n in (1, 2, 3)
    },
    **{
        f"summary-{n}": lambda n=n, **place: SummaryMemory(max_messages=n, **place)
        for n in (1, 2, 3)
    },
    **{
        f"layered-{n}": lambda n=n, **place: create_memory(
            "layered", long="messages", max_messages=n, **place
        )
        for n in (1, 2, 3)
    },
    "todo": lambda **place: create_memory("todo", **place),
}
PAY = Action(name="pay", args={"iban": "DE-SECRET-42"}, id="pay-1")


def on_disk(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir() if file.is_file())


def payments() -> tuple[list[str], Any]:
    paid: list[str] = []

    @tool(requires_approval=True)
    def pay(iban: str) -> str:
        """Pay."""
        paid.append(iban)
        return "paid"

    return paid, pay


async def waiting(make, folder: Path) -> tuple[StoredMemory, Brain, list[str]]:
    """A run that waits for a person's decision about one call."""
    paid, pay = payments()
    memory = make(journal=folder / "journal.db")
    llm = ScriptedLLM([PAY, "Nothing is paid.", "Nothing is paid."])
    brain = Brain("react", memory=memory, tools=[pay], llm=llm)
    result = await brain.run("Pay my rent")
    assert result.stop_reason == "approval"
    assert b"SECRET" in on_disk(folder)
    return memory, brain, paid


REMOVALS = {
    "forget an id": lambda m, asks: m.forget(asks),
    "forget a text": lambda m, asks: m.forget(text="secret"),
    "clear": lambda m, asks: m.clear(),
    "load a list": lambda m, asks: m.load([]),
    "delete": lambda m, asks: m.delete(asks),
}


@pytest.mark.parametrize("name", [n for n in MEMORIES if not n.endswith(("-2", "-3"))])
@pytest.mark.parametrize("how", REMOVALS)
async def test_a_removed_call_does_not_run(name: str, how: str, tmp_path: Path) -> None:
    memory, brain, paid = await waiting(MEMORIES[name], tmp_path)
    (asks,) = [m.id for m in await memory.messages() if m.tool_calls]
    await REMOVALS[how](memory, asks)
    if how != "delete":
        assert b"SECRET" not in on_disk(tmp_path)
    assert memory.control.next_actions == []
    assert memory.control.status == "ended"
    with pytest.raises(ResumeError):
        await brain.resume(approve=True)
    with pytest.raises(ResumeError):
        await brain.resume()
    await memory.aclose()
    later = MEMORIES[name](journal=tmp_path / "journal.db")
    _, pay = payments()
    llm = ScriptedLLM(["Nothing is paid."])
    with pytest.raises(ResumeError):
        await Brain("react", memory=later, tools=[pay], llm=llm).resume(approve=True)
    result = await Brain("react", memory=later, tools=[pay], llm=llm).run("And now?")
    assert result.answer == "Nothing is paid."
    assert paid == []
    await later.aclose()
    if how != "delete":
        assert b"SECRET" not in on_disk(tmp_path)


async def test_a_waiting_run_continues_if_something_else_is_forgotten(tmp_path: Path) -> None:
    paid, pay = payments()
    async with MessagesMemory(journal=tmp_path / "journal.db") as memory:
        llm = ScriptedLLM(["Noted.", PAY, "Paid."])
        brain = Brain("react", memory=memory, tools=[pay], llm=llm)
        await brain.run("My cat is called Tiger")
        await brain.run("Pay my rent")
        assert await memory.forget(text="tiger") == 1
        assert (await brain.resume(approve=True)).answer == "Paid."
    assert paid == ["DE-SECRET-42"]


async def test_a_waiting_run_whose_notes_quote_what_is_forgotten_ends(tmp_path: Path) -> None:
    memory, brain, paid = await waiting(MessagesMemory, tmp_path)
    memory.control.scratch["plan"] = {"steps": ["1. PAY MY RENT, then rest"]}
    await memory.checkpoint()
    await memory.forget(text="my rent")
    assert b"RENT" not in on_disk(tmp_path)
    with pytest.raises(ResumeError):
        await brain.resume(approve=True)
    assert paid == []
    await memory.aclose()


async def test_an_expired_message_ends_no_waiting_run(tmp_path: Path) -> None:
    from datetime import UTC, datetime, timedelta

    now = datetime.now(UTC)
    memory, brain, paid = await waiting(
        lambda **place: MessagesMemory(ttl=timedelta(days=1), clock=lambda: now, **place), tmp_path
    )
    now += timedelta(days=2)
    assert (await brain.resume(approve=True)).answer == "Nothing is paid."
    assert paid == ["DE-SECRET-42"]
    await memory.aclose()


@pytest.mark.parametrize("name", ["messages", "layered-2", "todo"])
async def test_the_result_of_another_call_of_the_round_goes_too(name: str, tmp_path: Path) -> None:
    """A round with a question keeps the results that are in already, outside of the record."""
    from agent_brain.errors import InputNeeded

    @tool
    def look() -> str:
        """Look."""
        return "the SECRET view"

    @tool
    def ask() -> str:
        """Ask."""
        raise InputNeeded("Which one?")

    async with MEMORIES[name](journal=tmp_path / "journal.db") as memory:
        llm = ScriptedLLM([[Action(name="look", args={}), Action(name="ask", args={})], "Done."])
        brain = Brain("react", memory=memory, tools=[look, ask], llm=llm)
        assert (await brain.run("Look and ask")).stop_reason == "input"
        assert b"SECRET" in on_disk(tmp_path)
        await memory.forget(text="secret")
        assert b"SECRET" not in on_disk(tmp_path)
        with pytest.raises(ResumeError):
            await brain.resume(input="the first")


@pytest.mark.parametrize("how", ["forget", "delete", "clear"])
async def test_a_tool_may_take_away_the_call_that_it_answers(how: str, tmp_path: Path) -> None:
    async with MessagesMemory(journal=tmp_path / "journal.db") as memory:

        @tool
        async def wipe(why: str) -> str:
            """Wipe."""
            if how == "clear":
                await memory.clear()
            else:
                (asks,) = [m.id for m in await memory.messages() if m.tool_calls]
                await getattr(memory, how)(asks)
            return "wiped"

        brain = Brain(
            "react",
            memory=memory,
            tools=[wipe],
            llm=ScriptedLLM([Action(name="wipe", args={"why": "SECRET"}), "Wiped."]),
        )
        assert (await brain.run("Wipe it")).answer == "Wiped."
        assert all(m.role != "tool" for m in await memory.messages()), "a result without its call"


@pytest.mark.parametrize("name", ["messages", "layered-1", "layered-2", "todo"])
@pytest.mark.parametrize("what", ["forget", "delete"])
async def test_what_goes_inside_a_step_stays_away_when_the_step_is_rolled_back(
    what: str, name: str, tmp_path: Path
) -> None:
    from agent_brain.memories import Message
    from agent_brain.memories.runs.claim import Claim

    path = tmp_path / "journal.db"
    async with MEMORIES[name](journal=path) as memory:
        await memory.set_goal(Message.user("Pay", id="goal"))
        memory.control.begin("run-1", "ACTION")
        await memory.update([Message.assistant("", [PAY], id="asks")])
        memory.control.next_actions = [PAY]
        memory.claim = await Claim.take(memory)  # a run is active
        await memory.checkpoint()
        await memory.update([Message.assistant("half a step", id="half")])
        await getattr(memory, what)("asks")
        assert memory.control.next_actions == []
        assert memory.control.status == "running"
    async with MEMORIES[name](journal=path) as later:
        await later.open()
        assert later.control.next_actions == []
        await later.rollback()
        assert [m.id for m in await later.messages()] == ["goal"]
        assert later.control.next_actions == []
        assert later.control.status == "running"
        await later.rollback()
        await later.update([Message.assistant("again", id="again")])
    async with MEMORIES[name](journal=path) as last:
        assert [m.id for m in await last.messages()] == ["goal", "again"]
    if what == "forget":
        assert b"SECRET" not in on_disk(tmp_path)
