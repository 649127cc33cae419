"""What a memory does by itself is told in the events of the run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from agent_brain import (
    Brain,
    LayeredMemory,
    Memory,
    MessagesMemory,
    ParallelState,
    SummaryMemory,
    TodoMemory,
    VectorMemory,
    WindowedMemory,
    react,
)
from agent_brain.memories import (
    DurableMemory,
    MemoryUseError,
    Message,
    RamJournal,
    RecalledItem,
)
from agent_brain.states import (
    ContextCompacted,
    Event,
    FactsLearned,
    FunctionState,
    MessagesRecalled,
    MessagesTrimmed,
    OtherEvent,
)
from agent_brain.testing import ScriptedLLM
from tests.brain.nets import single

pytestmark = pytest.mark.anyio

QUESTION = "Where does Ines live?"


async def events_of(brain: Brain[Any], task: str = QUESTION) -> list[Event]:
    async with brain.stream(task) as run:
        return [event async for event in run]


def told(events: list[Event], *kinds: type[Event]) -> list[Any]:
    return [event for event in events if isinstance(event, kinds)]


def answering(memory: Memory, answers: int = 1) -> Brain[Any]:
    return Brain("react", memory, llm=ScriptedLLM([f"Answer {n}" for n in range(answers)]))


def earlier(count: int = 6) -> list[Message]:
    talk = [Message.user(f"Other talk, number {n}", id=f"talk-{n}") for n in range(count)]
    return [Message.user("My sister Ines lives in Porto.", id="porto"), *talk]


def window(**options: Any) -> WindowedMemory:
    return WindowedMemory(max_messages=3, **options)


def vector(**options: Any) -> VectorMemory:
    return VectorMemory(recent=3, k=2, **options)


SHRINKING: dict[str, Callable[[Path], Memory]] = {
    "windowed": lambda _: window(),
    "windowed in a journal": lambda path: window(journal=path / "a.db"),
    "vector": lambda _: vector(),
    "vector in a folder": lambda path: vector(path=path),
    "layered": lambda _: LayeredMemory(window(), VectorMemory()),
    "todo over windowed": lambda _: TodoMemory(window()),
    "durable over an own one": lambda path: DurableMemory(window, journal=path / "b.db"),
}


@pytest.mark.parametrize("make", SHRINKING.values(), ids=SHRINKING)
async def test_messages_that_leave_the_window_in_a_run_are_told_once_and_no_others(
    make: Callable[[Path], Memory], tmp_path: Path
) -> None:
    memory = make(tmp_path)
    async with answering(memory, 3) as brain:
        await memory.update([Message.user(f"Before {n}", id=f"before-{n}") for n in range(9)])
        first = told(await events_of(brain), MessagesTrimmed)
        assert [event.ids for event in first] == [("before-6",), ("before-7",)]
        assert first[0].run_id
        assert first[0].state is None
        shown = {message.id for message in await memory.context()}
        assert shown.isdisjoint(["before-6", "before-7"])
        await brain.run("Nobody reads this")
        third = [each for e in told(await events_of(brain), MessagesTrimmed) for each in e.ids]
        assert len(third) == 2
        assert "before-8" not in third


@pytest.mark.parametrize("stored", [False, True])
async def test_what_a_kept_value_takes_the_place_of_is_told(stored: bool, tmp_path: Path) -> None:
    async def keep(memory: Any) -> None:
        await memory.keep("list", {"shown": "milk and bread, " * 30})

    options: Any = {"journal": tmp_path / "a.db"} if stored else {}
    async with WindowedMemory(max_tokens=150, **options) as memory:
        await memory.update([Message.user(f"Talk {n} " * 8, id=f"talk-{n}") for n in range(3)])
        events = await events_of(Brain(single(FunctionState(keep)), memory))
        shown = {message.id for message in await memory.context()}
    gone = [each for event in told(events, MessagesTrimmed) for each in event.ids]
    assert gone
    assert shown.isdisjoint(gone)


async def test_what_left_a_window_before_the_session_was_opened_is_not_told(tmp_path: Path) -> None:
    place = tmp_path / "a.db"
    async with window(journal=place) as memory:
        await memory.update([Message.user(f"Before {n}") for n in range(9)])
        newest = [message.id for message in await memory.context()]
    memory = window(journal=place)  # which the run opens
    events = told(await events_of(answering(memory)), MessagesTrimmed)
    await memory.aclose()
    assert [message_id for event in events for message_id in event.ids] == newest[:2]


RECALLING: dict[str, Callable[[], Memory]] = {
    "vector": vector,
    "layered": lambda: LayeredMemory(window(), VectorMemory()),
    "todo over vector": lambda: TodoMemory(vector()),
}


@pytest.mark.parametrize("make", RECALLING.values(), ids=RECALLING)
async def test_what_is_recalled_is_told_once_for_a_goal(make: Callable[[], Memory]) -> None:
    memory = make()
    await memory.update(earlier())
    events = await events_of(answering(memory))
    await memory.context()
    (event,) = told(events, MessagesRecalled)
    assert event.query == QUESTION
    assert event.items[0].id == "porto"
    assert event.items[0].what == "message"
    assert event.items[0].session is None
    assert 0 < event.items[0].score <= 1.1
    assert 20 < event.tokens < 200
    model = [e.kind for e in events].index("response_started")
    assert events.index(event) < model  # before the model reads it


async def test_what_is_recalled_from_another_conversation_is_told_with_its_name() -> None:
    journal = RamJournal()
    users = VectorMemory(journal=journal, session="user", shared=True)
    async with LayeredMemory(window(journal=journal, session="monday"), users) as monday:
        await monday.set_goal("My cat is called Tom.")
    shared = VectorMemory(journal=journal, session="user", shared=True)
    tuesday = LayeredMemory(window(journal=journal, session="tuesday"), shared)
    (event,) = told(await events_of(answering(tuesday), "What is my cat called?"), MessagesRecalled)
    assert [item.session for item in event.items] == ["monday"]


async def test_what_is_summarised_is_told_with_its_size_and_not_as_trimmed() -> None:
    memory = SummaryMemory(summarize=lambda _, __: "They talked.", max_messages=4)
    await memory.update([Message.user(f"A rather long message, number {n}") for n in range(9)])
    events = await events_of(answering(memory))
    (event,) = told(events, ContextCompacted)
    assert event.count == len(memory.summarised) == 8
    assert event.tokens_before > 8 * event.tokens_after > 0
    assert not told(events, MessagesTrimmed)


async def test_branches_tell_what_their_memories_do() -> None:
    memory = vector()
    await memory.update(earlier())
    nets = {name: react(ScriptedLLM(["Porto"])) for name in ("ann", "bob")}
    events = await events_of(Brain(single(ParallelState(nets)), memory))
    paths = {event.path[-1] for event in told(events, MessagesRecalled) if event.path}
    assert paths == {"ann", "bob"}


class Learning(MessagesMemory):
    """A memory of one's own that says what it learns."""

    def __init__(self) -> None:
        super().__init__()
        self.heard_at: list[bool] = []

    async def context(self) -> list[Message]:
        self.heard_at.append(self.heard)
        self.report("weather", sky="blue")
        items = (RecalledItem("fact-1", what="fact"),)
        self.report("recalled", query="home", items=items, tokens=12)
        return await super().context()

    async def checkpoint(self) -> None:
        await super().checkpoint()
        if self.control.status == "ended":
            refused = {"no such quote": 2}
            self.report("learned", session="s", added=("fact-2",), refused=refused, read=4, calls=1)

    @property
    def durable(self) -> bool:
        return True


async def test_a_memory_of_ones_own_reports_until_the_run_ends() -> None:
    memory = Learning()
    events = await events_of(answering(memory))
    (recalled,) = told(events, MessagesRecalled)
    assert (recalled.state, recalled.items[0].what) == ("REASONING", "fact")
    (weather,) = told(events, OtherEvent)
    assert (weather.kind, weather.data) == ("weather", {"sky": "blue"})
    (learned,) = told(events, FactsLearned)
    assert learned.refused == {"no such quote": 2}
    assert events[-1].kind == "run_finished"
    for event in (recalled, weather, learned):
        assert TypeAdapter(Event).validate_json(event.to_json()) == event
    assert json.loads(recalled.to_json())["items"] == [
        {"id": "fact-1", "score": None, "session": None, "what": "fact"}
    ]


async def test_nothing_is_told_where_nobody_listens() -> None:
    memory = Learning()
    brain = answering(memory, 3)
    await brain.run("One")
    async for _ in brain.answer("Two"):
        pass
    await memory.context()
    memory.report("recalled", no="such fields")
    assert memory.heard_at == [False, False, False]


async def test_a_memory_cannot_report_the_events_of_others() -> None:
    class Lying(MessagesMemory):
        async def context(self) -> list[Message]:
            self.report("run_finished", stop_reason="done", answer="")
            return await super().context()

    with pytest.raises(MemoryUseError, match="'recalled'"):
        await events_of(answering(Lying()))
