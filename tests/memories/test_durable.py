"""A memory of a user's own over a journal: what it is given, and what it may refuse."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from agent_brain import Brain, tool
from agent_brain.memories import (
    Control,
    DurableMemory,
    JournalError,
    LeaseHeldError,
    Memory,
    MemoryDefinitionError,
    MemoryUseError,
    Message,
    MessagesMemory,
    RamJournal,
    ReadOnlyMemoryError,
    SessionConflictError,
    SQLiteJournal,
    TodoMemory,
    list_sessions,
    register_memory,
    session_key,
)
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action, ToolDefinitionError
from tests.memories.durable.own import ListMemory, NotedMemory, ShortMemory
from tests.support.journals import MortalJournal

pytestmark = pytest.mark.anyio


def said(messages: list[Message]) -> list[str]:
    return [message.content for message in messages]


def goals(memory: DurableMemory) -> list[str]:
    made = cast("ListMemory", memory.made)
    return [made.said[i].content for i in made.goals if i in made.said]


def notes(memory: DurableMemory) -> list[str]:
    return cast("NotedMemory", memory.made).notes


# What make may return


def instance() -> Any:
    return ListMemory()


def test_an_instance_is_refused() -> None:
    with pytest.raises(MemoryDefinitionError, match=r"takes a function that makes a memory.*not <"):
        DurableMemory(instance())


def test_a_function_that_returns_no_memory_is_refused() -> None:
    make: Any = dict
    with pytest.raises(MemoryDefinitionError, match=r"returns a memory, and .* returned {}"):
        DurableMemory(make)


def test_a_function_that_returns_the_same_memory_again_is_refused() -> None:
    only = ListMemory()
    with pytest.raises(MemoryDefinitionError, match="has returned the same ListMemory again"):
        DurableMemory(lambda: only)


def test_a_memory_with_a_journal_is_refused() -> None:
    with pytest.raises(MemoryDefinitionError, match="MessagesMemory has a journal itself"):
        DurableMemory(lambda: TodoMemory(MessagesMemory(journal=RamJournal())))


def test_two_tools_of_a_name_are_refused() -> None:
    @tool
    def note() -> str:
        """Another tool."""
        return ""

    with pytest.raises(ToolDefinitionError, match="note"):
        DurableMemory(NotedMemory, [note])


# Opening


async def test_it_is_given_its_calls_again(tmp_path: Path) -> None:
    async with DurableMemory(ListMemory, journal=tmp_path / "j.db", session="a") as memory:
        await memory.set_goal("one")
        await memory.update([Message.assistant("first"), Message.assistant("second")])
        await memory.set_goal("two")
    async with DurableMemory(ListMemory, journal=tmp_path / "j.db", session="a") as later:
        assert goals(later) == ["one", "two"]
        assert said(await later.goal()) == ["two"]
        assert said(await later.dump()) == ["one", "first", "second"]
        assert said(await later.context()) == ["one", "first", "second", "two"]
    assert cast("ListMemory", later.made).closed == 1


async def test_it_is_given_each_message_once() -> None:
    memory = DurableMemory(ShortMemory, journal=RamJournal())
    await memory.set_goal(Message.user("goal", id="goal"))
    for number in range(9):
        await memory.update([Message.assistant(str(number), id=str(number))])
    await memory.update([Message.assistant("0", id="0")])  # it has dropped it
    assert said(await memory.dump()) == ["6 dropped", "6", "7", "8"]
    assert await memory.count() == 10


async def test_a_new_goal_that_is_known_is_set_again() -> None:
    journal = RamJournal()
    memory = DurableMemory(ListMemory, journal=journal)
    first = Message.user("one", id="one")
    for goal in (first, Message.user("two"), first):
        await memory.set_goal(goal)
    later = DurableMemory(ListMemory, journal=journal)
    assert said(await later.goal()) == said(await memory.goal()) == ["one"]
    assert goals(later) == goals(memory) == ["one", "two", "one"]


async def test_a_memory_that_refuses_its_session_says_so() -> None:
    journal = RamJournal()
    await DurableMemory(ListMemory, journal=journal, session="s").update([Message.user("bad")])

    def strict() -> Memory:
        memory = ListMemory()
        memory.refuses = "bad"
        return memory

    later = DurableMemory(strict, journal=journal, session="s")
    with pytest.raises(MemoryUseError, match=r"ListMemory cannot be given what session 's' holds"):
        await later.open()


# Failures


async def test_what_it_refuses_is_not_stored() -> None:
    journal = RamJournal()
    memory = DurableMemory(ListMemory, journal=journal)
    await memory.update([Message.user("good")])
    cast("ListMemory", memory.made).refuses = "bad"
    with pytest.raises(ValueError, match="bad is refused"):
        await memory.update([Message.user("half"), Message.user("bad")])
    await memory.open()
    cast("ListMemory", memory.made).refuses = "bad"
    with pytest.raises(ValueError, match="bad goal is refused"):
        await memory.begin(Message.user("bad goal"), "run", "START")
    later = DurableMemory(ListMemory, journal=journal)
    for which in (memory, later):
        assert said(await which.dump()) == said(await which.messages()) == ["good"]
        assert await which.goal() == []
    assert memory.control.run_id is None


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("method", ["update", "set_goal", "begin"])
async def test_it_does_not_keep_what_is_not_stored(method: str, written: bool) -> None:
    store = RamJournal()
    journal = MortalJournal(store, 2, after=written, error=JournalError)
    memory = DurableMemory(ListMemory, journal=journal)
    await memory.update([Message.user("stored")])
    more = Message.user("more")
    writes = {
        "update": lambda: memory.update([more]),
        "set_goal": lambda: memory.set_goal(more),
        "begin": lambda: memory.begin(more, "run", "START"),
    }
    with pytest.raises(JournalError, match="killed"):
        await writes[method]()
    later = DurableMemory(ListMemory, journal=store)
    wanted = ["stored", "more"] if written else ["stored"]
    for which in (memory, later):
        assert said(await which.dump()) + said(await which.goal()) == wanted
        assert said(await which.messages()) == wanted


async def test_a_second_writer_keeps_nothing() -> None:
    journal = RamJournal()
    first = DurableMemory(ListMemory, journal=journal)
    second = DurableMemory(ListMemory, journal=journal)
    await first.update([Message.user("one")])
    await second.open()
    await first.update([Message.user("two")])
    with pytest.raises(SessionConflictError):
        await second.update([Message.user("too late")])
    assert said(await second.dump()) == ["one"]
    await second.reopen()
    assert said(await second.dump()) == ["one", "two"]


async def test_a_restore_that_it_refuses_changes_nothing() -> None:
    def strict() -> Memory:
        memory = ListMemory()
        memory.refuses = "bad"
        return memory

    memory = DurableMemory(strict, journal=RamJournal())
    await memory.update([Message.user("good")])
    with pytest.raises(MemoryUseError, match="bad is refused"):
        await memory.load([Message.user("bad")])
    assert said(await memory.messages()) == said(await memory.dump()) == ["good"]


async def test_a_session_that_is_only_read() -> None:
    journal = RamJournal()
    memory = DurableMemory(NotedMemory, journal=journal)
    await memory.update([Message.user("one", id="one")])
    viewer = DurableMemory(NotedMemory, journal=journal, readonly=True)
    assert said(await viewer.dump()) == ["one"]
    for write in (viewer.update([Message.user("two")]), viewer.set_goal("two"), viewer.tag("one")):
        with pytest.raises(ReadOnlyMemoryError):
            await write
    await memory.update([Message.user("two")])
    await viewer.reopen()
    assert said(await viewer.dump()) == ["one", "two"]


# What is done over the journal


async def test_tags_are_seen_and_deleted_messages_are_gone() -> None:
    memory = DurableMemory(ListMemory, journal=RamJournal())
    await memory.set_goal("goal")
    await memory.update([Message.user(text, id=text) for text in "abc"])
    await memory.tag("a", "seen")
    assert (await memory.dump())[0].tags == {"seen"}
    assert await memory.delete("b") == 1
    assert said(await memory.dump()) == ["a", "c"]
    assert await memory.forget(text="a") == 1 + 1  # and the goal
    assert said(await memory.dump()) == ["c"]
    assert await memory.goal() == []


async def test_messages_expire() -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    memory = DurableMemory(ListMemory, journal=RamJournal(), ttl=60, clock=lambda: now)
    await memory.update([Message.user("old", created_at=now)])
    now += timedelta(seconds=61)
    await memory.update([Message.user("new", created_at=now)])
    assert said(await memory.dump()) == ["new"]


async def test_the_goals_of_a_copy_are_goals_in_it() -> None:
    memory = DurableMemory(ListMemory, journal=RamJournal())
    for text in ("one", "two"):
        await memory.set_goal(text)
        await memory.update([Message.assistant(f"answer {text}")])
    stored = RamJournal()
    for copied in (await memory.fork(), await memory.fork(journal=stored, session="copy")):
        await copied.update([Message.user("only here")])
        assert goals(copied) == ["one", "two"]
        assert copied.made is not memory.made
    later = DurableMemory(ListMemory, journal=stored, session="copy")
    await later.open()
    assert goals(later) == ["one", "two"]
    assert await memory.count() == 4


async def test_an_export_goes_to_another_memory() -> None:
    memory = DurableMemory(ListMemory, journal=RamJournal())
    await memory.set_goal("goal")
    await memory.update([Message.assistant("answer")])
    other = MessagesMemory()
    await other.load(await memory.export())
    assert said(await other.context()) == ["goal", "answer"]
    back = DurableMemory(ListMemory, journal=RamJournal())
    await back.load(await other.export())
    assert said(await back.context()) == ["goal", "answer"]


async def test_a_rewound_session() -> None:
    journal = RamJournal()
    memory = DurableMemory(ListMemory, journal=journal, history="all")
    await memory.begin(Message.user("goal"), "run", "START")
    await memory.update([Message.assistant("first")])
    await memory.checkpoint()
    await memory.update([Message.assistant("second")])
    await memory.checkpoint()
    steps = await memory.steps()
    earlier = await memory.as_of(steps[1])
    assert said(await earlier.context()) == ["goal", "first"]
    assert said(await memory.context()) == ["goal", "first", "second"]


async def test_a_run_has_the_lease_of_the_session(tmp_path: Path) -> None:
    path, seen = tmp_path / "j.db", list[str]()

    @tool
    async def try_it() -> str:
        """Run the session a second time."""
        async with DurableMemory(ListMemory, journal=path) as other:
            with pytest.raises(LeaseHeldError) as held:
                await Brain("react", other, llm=ScriptedLLM(["no"])).run("second")
            seen.append(held.value.session)
        return "tried"

    async with DurableMemory(ListMemory, [try_it], journal=path) as memory:
        llm = ScriptedLLM([[Action(name="try_it", args={})], "done"])
        await Brain("react", memory, llm=llm).run("first")
    assert seen == [session_key("default")]


async def test_it_is_made_by_name_and_listed(tmp_path: Path) -> None:
    name = tmp_path.name
    register_memory(name, lambda tools, **place: DurableMemory(ListMemory, tools, **place))
    path = str(tmp_path / "j.db")
    options: Any = {"journal": path, "session": "chat", "tenant": "ann"}
    async with Brain("react", name, llm=ScriptedLLM(["Hello."]), memory_options=options) as brain:
        assert (await brain.run("Hi")).answer == "Hello."
    async with SQLiteJournal(path) as journal:
        (info,) = await list_sessions(journal)
    assert (info.session, info.tenant, info.title) == ("chat", "ann", "Hi")


async def test_its_control_is_that_of_the_session() -> None:
    memory = DurableMemory(ListMemory, journal=RamJournal())
    await memory.begin(Message.user("goal"), "run", "START")
    memory.control = Control(step=3)
    await memory.open()
    assert memory.made.control is memory.control


# More than messages


async def noted(**options: Any) -> DurableMemory:
    memory = DurableMemory(NotedMemory, journal=RamJournal(), **options)
    await memory.begin(Message.user("goal", id="goal"), "run", "START")
    await memory.update([Message.assistant("first", id="first")])
    notes(memory).append("noted")
    await memory.checkpoint()
    return memory


async def again(memory: DurableMemory) -> DurableMemory:
    later = DurableMemory(NotedMemory, journal=memory.journal)
    await later.open()
    return later


async def test_what_it_holds_is_stored_with_each_step() -> None:
    memory = await noted()
    await memory.update([Message.assistant("second")])
    notes(memory).append("after the step")
    later = await again(memory)
    assert notes(later) == ["noted"]
    assert said(await later.dump()) == ["first", "second"]
    await memory.rollback()
    for which in (memory, await again(memory)):
        assert notes(which) == ["noted"]
        assert said(await which.dump()) == ["first"]


async def test_what_was_noted_between_two_runs_is_stored() -> None:
    memory = await noted()
    notes(memory).append("between")
    await memory.begin(Message.user("next"), "run-2", "START")
    later = await again(memory)
    await later.rollback()
    assert notes(later) == ["noted", "between"]
    assert said(await later.goal()) == ["next"]


async def test_its_messages_are_stored_once() -> None:
    memory = await noted()
    await memory.update([Message.assistant("x" * 10_000)])
    await memory.checkpoint()
    assert memory.journal is not None
    entries = await memory.journal.read(session_key("default"))
    assert len(repr(entries)) < 2 * 10_000


async def test_its_own_messages_are_stored() -> None:
    memory = DurableMemory(ShortMemory, journal=RamJournal())
    await memory.begin(Message.user("goal", id="goal"), "run", "START")
    for number in range(6):
        await memory.update([Message.assistant(str(number))])
    await memory.checkpoint()
    await memory.update([Message.assistant("6")])
    later = DurableMemory(ShortMemory, journal=memory.journal)
    assert said(await later.dump()) == said(await memory.dump()) == ["4 dropped", "4", "5", "6"]


@pytest.mark.parametrize("change", ["tag", "delete"])
async def test_notes_stay_when_messages_change(change: str) -> None:
    memory = await noted()
    notes(memory).append("later")
    await (memory.tag("first", "seen") if change == "tag" else memory.delete("first"))
    for which in (memory, await again(memory)):
        await which.open()
        assert notes(which) == ["noted", "later"]
        assert said(await which.dump()) == (["first"] if change == "tag" else [])


async def test_notes_go_with_what_is_forgotten() -> None:
    memory = await noted()
    notes(memory).append("quotes first")
    await memory.checkpoint()
    assert await memory.forget("first") == 1
    for which in (memory, await again(memory)):
        await which.open()
        assert notes(which) == []
        assert said(await which.goal()) == ["goal"]
    assert memory.journal is not None
    assert "quotes" not in repr(await memory.journal.read(session_key("default"), history=True))


async def test_notes_go_along_into_copies_and_back_to_steps() -> None:
    memory = await noted(history="all")
    notes(memory).append("later")
    fork, branch = await memory.fork(), await memory.branch("one")
    assert isinstance(branch, DurableMemory)
    await memory.checkpoint()
    loaded = DurableMemory(NotedMemory, journal=RamJournal())
    await loaded.load(await memory.export())
    for copied in (fork, branch, loaded):
        await copied.open()
        assert notes(copied) == ["noted", "later"]
    notes(branch).append("in the branch")
    assert notes(memory) == ["noted", "later"]
    first, second, _ = await memory.steps()
    for step, wanted in ((first, []), (second, ["noted"])):
        earlier = await memory.as_of(step)
        await earlier.open()
        assert notes(earlier) == wanted


async def test_its_tools_are_those_of_the_memory_that_is_used() -> None:
    memory = await noted()
    before, names = memory.made, [*memory.available_tools]
    await memory.tag("first", "seen")
    await memory.update([Message.assistant("second")])
    call = [Action(name="note", args={"text": "by the model"})]
    await Brain("react", memory, llm=ScriptedLLM([call, "done"])).run("note it")
    assert memory.made is not before
    assert notes(memory) == ["noted", "by the model"]
    assert [name for name in memory.available_tools if name in names] == names
    assert notes(await again(memory)) == ["noted", "by the model"]
