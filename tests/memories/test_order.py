"""A call is never split from its results, whoever writes while a tool runs."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_brain import Brain
from agent_brain.memories import (
    Memory,
    MemoryUseError,
    Message,
    MessagesMemory,
    RamJournal,
    create_memory,
)
from agent_brain.memories.views.groups import Answered, arranged
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action, tool

pytestmark = pytest.mark.anyio


class FourMethods(Memory):
    """The smallest memory that somebody could write."""

    def __init__(self, tools=()) -> None:
        super().__init__(tools)
        self.asked: list[Message] = []
        self.said: list[Message] = []

    async def set_goal(self, goal: str | Message) -> None:
        self.said += self.asked
        self.asked = [goal if isinstance(goal, Message) else Message.user(goal)]

    async def update(self, messages: list[Message]) -> None:
        self.said += messages

    async def goal(self) -> list[Message]:
        return [*self.asked]

    async def dump(self) -> list[Message]:
        return [*self.said]


MEMORIES: dict[str, Any] = {
    "messages": lambda tools: create_memory("messages", tools),
    "windowed": lambda tools: create_memory("windowed", tools),
    "windowed-1": lambda tools: create_memory("windowed", tools, max_messages=1),
    "vector": lambda tools: create_memory("vector", tools),
    "summary": lambda tools: create_memory("summary", tools),
    "layered": lambda tools: create_memory("layered", tools, long="messages", max_messages=2),
    "todo": lambda tools: create_memory("todo", tools),
    "four methods": FourMethods,
}


@pytest.mark.parametrize("name", MEMORIES)
async def test_what_is_written_while_a_tool_runs_comes_after_its_result(name) -> None:
    @tool
    async def look() -> str:
        """Look."""
        await memory.update([Message.user("by the way")])
        return "found"

    memory = MEMORIES[name]([look])
    calls = [Action(name="look", args={})]
    llm = ScriptedLLM([calls, "done"])
    await Brain("react", memory, llm=llm).run("goal")
    shown = [(str(m.role), m.content) for m in llm.calls[1].messages if m.role != "system"]
    at = shown.index(("tool", "found"))
    assert shown[at - 1] == ("assistant", "")
    if name != "windowed-1":
        assert shown[at + 1 :] == [("user", "by the way")]


@given(st.permutations(range(6)), st.integers(0, 3))
def test_a_record_is_in_the_order_of_groups_however_results_arrive(order, start) -> None:
    calls = [[Action(name="f", args={}) for _ in range(2)] for _ in range(2)]
    asking = [Message.assistant(f"asks {n}", calls[n]) for n in range(2)]
    late = [Message.tool(f"{n}", call) for n, call in enumerate([*calls[0], *calls[1]])]
    late += [Message.user("a"), Message.user("b")]
    told = [Message.user("first"), *asking, *[late[n] for n in order]]

    async def run() -> None:
        memory = MessagesMemory()
        for message in told:
            await memory.update([message])
        assert await memory.messages() == arranged(told)
        await memory.delete(told[start].id)
        left = {m.id for m in await memory.messages()}
        assert await memory.messages() == [m for m in arranged(told) if m.id in left]
        assert {m.id for m in (await memory.find_news())[0]} == left

    anyio.run(run)


async def test_ids_of_calls_may_be_used_again() -> None:
    """As models do that number their calls from 0 in every response."""
    first, second = Action(name="f", args={}, id="0"), Action(name="g", args={}, id="0")
    told = [
        Message.assistant("one", [first]),
        Message.tool("r1", first),
        Message.assistant("two", [second]),
        Message.user("by the way"),
        Message.tool("r2", second),
    ]
    memory = MessagesMemory()
    for message in told:
        await memory.update([message])
    assert [m.content for m in await memory.context()] == ["one", "r1", "two", "r2", "by the way"]


@pytest.mark.parametrize("name", ["messages", "windowed", "vector", "summary", "layered", "todo"])
async def test_the_last_messages_are_whole_groups(name) -> None:
    memory: Any = MEMORIES[name](())
    call = Action(name="f", args={})
    await memory.update([Message.user("a"), Message.assistant("b", [call])])
    await memory.update([Message.tool("c", call), Message.user("d")])
    found = {n: [m.content for m in await memory.messages(n)] for n in range(-1, 6)}
    everything = ["a", "b", "c", "d"] if name != "windowed-1" else ["d"]
    assert found == {
        -1: [],
        0: [],
        1: ["d"],
        2: ["d"],
        3: ["b", "c", "d"],
        4: everything,
        5: everything,
    }
    assert [m.content for m in await memory.messages(1, role="tool")] == ["c"]
    for wrong in (1.5, True, "1", float("nan")):
        with pytest.raises(MemoryUseError, match="last="):
            await memory.messages(wrong)


@pytest.mark.parametrize("name", MEMORIES)
async def test_a_result_has_the_whole_turn(name) -> None:
    @tool
    def look(place: str) -> str:
        """Look."""
        return f"found {place}"

    memory = MEMORIES[name]([look])
    turns = [[Action(name="look", args={"place": f"{n}"})] for n in range(6)]
    await Brain("react", memory, llm=ScriptedLLM(["earlier"])).run("before")
    result = await Brain("react", memory, llm=ScriptedLLM([*turns, "done"])).run("goal")
    said = [m.content for m in result.messages]
    assert said == ["goal", *[text for n in range(6) for text in ("", f"found {n}")], "done"]


async def test_a_turn_of_a_small_memory_does_not_go_by_the_clock() -> None:
    memory = FourMethods()
    await memory.update([Message.user("earlier")])
    prepared = Message.assistant("made before the goal")
    await memory.begin(Message.user("goal"), "run", "START")
    await memory.update([prepared])
    assert [m.content for m in await memory.turn()] == ["goal", "made before the goal"]
    await memory.set_goal("next")
    assert [m.content for m in await memory.turn()] == ["next"]


STEPS = st.lists(
    st.one_of(
        st.integers(0, 6),
        st.sampled_from(["tag", "keep", "delete", "reopen", "reopen and read"]),
    ),
    max_size=14,
    unique=True,
)


@given(STEPS)
@example([1, 4, "reopen and read", 2])  # somebody looked at it between call and result
@example([0, 1, "delete", 4, 2, "reopen"])  # something else was written between call and result
@example([1, "tag", 3, 2, "reopen"])
def test_a_session_has_the_order_of_groups_however_often_it_is_opened(steps) -> None:
    one, two = ([Action(name="f", args={}, id=f"{n}{i}") for i in range(2)] for n in range(2))
    pool = [
        Message.user("first", id="first"),
        Message.assistant("asks 1", one),
        Message.tool("1-0", one[0]),
        Message.assistant("asks 2", two),
        Message.user("by the way"),
        Message.tool("1-1", one[1]),
        Message.tool("2-0", two[0]),
    ]

    async def run() -> None:
        journal = RamJournal()
        memory = MessagesMemory(journal=journal)
        said: list[Message] = []
        for step in steps:
            if isinstance(step, int):
                await memory.update([pool[step]])
                said.append(pool[step])
            elif step == "tag":
                await memory.tag([m.id for m in said[:1]], "x")
            elif step == "keep":
                await memory.keep("value", 1)
            elif step == "delete":
                await memory.delete("first")
                said = [m for m in said if m.id != "first"]
            else:
                memory = MessagesMemory(journal=journal)
                if step == "reopen and read":
                    await memory.messages()
        expected = [m.content for m in arranged(said)]
        assert [m.content for m in await memory.messages()] == expected
        again = MessagesMemory(journal=journal)
        assert [m.content for m in await again.messages()] == expected

    anyio.run(run)


@pytest.mark.parametrize("name", ["messages", "windowed", "vector", "summary", "layered", "todo"])
@pytest.mark.parametrize("reopened", [False, True])
async def test_a_model_is_not_shown_calls_that_never_got_a_result(name, reopened) -> None:
    journal = RamJournal()
    memory: Any = create_memory(name, journal=journal)
    calls = [Action(name="f", args={}) for _ in range(4)]

    async def shown() -> list[str]:
        one = create_memory(name, journal=journal) if reopened else memory
        return [message.content for message in await one.context()]

    await memory.update([Message.user("a"), Message.tool("stray", Action(name="f", args={}))])
    await memory.update([Message.assistant("whole", calls[:1]), Message.tool("r", calls[0])])
    await memory.update([Message.assistant("half", calls[1:3]), Message.tool("r1", calls[1])])
    await memory.update([Message.user("b")])
    assert await shown() == ["a", "whole", "r", "half", "r1", "b"]
    await memory.update([Message.assistant("c"), Message.assistant("waits", calls[3:])])
    assert await shown() == ["a", "whole", "r", "b", "c", "waits"]
    assert await memory.count() == 9


def _answered(messages: list[Message]) -> list[Message]:
    calls = Answered()
    calls.read(messages)
    return [message for message in messages if message.id not in calls.hidden]


@given(
    st.lists(
        st.sampled_from(["user", "words", "call", "two calls", "result", "other result", "delete"]),
        max_size=14,
    )
)
def test_calls_without_results_are_left_out_whatever_was_written(writes):
    async def write() -> None:
        memory = MessagesMemory()
        for number, kind in enumerate(writes):
            calls = [Action(name="f", args={}, id=name) for name in ("c1", "c2")]
            if kind == "user":
                await memory.update([Message.user("u")])
            elif kind == "words":
                await memory.update([Message.assistant("w")])
            elif kind in ("call", "two calls"):
                asked = calls[: 1 if kind == "call" else 2]
                await memory.update([Message.assistant("", tool_calls=asked, id=f"m{number}")])
            elif kind == "delete":
                await memory.delete([m.id for m in (await memory.messages())[:1]])
            else:
                await memory.update([Message.tool("r", calls[kind == "other result"])])
            assert await memory.context() == _answered(await memory.dump())

    anyio.run(write)


async def test_messages_from_a_journal_are_looked_at_once(monkeypatch) -> None:
    journal = RamJournal()
    call = Action(name="f", args={})
    said = [Message.user("a"), Message.assistant("half", [call]), Message.assistant("b")]
    await MessagesMemory(journal=journal).update(said)
    looked_at: list[str] = []
    read = Answered.read

    def counted(calls: Answered, messages: list[Message]) -> None:
        looked_at.extend(message.content for message in messages)
        read(calls, messages)

    monkeypatch.setattr(Answered, "read", counted)
    memory = MessagesMemory(journal=journal)
    for _ in range(3):
        assert [m.content for m in await memory.context()] == ["a", "b"]
    assert looked_at == ["a", "half", "b"]
    await memory.update([Message.user("c")])
    assert [m.content for m in await memory.context()] == ["a", "b", "c"]
    assert looked_at == ["a", "half", "b", "c"]
    await memory.update([Message.tool("late", call)])
    assert [m.content for m in await memory.context()] == ["a", "half", "late", "b", "c"]
