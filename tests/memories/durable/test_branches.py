"""Branches of a run that was interrupted continue where they stopped."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable
from enum import Enum
from typing import Any

import anyio.lowlevel
import pytest

from agent_brain import Brain, Message, tool
from agent_brain.memories import (
    Memory,
    MessagesMemory,
    RamJournal,
    delete_session,
    session_key,
)
from agent_brain.memories.store.session import below
from agent_brain.nets import MapState, Net, ParallelState, SubnetState, react
from agent_brain.states import State
from agent_brain.testing import ModelCall
from agent_brain.tools import Action, ToolContext
from tests.nets.models import FunctionLLM
from tests.support.journals import Killed, MortalJournal

pytestmark = pytest.mark.anyio

NAMES = ["a", "b", "c", "d", "e"]


class Outer(Enum):
    ALL = "all"


class Work:
    """Five branches of two rounds of calls each, one of which fails at its third model call."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()
        self.asked: Counter[str] = Counter()
        self.broken = True
        self.on_break: Callable[[], None] | None = None

        @tool
        async def pay(name: str, number: int) -> str:
            """Pay."""
            self.done[f"{name}{number}"] += 1
            return f"paid {number}"

        self.tools = [pay]

    def llm(self, name: str) -> FunctionLLM:
        def reply(call: ModelCall) -> Any:
            self.asked[name] += 1
            rounds = sum(1 for m in call.messages if m.role == "tool")
            if rounds == 2:
                if name == "c" and self.broken:
                    if self.on_break is not None:
                        self.on_break()
                        raise Killed
                    return RuntimeError("the provider is down")
                return f"{name} is done"
            return Action(name="pay", args={"name": name, "number": rounds})

        return FunctionLLM(reply)

    def parallel(self) -> Net:
        branches = {name: react(self.llm(name)) for name in NAMES}
        return Net({Outer.ALL: ParallelState(branches, on_error="report", join=_strict)})

    def mapped(self) -> Net:
        def reply(call: ModelCall) -> Any:
            name = [m.content for m in call.messages if m.role == "user"][-1]
            return self.llm(name).reply(call)

        state = MapState(lambda _: NAMES, react(FunctionLLM(reply)))
        return Net({Outer.ALL: state})


def _strict(_: Any, branches: Any) -> str:
    for branch in branches:
        if branch.error is not None:
            raise branch.error
    return ", ".join(branch.answer for branch in branches)


@pytest.mark.parametrize("kind", ["parallel", "mapped"])
async def test_one_failed_branch_of_five_costs_one_branch(kind: str) -> None:
    work, journal = Work(), RamJournal()
    memory = MessagesMemory(journal=journal)
    with pytest.raises(RuntimeError, match="provider is down"):
        await Brain(getattr(work, kind)(), memory, work.tools).run("go")
    work.broken = False
    asked = work.asked.copy()
    later = MessagesMemory(journal=journal)
    result = await Brain(getattr(work, kind)(), later, work.tools).resume()
    assert all(f"{name} is done" in result.answer for name in NAMES)
    assert work.done == {f"{name}{number}": 1 for name in NAMES for number in range(2)}
    if kind == "parallel":  # where the others had finished
        assert work.asked - asked == {"c": 1}
    assert not await journal.sessions(below(session_key("default"))), "what branches wrote is gone"


async def test_a_subnet_on_a_fork_continues_where_it_stopped() -> None:
    work, journal = Work(), RamJournal()
    net = Net({Outer.ALL: SubnetState(react(work.llm("c")), fork=True, goal="inner")})
    with pytest.raises(RuntimeError, match="provider is down"):
        await Brain(net, MessagesMemory(journal=journal), work.tools).run("go")
    work.broken = False
    memory = MessagesMemory(journal=journal)
    result = await Brain(net, memory, work.tools).resume()
    assert result.answer == "c is done"
    assert work.done == {"c0": 1, "c1": 1}
    assert work.asked == {"c": 4}, "two calls, one that failed, and that again"


async def interrupted() -> tuple[Work, RamJournal]:
    work, journal = Work(), RamJournal()
    memory = MessagesMemory(journal=journal)
    with pytest.raises(RuntimeError):
        await Brain(work.parallel(), memory, work.tools).run("go")
    return work, journal


async def test_forgetting_reaches_branches_that_were_interrupted() -> None:
    _, journal = await interrupted()
    assert "paid 1" in repr([await journal.read(key) for key in await journal.sessions()])
    assert await MessagesMemory(journal=journal).forget(text="paid 1") > 0
    left = repr([await journal.read(key, history=True) for key in await journal.sessions()])
    assert "paid 1" not in left


async def test_clearing_removes_branches() -> None:
    _, journal = await interrupted()
    await MessagesMemory(journal=journal).clear()
    assert await journal.sessions() == [session_key("default")]


async def test_deleting_a_session_removes_its_branches() -> None:
    _, journal = await interrupted()
    await MessagesMemory(journal=journal, session="default 2").set_goal("another")
    assert await delete_session(journal, "default") > 0
    assert await delete_session(journal, "unknown") == 0
    assert await journal.sessions() == [session_key("default 2")]


async def test_a_new_goal_begins_new_branches() -> None:
    work, journal = await interrupted()
    work.broken = False
    memory = MessagesMemory(journal=journal)
    result = await Brain(work.parallel(), memory, work.tools).run("go again")
    assert result.stop_reason == "done"
    assert {*work.done.values()} == {2}
    assert not await journal.sessions(below(session_key("default")))


class Inner(Enum):
    FIRST = "first"
    NET = "net"
    LAST = "last"


class Writes(State):
    """Keeps a word between steps, or reads it."""

    def __init__(self, target: Inner | None, *, reads: bool = False) -> None:
        self.target, self.reads = target, reads

    async def run(self, memory: Memory) -> AsyncIterator[str]:
        if self.reads:
            yield str(memory.control.scratch.get("word"))
        memory.control.scratch["word"] = "kept"

    async def next_state(self, memory: Memory) -> Inner | None:
        return self.target

    def targets(self) -> tuple[Inner | None, ...]:
        return (self.target,)


async def test_a_net_inside_a_branch_keeps_what_the_branch_wrote() -> None:
    llm = FunctionLLM(lambda _: "done")
    inner = Net(
        {
            Inner.FIRST: Writes(Inner.NET),
            Inner.NET: SubnetState(react(llm), on_done=Inner.LAST, as_thoughts=True),
            Inner.LAST: Writes(None, reads=True),
        }
    )
    net = Net({Outer.ALL: ParallelState({"a": inner})})
    assert "kept" in (await Brain(net).run("go")).answer


async def test_a_call_of_a_net_inside_a_branch_is_not_repeated() -> None:
    store, paid = RamJournal(), list[int]()
    journal = MortalJournal(store)

    @tool
    async def pay() -> str:
        """Pay, and die."""
        paid.append(1)
        journal.die()
        raise Killed

    def net() -> Net:
        def reply(call: ModelCall) -> Any:
            return (
                "done"
                if any(m.role == "tool" for m in call.messages)
                else Action(name="pay", args={})
            )

        branch = Net({Inner.NET: SubnetState(react(FunctionLLM(reply)))})
        return Net({Outer.ALL: ParallelState({"a": branch})})

    with pytest.raises(BaseException):  # noqa: B017, PT011 - alone or in a group
        await Brain(net(), MessagesMemory(journal=journal), [pay]).run("go")
    result = await Brain(net(), MessagesMemory(journal=store), [pay]).resume()
    assert paid == [1]
    assert "done" in result.answer


class Instructed(ParallelState):
    """Tells its branches something first."""

    async def on_enter(self, memory: Memory) -> None:
        await memory.update([Message.user("Answer in French.")])


async def test_a_branch_that_continues_still_knows_what_its_state_wrote_first() -> None:
    work, store = Work(), RamJournal()
    journal = MortalJournal(store)
    work.on_break = journal.die
    llm = work.llm("c")
    net = Net({Outer.ALL: Instructed({"c": react(llm)})})
    with pytest.raises(BaseException):  # noqa: B017, PT011 - alone or in a group
        await Brain(net, MessagesMemory(journal=journal), work.tools).run("go")
    work.broken = False
    memory = MessagesMemory(journal=store)
    await Brain(net, memory, work.tools).resume()
    last = [message.content for message in llm.calls[-1].messages]
    assert last.count("Answer in French.") == 1
    assert work.done == {"c0": 1, "c1": 1}
    told = [message.content for message in await memory.dump()]
    assert told.count("Answer in French.") == 1


async def test_calls_have_the_same_key_when_they_are_repeated() -> None:
    """Also while branches of the same round advance."""
    store, keys = RamJournal(), list[str]()
    journal = MortalJournal(store)

    @tool(idempotent=True)
    async def book(context: ToolContext) -> str:
        """Book."""
        keys.append(context.key)
        if not journal.dead:
            for _ in range(50):
                await anyio.lowlevel.checkpoint()
            journal.die()
            raise Killed
        return "booked"

    helper = Brain("react", llm=FunctionLLM(lambda _: "helped"))

    def brain(journal: Any) -> Brain:
        def reply(call: ModelCall) -> Any:
            if any(m.role == "tool" for m in call.messages):
                return "done"
            return [
                Action(name="book", args={}, id="b"),
                Action(name="ask", args={"task": "help"}, id="a"),
            ]

        tools = [book, helper.as_tool("ask", "Ask.", idempotent=True)]
        return Brain("react", MessagesMemory(journal=journal), tools, llm=FunctionLLM(reply))

    with pytest.raises(BaseException):  # noqa: B017, PT011 - alone or in a group
        await brain(journal).run("go")
    await brain(store).resume()
    assert len(keys) == 2
    assert keys[0] == keys[1]


async def test_a_run_continues_with_its_branches_over_an_earlier_memory() -> None:
    work, store = Work(), RamJournal()
    journal = MortalJournal(store)
    work.on_break = journal.die
    net = Net({Outer.ALL: SubnetState(react(work.llm("c")), fork=True)})
    with pytest.raises(BaseException):  # noqa: B017, PT011 - alone or in a group
        await Brain(net, MessagesMemory(journal=journal), work.tools).run("go")
    work.broken = False
    memory = MessagesMemory(journal=store)
    earlier = await memory.as_of((await memory.steps())[-1])
    assert (await Brain(net, earlier, work.tools).resume()).answer == "c is done"
    assert work.done == {"c0": 1, "c1": 1}
