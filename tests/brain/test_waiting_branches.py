"""Branches and nested brains that wait for a person, and continue where they waited."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable
from enum import Enum
from typing import Any, Literal

import pytest

from agent_brain import (
    Brain,
    Limits,
    Memory,
    Message,
    MessagesMemory,
    State,
    StopReason,
    react,
    tool,
)
from agent_brain.errors import InputNeeded, ResumeError, StateDefinitionError
from agent_brain.memories import (
    LayeredMemory,
    RamJournal,
    SummaryMemory,
    TodoMemory,
    VectorMemory,
    WindowedMemory,
    session_key,
)
from agent_brain.memories.store.session import below
from agent_brain.nets import Branch, Delegate, MapState, Net, ParallelState, SubnetState, debate
from agent_brain.states import ApprovalRequested, InputRequested
from agent_brain.testing import ModelCall
from agent_brain.tools import Action
from tests.nets.models import FunctionLLM
from tests.support.journals import Killed, MortalJournal

pytestmark = [pytest.mark.anyio, pytest.mark.also_on_trio]


class Outer(Enum):
    ALL = "all"
    END = "end"


class Inner(Enum):
    ONLY = "only"


class Shop:
    """Tools that note what they did, and models that call them once each."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()
        self.asked: Counter[str] = Counter()

        @tool(requires_approval=True)
        async def pay(name: str) -> str:
            """Pay."""
            self.done[f"pay {name}"] += 1
            return f"paid {name}"

        @tool
        async def look(name: str) -> str:
            """Look."""
            self.done[f"look {name}"] += 1
            return f"saw {name}"

        @tool
        async def ask(question: str) -> str:
            """Ask a person."""
            self.done[f"ask {question}"] += 1
            raise InputNeeded(question)

        self.tools = [pay, look, ask]

    def llm(self, name: str, *, same_ids: bool = False) -> FunctionLLM:
        """Looks, then pays, then says what it has seen."""

        def reply(call: ModelCall) -> Any:
            self.asked[name] += 1
            results = [m.content for m in call.messages if m.role == "tool"]
            if not results:
                return Action(name="look", args={"name": name}, id=f"look-{name}")
            if len(results) == 1:
                call_id = "pay" if same_ids else f"pay-{name}"
                return Action(name="pay", args={"name": name}, id=call_id)
            return f"{name} {results[-1]}"

        return FunctionLLM(reply)

    def looker(self, name: str) -> FunctionLLM:
        """Looks, and answers."""

        def reply(call: ModelCall) -> Any:
            self.asked[name] += 1
            if any(m.role == "tool" for m in call.messages):
                return f"{name} is done"
            return Action(name="look", args={"name": name}, id=f"look-{name}")

        return FunctionLLM(reply)

    def asker(self, name: str) -> FunctionLLM:
        """Asks a person, and repeats the answer."""

        def reply(call: ModelCall) -> Any:
            self.asked[name] += 1
            results = [m.content for m in call.messages if m.role == "tool"]
            if results:
                return f"{name} heard {results[-1]}"
            return Action(name="ask", args={"question": f"{name}?"}, id=f"ask-{name}")

        return FunctionLLM(reply)


def parallel(branches: dict[str, Any], **options: Any) -> Net:
    return Net({Outer.ALL: ParallelState(branches, **options)})


def mapped(shop: Shop, names: list[str], **options: Any) -> Net:
    def reply(call: ModelCall) -> Any:
        goal = [m.content for m in call.messages if m.role == "user"][-1]
        return shop.llm(goal).reply(call)

    return Net({Outer.ALL: MapState(lambda _: names, react(FunctionLLM(reply)), **options)})


class World:
    """A journal, or one memory in RAM, and brains over it."""

    def __init__(self, make: Callable[..., Memory] | None = None, *, durable: bool) -> None:
        self.store = RamJournal() if durable else None
        self.make = make or MessagesMemory
        self.memory: Memory | None = None
        self.first: Brain | None = None

    def brain(self, net: Any, tools: Any, **options: Any) -> Brain:
        """A new brain as in a new process, or the same one."""
        if self.store is not None:
            self.memory = self.make(journal=self.store)
            return Brain(net, self.memory, tools, **options)
        if self.first is None:
            self.memory = self.make()
            self.first = Brain(net, self.memory, tools, **options)
        self.first.limits = options.get("limits", self.first.limits)
        return self.first

    async def left(self) -> list[str]:
        """What is kept of branches."""
        if self.store is not None:
            return list(await self.store.sessions(below(session_key("default"))))
        kept = self.memory._kept if self.memory is not None else None
        return [] if kept is None else [str(place) for place in kept]


@pytest.fixture(params=["ram", "journal"])
def world(request: pytest.FixtureRequest) -> World:
    return World(durable=request.param == "journal")


def asked(memory: Memory) -> tuple[list[str], dict[str, str]]:
    requests = memory.control.human_requests
    return ([], {}) if requests is None else (requests.approvals, requests.questions)


def seen(names: str, what: str) -> dict[str, int]:
    return {f"{what} {name}": 1 for name in names}


@pytest.mark.parametrize("names", ["a", "ab", "abc"])
@pytest.mark.parametrize("kind", ["parallel", "mapped", "one at a time"])
async def test_branches_wait_and_continue(names: str, kind: str, world: World) -> None:
    shop = Shop()

    def net() -> Net:
        if kind == "parallel":
            return parallel({name: react(shop.llm(name)) for name in names})
        return mapped(shop, [*names], max_concurrency=1 if kind != "mapped" else None)

    brain = world.brain(net(), shop.tools)
    async with brain.stream("go") as run:
        events = [event async for event in run]
    assert run.result.stop_reason is StopReason.APPROVAL
    requests = [event for event in events if isinstance(event, ApprovalRequested)]
    assert len({event.path for event in requests}) == len(names)
    assert sorted(asked(brain.memory)[0]) == [f"pay-{name}" for name in names]
    requested = brain.memory.control.human_requests
    assert requested is not None
    assert sorted(str(call.args["name"]) for call in requested.calls) == [*names]
    assert shop.done == seen(names, "look")
    before = shop.asked.copy()

    later = world.brain(net(), shop.tools)
    result = await later.resume(approve=True)
    assert result.stop_reason is StopReason.DONE
    assert [f"{name} paid {name}" in result.answer for name in names] == [True] * len(names)
    assert shop.done == seen(names, "look") | seen(names, "pay")
    assert shop.asked - before == Counter(names), "one model call each is left"
    assert later.memory.control.human_requests is None
    assert not await world.left()


@pytest.mark.parametrize("kind", ["parallel", "mapped"])
async def test_a_part_of_the_decisions_continues_a_part_of_the_branches(
    kind: str, world: World
) -> None:
    shop = Shop()

    def brain() -> Brain:
        net = mapped(shop, ["a", "b", "c"])
        if kind == "parallel":
            net = parallel({name: react(shop.llm(name)) for name in "abc"})
        return world.brain(net, shop.tools)

    await brain().run("go")
    later = brain()
    async with later.stream_resume(approve=["pay-b"]) as run:
        events = [event async for event in run]
    assert run.result.stop_reason is StopReason.APPROVAL
    assert shop.done == seen("abc", "look") | {"pay b": 1}
    again = [e for e in events if isinstance(e, ApprovalRequested)]
    assert sorted(e.actions[0].id for e in again) == ["pay-a", "pay-c"], "they are asked again"
    assert sorted(asked(later.memory)[0]) == ["pay-a", "pay-c"]
    assert shop.asked == {"a": 2, "b": 3, "c": 2}

    last = brain()
    with pytest.raises(ResumeError, match="No call 'pay-b' waits"):
        await last.resume(approve=["pay-b"])
    with pytest.raises(ResumeError, match=r"'pay-a' \(pay\)"):
        await last.resume()
    result = await last.resume(deny={"pay-a": "no"}, edit={"pay-c": {"name": "x"}})
    assert result.stop_reason is StopReason.DONE
    assert shop.done == seen("abc", "look") | {"pay b": 1, "pay x": 1}
    assert "refused this call: no" in result.answer
    assert shop.asked == {"a": 3, "b": 3, "c": 3}
    assert not await world.left()


async def test_edited_arguments_are_checked_before_anything_runs(world: World) -> None:
    shop = Shop()
    net = parallel({"a": react(shop.llm("a"))})
    await world.brain(net, shop.tools).run("go")
    brain = world.brain(net, shop.tools)
    with pytest.raises(ResumeError, match="edit= for 'pay-a'"):
        await brain.resume(edit={"pay-a": {"name": ["no"]}})
    assert (await brain.resume(approve=True)).stop_reason is StopReason.DONE


async def test_two_branches_may_ask_with_the_same_id(world: World) -> None:
    shop = Shop()

    def brain() -> Brain:
        net = parallel({name: react(shop.llm(name, same_ids=True)) for name in "abc"})
        return world.brain(net, shop.tools)

    first = brain()
    await first.run("go")
    requests = first.memory.control.human_requests
    assert requests is not None
    ids = {str(call.args["name"]): call.id for call in requests.calls}
    assert ids == {"a": "pay", "b": "pay@ALL/b", "c": "pay@ALL/c"}
    second = brain()
    assert (await second.resume(approve=["pay"])).stop_reason is StopReason.APPROVAL
    assert shop.done["pay a"] == 1
    assert asked(second.memory)[0] == ["pay@ALL/b", "pay@ALL/c"]
    third = brain()
    result = await third.resume(approve=[ids["c"]], deny=[ids["b"]])
    assert result.stop_reason is StopReason.DONE
    assert shop.done == seen("abc", "look") | {"pay a": 1, "pay c": 1}


async def test_tools_ask_questions_in_branches(world: World) -> None:
    shop = Shop()

    def brain() -> Brain:
        net = parallel({"a": react(shop.asker("a")), "b": react(shop.asker("b"))})
        return world.brain(net, shop.tools)

    first = brain()
    assert (await first.run("go")).stop_reason is StopReason.INPUT
    assert asked(first.memory)[1] == {"ask-a": "a?", "ask-b": "b?"}
    assert (await brain().resume(input={"ask-b": "Rome"})).stop_reason is StopReason.INPUT
    result = await brain().resume(input="Oslo")
    assert "a heard Oslo" in result.answer
    assert "b heard Rome" in result.answer
    assert shop.done == {"ask a?": 1, "ask b?": 1}


class AskName(State):
    """Asks for a name."""

    async def run(self, memory: Memory) -> AsyncIterator[Any]:
        if memory.control.input is None:
            yield InputRequested("Your name?")
        else:
            yield f"Hello {memory.control.input}"

    async def next_state(self, memory: Memory) -> Literal[None]:
        return None


async def test_states_ask_in_branches_by_the_names_of_these(world: World) -> None:
    net = parallel({"a": Net({Inner.ONLY: AskName()}), "b": Net({Inner.ONLY: AskName()})})
    brain = world.brain(net, [])
    async with brain.stream("go") as run:
        ids = [event.id async for event in run if isinstance(event, InputRequested)]
    assert run.result.stop_reason is StopReason.INPUT
    assert sorted(ids) == ["ALL/a", "ALL/b"] == [*asked(brain.memory)[1]]
    with pytest.raises(ResumeError, match="several questions wait"):
        await world.brain(net, []).resume(input="Ann")
    result = await world.brain(net, []).resume(input={"ALL/a": "Ann", "ALL/b": "Bob"})
    assert result.answer == "a: Hello Ann\n\nb: Hello Bob"


async def test_a_branch_that_is_not_answered_is_not_run_again(world: World) -> None:
    ran: list[str] = []

    class Slow(AskName):
        async def run(self, memory: Memory) -> AsyncIterator[Any]:
            ran.append(memory.control.branch)
            async for item in super().run(memory):
                yield item

    net = parallel({"a": Net({Inner.ONLY: Slow()}), "b": Net({Inner.ONLY: Slow()})})
    await world.brain(net, []).run("go")
    assert (await world.brain(net, []).resume(input={"ALL/a": "Ann"})).stop_reason == "input"
    assert sorted(ran) == ["ALL/a@0", "ALL/a@0", "ALL/b@0"]


def deep(shop: Shop, kind: str) -> Any:
    """A branch in a branch, a branch in a nested brain, and a nested brain in a branch."""
    inner = Net({Inner.ONLY: ParallelState({"x": react(shop.llm("x")), "y": react(shop.llm("y"))})})
    if kind == "branch in branch":
        return parallel({"a": inner, "b": react(shop.llm("b"))}), shop.tools
    helper = Brain(inner, MessagesMemory(shop.tools)).as_tool("helper", "Help.")
    caller = react(calls_once("helper"))
    if kind == "branch in nested brain":
        return caller, [helper]
    return parallel({"a": caller, "b": react(shop.llm("b"))}), [*shop.tools, helper]


def calls_once(*names: str) -> FunctionLLM:
    """Calls brains once each, then repeats their answers."""

    def reply(call: ModelCall) -> Any:
        results = [m.content for m in call.messages if m.role == "tool"]
        if results:
            return "; ".join(results)
        return [
            Action(name=name, args={"task": f"task {at}"}, id=f"{name}-{at}")
            for at, name in enumerate(names)
        ]

    return FunctionLLM(reply)


@pytest.mark.parametrize(
    "kind", ["branch in branch", "branch in nested brain", "nested brain in branch"]
)
async def test_waits_at_any_depth_reach_the_run(kind: str, world: World) -> None:
    shop = Shop()

    def brain() -> Brain:
        return world.brain(*deep(shop, kind))

    first = brain()
    assert (await first.run("go")).stop_reason is StopReason.APPROVAL
    names = "xy" if kind == "branch in nested brain" else "bxy"
    assert sorted(asked(first.memory)[0]) == [f"pay-{name}" for name in names]
    second = brain()
    assert (await second.resume(approve=["pay-x"])).stop_reason is StopReason.APPROVAL
    assert shop.done == seen(names, "look") | {"pay x": 1}
    assert sorted(asked(second.memory)[0]) == [f"pay-{name}" for name in names if name != "x"]
    result = await brain().resume(approve=True)
    assert result.stop_reason is StopReason.DONE
    assert all(f"{name} paid {name}" in result.answer for name in names)
    assert shop.done == seen(names, "look") | seen(names, "pay")
    assert shop.asked == dict.fromkeys(names, 3)
    assert not await world.left()


@pytest.mark.parametrize("count", [1, 2, 3])
async def test_nested_brains_wait_and_continue(count: int, world: World) -> None:
    shop = Shop()

    def brain() -> Brain:
        names = "abc"[:count]
        experts = [
            Brain(react(shop.llm(name)), tools=shop.tools).as_tool(name, "Help.") for name in names
        ]
        quick = Brain(react(shop.looker("q")), tools=shop.tools).as_tool("q", "Help.")
        llm = calls_once(*names[:1], "q", *names[1:])
        return world.brain(react(llm), [*experts, quick])

    names = "abc"[:count]
    first = brain()
    assert (await first.run("go")).stop_reason is StopReason.APPROVAL
    assert sorted(asked(first.memory)[0]) == [f"pay-{name}" for name in names]
    result = await brain().resume(approve=True)
    told = [*(f"{name} paid {name}" for name in names)]
    told.insert(1, "q is done")
    assert result.answer == "; ".join(told)
    assert shop.done == seen(names + "q", "look") | seen(names, "pay")
    assert shop.asked == dict.fromkeys(names, 3) | {"q": 2}
    assert not await world.left()


async def test_two_calls_of_one_brain_wait_each_for_itself(world: World) -> None:
    shop = Shop()

    def brain() -> Brain:
        def reply(call: ModelCall) -> Any:
            goal = [m.content for m in call.messages if m.role == "user"][-1]
            return shop.llm(goal).reply(call)

        expert = Brain(react(FunctionLLM(reply)), tools=shop.tools).as_tool("expert", "Help.")
        return world.brain(react(calls_once("expert", "expert")), [expert])

    first = brain()
    await first.run("go")
    assert asked(first.memory)[0] == ["pay-task 0", "pay-task 1"]
    assert (await brain().resume(approve=["pay-task 1"])).stop_reason is StopReason.APPROVAL
    result = await brain().resume(approve=["pay-task 0"])
    assert result.answer == "task 0 paid task 0; task 1 paid task 1"
    assert shop.done == {f"{what} task {n}": 1 for what in ("look", "pay") for n in (0, 1)}


async def test_a_nested_brain_and_its_caller_may_ask_with_the_same_id(world: World) -> None:
    """A decision about the call inside is none about the call of the brain."""
    shop = Shop()

    def brain() -> Brain:
        def reply(call: ModelCall) -> Any:
            if any(m.role == "tool" for m in call.messages):
                return "done"
            return Action(name="pay", args={"name": "a"}, id="expert-0")

        inner = Brain(react(FunctionLLM(reply)), tools=shop.tools)
        expert = inner.as_tool("expert", "Help.", requires_approval=True)
        return world.brain(react(calls_once("expert")), [expert])

    first = brain()
    await first.run("go")
    assert asked(first.memory)[0] == ["expert-0"]
    second = brain()
    assert (await second.resume(approve=True)).stop_reason is StopReason.APPROVAL
    [inside] = asked(second.memory)[0]
    assert inside != "expert-0"
    result = await brain().resume(deny={inside: "no"})
    assert (result.answer, shop.done) == ("done", {})


async def test_a_subnet_on_a_fork_waits(world: World) -> None:
    shop = Shop()
    net = Net({Outer.ALL: SubnetState(react(shop.llm("a")), fork=True, goal="inner")})
    await world.brain(net, shop.tools).run("go")
    result = await world.brain(net, shop.tools).resume(approve=True)
    assert (result.answer, shop.asked) == ("a paid a", {"a": 3})


async def test_the_first_branch_that_completes_ends_those_that_wait(world: World) -> None:
    shop = Shop()
    net = parallel(
        {"a": react(shop.llm("a")), "b": react(shop.llm("b")), "c": react(shop.looker("c"))},
        until="first",
    )
    brain = world.brain(net, shop.tools)
    result = await brain.run("go")
    assert (result.stop_reason, result.answer) == (StopReason.DONE, "c is done")
    assert brain.memory.control.human_requests is None
    assert not await world.left()


async def test_if_no_branch_has_completed_the_run_waits_for_the_first(world: World) -> None:
    shop = Shop()
    net = parallel({name: react(shop.llm(name)) for name in "ab"}, until="first")
    await world.brain(net, shop.tools).run("go")
    result = await world.brain(net, shop.tools).resume(approve=["pay-b"])
    assert (result.stop_reason, result.answer) == (StopReason.DONE, "b paid b")
    assert shop.done == {"look a": 1, "look b": 1, "pay b": 1}
    assert not await world.left()


def failing(shop: Shop) -> FunctionLLM:
    return FunctionLLM(lambda _: shop.done.update(["failed"]) or RuntimeError("down"))


async def test_an_error_ends_the_run_and_nothing_waits(world: World) -> None:
    shop = Shop()
    net = mapped(shop, ["a"])
    bad = parallel({"a": react(shop.llm("a")), "b": react(waits_for_payment(shop))})
    brain = world.brain(bad, shop.tools)
    with pytest.raises(RuntimeError, match="down"):
        await brain.run("go")
    assert brain.memory.control.human_requests is None
    assert brain.memory.control.status == "ended"
    del net


def waits_for_payment(shop: Shop) -> FunctionLLM:
    """Fails once the other branch waits."""

    def reply(call: ModelCall) -> Any:
        results = [m for m in call.messages if m.role == "tool"]
        if len(results) < 8:
            return Action(name="look", args={"name": "b"}, id=f"b-{len(results)}")
        return RuntimeError("down")

    return FunctionLLM(reply)


async def test_a_run_that_failed_asks_again_when_it_is_resumed(world: World) -> None:
    shop, broken = Shop(), [True]

    def brain() -> Brain:
        bad = waits_for_payment(shop)

        def reply(call: ModelCall) -> Any:
            given = bad.reply(call)
            return given if isinstance(given, Action) or broken else "b is done"

        net = parallel({"a": react(shop.llm("a")), "b": react(FunctionLLM(reply))})
        return world.brain(net, shop.tools)

    with pytest.raises(RuntimeError, match="down"):
        await brain().run("go")
    broken.clear()
    later = brain()
    assert (await later.resume()).stop_reason is StopReason.APPROVAL
    assert asked(later.memory)[0] == ["pay-a"]
    result = await brain().resume(approve=True)
    assert result.answer == "a: a paid a\n\nb: b is done"
    assert shop.asked["a"] == 3


async def test_a_limit_that_another_branch_reaches_comes_first(world: World) -> None:
    shop = Shop()

    def brain(steps: int) -> Brain:
        net = parallel({"a": react(shop.llm("a")), "b": react(waits_for_payment(shop))})
        return world.brain(net, shop.tools, limits=Limits(max_steps=steps))

    first = brain(10)
    assert (await first.run("go")).stop_reason is StopReason.MAX_STEPS
    assert first.memory.control.human_requests is None
    later = brain(200)
    with pytest.raises(RuntimeError, match="down"):
        await later.resume()
    assert shop.done["look a"] == 1


async def test_a_limit_ends_the_call_of_a_nested_brain_that_waits(world: World) -> None:
    shop = Shop()

    def brain(steps: int) -> Brain:
        waits = Brain(react(shop.llm("a")), tools=shop.tools).as_tool("waits", "Help.")
        runs = Brain(react(waits_for_payment(shop)), tools=shop.tools).as_tool("runs", "Help.")
        limits = Limits(max_steps=steps)
        return world.brain(react(calls_once("waits", "runs")), [waits, runs], limits=limits)

    first = brain(12)
    assert (await first.run("go")).stop_reason is StopReason.MAX_STEPS
    told = [m.content for m in await first.memory.dump() if m.role == "tool"]
    assert "may or may not have taken effect" in told[0]
    assert "was stopped early: max_steps" in told[1]
    assert (await brain(100).resume()).stop_reason is StopReason.DONE
    assert not await world.left()


async def test_a_new_goal_drops_what_waits(world: World) -> None:
    shop = Shop()
    asks = [True]

    def brain() -> Brain:
        def reply(call: ModelCall) -> Any:
            if call.messages[-1].content == "another":
                return "well"
            return calls_once("expert").reply(call)

        expert = Brain(react(shop.llm("a")), tools=shop.tools).as_tool("expert", "Help.")
        return world.brain(react(FunctionLLM(reply)), [expert])

    await brain().run("go")
    assert await world.left()
    asks.clear()
    later = brain()
    result = await later.run("another")
    assert (result.stop_reason, result.answer) == (StopReason.DONE, "well")
    told = [m.content for m in await later.memory.dump() if m.role == "tool"]
    assert "may or may not have taken effect" in told[0]
    assert not await world.left()


async def test_leaving_at_the_question_of_a_branch_leaves_the_run_waiting(world: World) -> None:
    shop = Shop()
    net = parallel({"a": react(shop.llm("a"))})
    async with world.brain(net, shop.tools).stream("go") as run:
        async for event in run:
            if isinstance(event, ApprovalRequested):
                break
    assert run.result.stop_reason is StopReason.APPROVAL
    result = await world.brain(net, shop.tools).resume(approve=True)
    assert result.stop_reason is StopReason.DONE
    assert shop.asked == {"a": 3}


async def test_leaving_while_another_branch_runs_cancels_the_run(world: World) -> None:
    shop = Shop()
    net = parallel({"a": react(shop.llm("a")), "b": react(waits_for_payment(shop))})
    async with world.brain(net, shop.tools).stream("go") as run:
        async for event in run:
            if isinstance(event, ApprovalRequested):
                break
    assert run.result.stop_reason is StopReason.CANCELLED


async def test_stop_and_cancel_leave_what_waits(world: World) -> None:
    shop = Shop()

    def brain() -> Brain:
        return world.brain(parallel({"a": react(shop.llm("a"))}), shop.tools)

    async with brain().stream("go") as run:
        async for event in run:
            if isinstance(event, ApprovalRequested):
                run.stop()
    assert run.result.stop_reason is StopReason.APPROVAL
    async with brain().stream_resume(approve=True) as run:
        async for event in run:
            if event.kind == "action_finished":
                run.cancel()
    assert run.result.stop_reason is StopReason.CANCELLED
    assert shop.done == {"look a": 1, "pay a": 1}


class OwnFork(State):
    """Delegates to a net on a plain fork."""

    def __init__(self, net: Net) -> None:
        self.net = net

    async def run(self, memory: Memory) -> AsyncIterator[Any]:
        async with await memory.fork() as fork:
            yield Delegate([Branch("inner", self.net, fork)])

    async def next_state(self, memory: Memory) -> Literal[None]:
        return None


async def test_a_plain_fork_cannot_wait(world: World) -> None:
    shop = Shop()
    with pytest.raises(StateDefinitionError, match=r"memory\.branch\(name\)"):
        await world.brain(Net({Outer.ALL: OwnFork(Net({Inner.ONLY: AskName()}))}), []).run("go")
    world.first = None
    brain = world.brain(Net({Outer.ALL: OwnFork(react(shop.llm("a")))}), shop.tools)
    result = await brain.run("go")
    assert result.stop_reason is StopReason.DONE
    assert "cannot be asked for here" in result.answer


async def test_a_fork_of_a_branch_cannot_wait(world: World) -> None:
    inner = Net({Inner.ONLY: OwnFork(Net({Inner.ONLY: AskName()}))})
    with pytest.raises(StateDefinitionError, match=r"memory\.branch\(name\)"):
        await world.brain(parallel({"a": inner}), []).run("go")


async def test_a_copy_of_a_waiting_run_without_its_branches_is_refused() -> None:
    shop, memory = Shop(), MessagesMemory()
    net = parallel({"a": react(shop.llm("a"))})
    await Brain(net, memory, shop.tools).run("go")
    elsewhere = MessagesMemory()
    await elsewhere.restore(await memory.snapshot())
    with pytest.raises(ResumeError, match="branches that this memory does not have"):
        await Brain(net, elsewhere, shop.tools).resume(approve=True)
    assert shop.done == {"look a": 1}
    assert (await Brain(net, memory, shop.tools).resume(approve=True)).stop_reason == "done"


MEMORIES: dict[str, Callable[..., Memory]] = {
    "windowed": lambda **place: WindowedMemory(max_messages=8, **place),
    "summary": lambda **place: SummaryMemory(max_messages=8, **place),
    "vector": VectorMemory,
    "todo": lambda **place: TodoMemory(MessagesMemory(**place)),
    "layered": lambda **place: LayeredMemory(
        WindowedMemory(max_messages=8, **place),
        MessagesMemory(**(place | {"session": "long"} if place else {})),
    ),
}


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("name", MEMORIES)
async def test_branches_of_every_memory_wait(name: str, durable: bool) -> None:
    shop, world = Shop(), World(MEMORIES[name], durable=durable)

    def brain() -> Brain:
        return world.brain(parallel({n: react(shop.llm(n)) for n in "ab"}), shop.tools)

    assert (await brain().run("go")).stop_reason is StopReason.APPROVAL
    assert (await brain().resume(approve=["pay-b"])).stop_reason is StopReason.APPROVAL
    result = await brain().resume(approve=True)
    assert result.answer == "a: a paid a\n\nb: b paid b"
    assert shop.done == seen("ab", "look") | seen("ab", "pay")
    assert shop.asked == {"a": 3, "b": 3}
    assert not await world.left()


async def test_personas_of_a_debate_wait(world: World) -> None:
    shop = Shop()

    def brain() -> Brain:
        net = debate(
            FunctionLLM(lambda _: "So be it."),
            personas={name: react(shop.llm(name)) for name in "ab"},
            rounds=1,
        )
        return world.brain(net, shop.tools)

    assert (await brain().run("go")).stop_reason is StopReason.APPROVAL
    assert (await brain().resume(approve=["pay-a"])).stop_reason is StopReason.APPROVAL
    result = await brain().resume(approve=True)
    assert (result.stop_reason, result.answer) == (StopReason.DONE, "So be it.")
    assert shop.asked == {"a": 3, "b": 3}


async def test_forgetting_a_call_that_a_branch_waits_with_ends_the_run(world: World) -> None:
    shop = Shop()

    def brain() -> Brain:
        return world.brain(parallel({n: react(shop.llm(n)) for n in ("ann", "bob")}), shop.tools)

    await brain().run("go")
    memory = brain().memory
    assert isinstance(memory, MessagesMemory)
    await memory.open()
    assert await memory.forget(text="ann") > 0
    assert memory.control.human_requests is None
    with pytest.raises(ResumeError, match="was taken away"):
        await brain().resume(approve=True)
    assert not await world.left()
    if world.store is not None:
        left = [await world.store.read(key, history=True) for key in await world.store.sessions()]
        assert "ann" not in repr(left)


async def test_forgetting_what_a_nested_brain_has_said_ends_the_run(world: World) -> None:
    shop = Shop()

    def brain() -> Brain:
        expert = Brain(react(shop.llm("ann")), SummaryMemory(shop.tools)).as_tool("expert", "Help.")
        return world.brain(react(calls_once("expert")), [expert])

    await brain().run("go")
    memory = brain().memory
    assert isinstance(memory, MessagesMemory)
    await memory.open()
    assert await memory.forget(text="saw ann") > 0
    with pytest.raises(ResumeError, match="was taken away"):
        await brain().resume(approve=True)
    assert not await world.left()


async def test_forgetting_something_else_leaves_the_run_waiting(world: World) -> None:
    shop = Shop()
    net = parallel({"a": react(shop.llm("a"))})
    memory = world.brain(net, shop.tools).memory
    assert isinstance(memory, MessagesMemory)
    await memory.update([Message.user("a secret", id="secret")])
    await world.brain(net, shop.tools).run("go")
    memory = world.brain(net, shop.tools).memory
    assert isinstance(memory, MessagesMemory)
    await memory.open()
    assert await memory.forget(text="secret") > 0
    assert asked(memory)[0] == ["pay-a"]
    assert (await world.brain(net, shop.tools).resume(approve=True)).stop_reason == "done"


async def test_clearing_drops_what_waits(world: World) -> None:
    shop = Shop()
    net = parallel({"a": react(shop.llm("a"))})
    await world.brain(net, shop.tools).run("go")
    memory = world.brain(net, shop.tools).memory
    assert isinstance(memory, MessagesMemory)
    await memory.clear()
    assert not await world.left()
    with pytest.raises(ResumeError, match="was taken away"):
        await world.brain(net, shop.tools).resume(approve=True)


@pytest.mark.parametrize("where", ["branch", "nested"])
async def test_a_person_decides_about_a_call_in_doubt_in_a_branch(where: str) -> None:
    store, paid = RamJournal(), list[int]()
    journals: list[MortalJournal] = []

    @tool
    async def pay() -> str:
        """Pay, and die the first time."""
        paid.append(1)
        if len(paid) == 1:
            journals[-1].die()
            raise Killed
        return "paid"

    def brain() -> Brain:
        def reply(call: ModelCall) -> Any:
            if any(m.role == "tool" for m in call.messages):
                return call.messages[-1].content
            return Action(name="pay", id="pay-1")

        journals.append(MortalJournal(store))
        memory, net = MessagesMemory(journal=journals[-1]), react(FunctionLLM(reply))
        if where == "branch":
            return Brain(parallel({"a": net}), memory, [pay], on_uncertain="pause")
        helper = Brain(net, tools=[pay]).as_tool("helper", "Help.")
        return Brain(react(calls_once("helper")), memory, [helper], on_uncertain="pause")

    with pytest.raises(BaseException):  # noqa: B017, PT011 - alone or in a group
        await brain().run("go")
    waits = brain()
    assert (await waits.resume()).stop_reason is StopReason.APPROVAL
    requests = waits.memory.control.human_requests
    assert requests is not None
    assert requests.uncertain == requests.approvals == ["pay-1"]
    assert paid == [1]
    result = await brain().resume(approve=True)
    assert (result.stop_reason, paid) == (StopReason.DONE, [1, 1])


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("name", MEMORIES)
async def test_nested_brains_with_every_memory_wait(name: str) -> None:
    shop, world = Shop(), World(durable=True)

    def brain() -> Brain:
        inner = Brain(react(shop.llm("a")), MEMORIES[name](), shop.tools)
        return world.brain(react(calls_once("expert")), [inner.as_tool("expert", "Help.")])

    assert (await brain().run("go")).stop_reason is StopReason.APPROVAL
    assert await world.left()
    assert (await brain().resume(approve=True)).answer == "a paid a"
    assert shop.done == {"look a": 1, "pay a": 1}
    assert shop.asked == {"a": 3}
    assert not await world.left()


class FourMethods(Memory):
    """A memory of a user's own."""

    def __init__(self, tools: Any = ()) -> None:
        super().__init__(tools)
        self.goals: list[Message] = []
        self.held: list[Message] = []

    async def set_goal(self, goal: str | Message) -> None:
        self.held += self.goals
        self.goals = [goal if isinstance(goal, Message) else Message.user(goal)]

    async def update(self, messages: list[Message]) -> None:
        known = {message.id for message in self.held}
        self.held += [message for message in messages if message.id not in known]

    async def goal(self) -> list[Message]:
        return [*self.goals]

    async def dump(self) -> list[Message]:
        return [*self.held]


@pytest.mark.parametrize("nested", [False, True])
async def test_a_memory_of_ones_own_keeps_its_branches(nested: bool) -> None:
    shop = Shop()
    net, tools = parallel({n: react(shop.llm(n)) for n in "ab"}), shop.tools
    if nested:
        helper = Brain(net, FourMethods(shop.tools)).as_tool("helper", "Help.")
        net, tools = react(calls_once("helper")), [helper]  # type: ignore[list-item]
    brain = Brain(net, FourMethods(), tools)
    assert (await brain.run("go")).stop_reason is StopReason.APPROVAL
    assert (await brain.resume(approve=["pay-b"])).stop_reason is StopReason.APPROVAL
    assert (await brain.resume(approve=True)).stop_reason is StopReason.DONE
    assert shop.done == seen("ab", "look") | seen("ab", "pay")
    assert shop.asked == {"a": 3, "b": 3}


async def test_a_nested_brain_that_the_journal_cannot_hold_is_a_call_in_doubt() -> None:
    store, ran = RamJournal(), list[int]()
    journals: list[MortalJournal] = []

    @tool
    async def look() -> str:
        """Look, and die."""
        ran.append(1)
        journals[-1].die()
        raise Killed

    def brain() -> Brain:
        journals.append(MortalJournal(store))
        inner = Brain(react(FunctionLLM(lambda _: Action(name="look"))), FourMethods([look]))
        helper = inner.as_tool("helper", "Help.")
        return Brain(react(calls_once("helper")), MessagesMemory(journal=journals[-1]), [helper])

    with pytest.raises(BaseException):  # noqa: B017, PT011 - alone or in a group
        await brain().run("go")
    assert "may or may not have taken effect" in (await brain().resume()).answer
    assert ran == [1]
