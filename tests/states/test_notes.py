"""Notes: typed data that lasts for a run, or for the session."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from datetime import date
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest
from pydantic import BaseModel, Field, SecretStr

from agent_brain import Brain, Memory, Message, MessagesMemory, Net, State, react, tool
from agent_brain.errors import ScratchError, StateDefinitionError
from agent_brain.memories import LayeredMemory, RamJournal, SQLiteJournal, TodoMemory, create_memory
from agent_brain.nets import ParallelState
from agent_brain.states import Notes
from agent_brain.testing import FakeMemory, ScriptedLLM, run_state
from agent_brain.tools import Action, ToolContext

pytestmark = pytest.mark.anyio


class Shop(Enum):
    SELLING = "selling"


class Basket(Notes, scope="session"):
    """What a customer has chosen."""

    customer: str = ""
    items: list[str] = []


class Heard(Notes):
    """What was said in this run."""

    texts: list[str] = []


class Selling(State):
    """Puts what is asked for into the basket."""

    async def run(self, memory: Memory) -> AsyncIterator[str]:
        text = (await memory.goal())[-1].content
        basket, heard = Basket.read(memory), Heard.read(memory)
        basket.items.append(text)
        heard.texts.append(text)
        basket.write(memory)
        heard.write(memory)
        yield ", ".join(basket.items)

    async def next_state(self, memory: Memory) -> Literal[None]:
        return None


NET = Net({Shop.SELLING: Selling()})


async def test_session_notes_last_from_run_to_run_and_others_do_not() -> None:
    brain = Brain(NET)
    assert (await brain.run("pears")).answer == "pears"
    assert (await brain.run("plums")).answer == "pears, plums"
    assert Heard.read(brain.memory).texts == ["plums"]
    assert brain.memory.control.session["Basket"]["items"] == ["pears", "plums"]


@pytest.mark.parametrize("name", ["messages", "windowed", "summary", "todo", "layered"])
async def test_they_are_there_in_every_memory_when_it_is_opened_again(name: str) -> None:
    journal = RamJournal()
    for goal, answer in [("pears", "pears"), ("plums", "pears, plums")]:
        options: dict[str, Any] = {"long": "messages"} if name == "layered" else {}
        memory = create_memory(name, journal=journal, session="ann", **options)
        assert (await Brain(NET, memory).run(goal)).answer == answer
    other = create_memory(name, journal=journal, session="bob", **options)
    assert (await Brain(NET, other).run("figs")).answer == "figs"


async def test_a_fork_a_snapshot_and_an_export_take_them_along(tmp_path: Path) -> None:
    memory = MessagesMemory()
    await Brain(NET, memory).run("pears")
    fork = await memory.fork()
    restored, loaded = MessagesMemory(), MessagesMemory()
    await restored.restore(await memory.snapshot())
    await memory.export(tmp_path / "ann.json")
    await loaded.load(path=tmp_path / "ann.json")
    for copy in (fork, restored, loaded):
        assert (await Brain(NET, copy).run("plums")).answer == "pears, plums"
    assert Basket.read(memory).items == ["pears"]


async def test_what_a_parallel_branch_notes_stays_on_its_fork() -> None:
    brain = Brain(Net({Shop.SELLING: ParallelState([NET, NET])}))
    Basket(items=["figs"]).write(brain.memory)
    await brain.run("pears")
    assert Basket.read(brain.memory).items == ["figs"]


async def test_clearing_erases_them(tmp_path: Path) -> None:
    path = tmp_path / "brain.db"
    async with SQLiteJournal(path) as journal:
        memory = MessagesMemory(journal=journal)
        await Brain(NET, memory).run("gooseberries")
        assert b"gooseberries" in path.read_bytes() + _beside(path)
        await memory.clear()
        assert Basket.read(memory) == Basket()
        again = MessagesMemory(journal=journal)
        await again.open()
        assert Basket.read(again) == Basket()
        for entry in await journal.read((await journal.sessions())[0]):
            assert "Basket" not in str(entry)


def _beside(path: Path) -> bytes:
    wal = Path(f"{path}-wal")
    return wal.read_bytes() if wal.exists() else b""


@pytest.mark.parametrize(
    "make",
    [
        lambda: TodoMemory(MessagesMemory()),
        lambda: create_memory("layered", long="messages"),
    ],
)
async def test_clearing_a_memory_over_another_forgets_them_too(make: Any) -> None:
    memory: LayeredMemory | TodoMemory = make()
    Basket(items=["pears"]).write(memory)
    await memory.clear()
    assert Basket.read(memory).items == []


async def test_a_state_with_session_notes_is_tested_alone() -> None:
    memory = FakeMemory("plums")
    Basket(customer="Ann", items=["pears"]).write(memory)
    done = await run_state(Selling(), memory)
    assert done.text == "pears, plums"
    assert Basket.read(done.memory).customer == "Ann"


async def test_a_subclass_lasts_as_long_unless_it_says_otherwise() -> None:
    class Gifts(Basket):
        pass

    class Tried(Basket, scope="run"):
        pass

    memory = FakeMemory()
    Gifts(items=["ring"]).write(memory)
    Tried(items=["hat"]).write(memory)
    assert {*memory.control.session} == {"Gifts"}
    assert {*memory.control.scratch} == {"Tried"}


async def test_a_misspelt_scope_is_refused() -> None:
    with pytest.raises(StateDefinitionError, match=r"scope='sesion'.*Did you mean 'session'"):

        class Wrong(Notes, scope="sesion"):
            pass


async def test_what_json_does_not_have_is_refused_in_notes_too() -> None:
    class Score(Notes):
        value: float = 0.0

    with pytest.raises(ValueError, match="'Score' at \\['value'\\] holds nan"):
        Score(value=float("nan")).write(FakeMemory())


async def test_notes_hold_what_pydantic_makes_json_of() -> None:
    class Kept(Notes):
        names: set[str] = set()
        said: list[Message] = []

    memory = FakeMemory()
    kept = Kept(names={"Ann"}, said=[Message.user("hi")])
    kept.write(memory)
    memory.control.check_notes("STATE")
    assert Kept.read(memory) == kept


class Hasty(State):
    """Writes a record that could not be read again."""

    async def run(self, memory: Memory) -> AsyncIterator[str]:
        heard = Heard.read(memory)
        heard.texts = "one text"  # type: ignore[assignment]
        heard.write(memory)
        yield "never"

    async def next_state(self, memory: Memory) -> Literal[None]:
        return None


async def test_a_value_of_the_wrong_type_is_refused_when_it_is_written() -> None:
    brain = Brain(Net({Shop.SELLING: Hasty()}))
    with pytest.raises(ScratchError) as caught:
        await brain.run("go")
    text = str(caught.value)
    assert "State 'SELLING'" in text
    assert "'Heard.texts'" in text
    assert "should be a valid list, not 'one text'" in text
    assert Heard.read(brain.memory).texts == []


async def test_a_value_that_json_does_not_hold_is_refused_when_it_is_written() -> None:
    class Loose(Notes):
        anything: Any = None

    with pytest.raises(ScratchError, match="'Loose' is not stored"):
        Loose(anything=object()).write(FakeMemory("go"))


class Accept(BaseModel):
    why: str = ""


class Decline(BaseModel):
    why: str = ""


async def test_an_object_that_would_be_read_again_as_another_one_is_refused() -> None:
    class Said(Notes):
        last: Accept | Decline | None = None
        all: list[Accept | Decline] = []
        told_apart: Shop | Heard | None = None

    memory = FakeMemory("go")
    Said(last=Accept(why="near"), told_apart=Heard(texts=["x"])).write(memory)
    for wrong in (Said(last=Decline(why="far")), Said(all=[Accept(), Decline()])):
        with pytest.raises(ScratchError, match=r"Decline\(.*\) would be read again as Accept\("):
            wrong.write(memory)
    assert Said.read(memory).last == Accept(why="near")


class Labelled(Notes):
    a: int = Field(0, alias="A-x")
    b: int = Field(0, validation_alias="B-x")
    hidden: int = Field(0, exclude=True)
    word: SecretStr = SecretStr("")
    texts: tuple[str, ...] = ()


async def test_notes_come_back_with_fields_of_other_names_and_excluded_ones() -> None:
    memory = FakeMemory("go")
    for given in ({"A-x": 5}, {"B-x": 5}, {"hidden": 5}, {"word": "s3cret!"}, {"texts": ("x",)}):
        labelled = Labelled.model_validate(given)
        labelled.write(memory)
        assert labelled != Labelled.model_validate({})
        assert Labelled.read(memory) == labelled


@pytest.mark.parametrize("value", [(1, 2), {1, 2}, {1: 2}, b"x", date(2026, 1, 1), [(1, 2)]])
async def test_what_would_be_read_again_as_another_value_is_refused(value: Any) -> None:
    class Loose(Notes):
        anything: Any = None

    with pytest.raises(ScratchError, match=r"'Loose' is not stored, as .* would be read again as"):
        Loose(anything=value).write(FakeMemory("go"))


async def test_a_value_that_its_type_accepts_in_another_form_is_stored_in_that_of_the_type() -> (
    None
):
    heard = Heard()
    heard.texts = ("one", "two")  # type: ignore[assignment]
    memory = FakeMemory("go")
    heard.write(memory)
    assert Heard.read(memory).texts == ["one", "two"]


# Changes by several at once


def adding(tool_: Any, count: int = 8) -> Brain:
    calls = [Action(name=tool_.name, args={"item": f"item {number}"}) for number in range(count)]
    return Brain(react(ScriptedLLM([calls, "Done."])), MessagesMemory([tool_]))


async def test_sync_tools_of_one_round_change_the_same_record_one_after_the_other() -> None:
    all_run = threading.Barrier(8, timeout=60)

    @tool
    def add_item(item: str, context: ToolContext) -> str:
        """Add an item."""
        all_run.wait()
        with Basket.change(context.memory) as basket:
            basket.items.append(item)
        return "added"

    brain = adding(add_item)
    await brain.run("go")
    assert sorted(Basket.read(brain.memory).items) == [f"item {number}" for number in range(8)]


async def test_a_record_that_another_call_has_changed_is_not_overwritten() -> None:
    """It says what to do instead."""

    @tool
    async def add_item(item: str, context: ToolContext) -> str:
        """Add an item."""
        basket = Basket.read(context.memory)
        basket.items.append(item)
        await anyio.lowlevel.checkpoint()
        basket.write(context.memory)
        return "added"

    brain = adding(add_item, 3)
    result = await brain.run("go")
    told = [message.content for message in result.messages if message.tool_call_id]
    assert told.count("added") == len(Basket.read(brain.memory).items) == 1
    assert sum("with Basket.change(memory)" in text for text in told) == 2


async def test_an_await_inside_a_change_does_not_lose_a_change() -> None:
    @tool
    async def add_item(item: str, context: ToolContext) -> str:
        """Add an item."""
        with Basket.change(context.memory) as basket:
            basket.items.append(item)
            await anyio.lowlevel.checkpoint()
        return "added"

    brain = adding(add_item, 3)
    result = await brain.run("go")
    told = [message.content for message in result.messages if message.tool_call_id]
    assert told.count("added") == len(Basket.read(brain.memory).items) == 1


def test_a_change_that_raises_writes_nothing() -> None:
    memory = FakeMemory("go")
    with pytest.raises(KeyError), Basket.change(memory) as basket:
        basket.items.append({"milk": "milk"}["tea"])
    assert Basket.read(memory) == Basket()


def test_a_record_is_changed_and_written_again_by_whoever_read_it() -> None:
    memory = FakeMemory("go")
    basket = Basket.read(memory)
    for item in ("tea", "milk"):
        basket.items.append(item)
        basket.write(memory)
    Basket(items=["new"]).write(memory)  # made anew, and not read
    assert Basket.read(memory) == Basket(items=["new"])
