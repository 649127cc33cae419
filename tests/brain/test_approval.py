"""Human approval and input: the run waits in its memory until it is resumed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest

from agent_brain import Brain, Limits, Memory, MessagesMemory, State, StopReason, react, tool
from agent_brain.errors import InputNeeded, ResumeError
from agent_brain.human_input import Decisions
from agent_brain.memories import Message, RamJournal, Role, Snapshot
from agent_brain.memories.control import Control
from agent_brain.memories.runs.human_requests import Decision, HumanRequests
from agent_brain.nets import Branch, Delegate, Net, ParallelState, SubnetState
from agent_brain.states import (
    ActionFinished,
    ApprovalRequested,
    InputRequested,
    RunFinished,
    ToolProgress,
)
from agent_brain.testing import ScriptedLLM, run_state
from agent_brain.tools import Action, BaseTool, ToolContext
from tests.brain.nets import Say, Steps, add, single

pytestmark = pytest.mark.anyio


class Shop:
    """Tools that note what they did."""

    def __init__(self) -> None:
        self.paid: list[int] = []
        self.asked = 0

        @tool(requires_approval=True)
        async def pay(amount: int) -> str:
            """Pay."""
            self.paid.append(amount)
            return f"paid {amount}"

        @tool
        async def ask(question: str) -> str:
            """Ask a person."""
            self.asked += 1
            raise InputNeeded(question)

        self.tools = [pay, ask, add]


def pay(amount: int, call_id: str) -> Action:
    return Action(name="pay", args={"amount": amount}, id=call_id)


def ask(question: str, call_id: str) -> Action:
    return Action(name="ask", args={"question": question}, id=call_id)


SUM = Action(name="add", args={"a": 1, "b": 2}, id="sum")


def brain_for(shop: Shop, *turns: Any, **options: Any) -> tuple[Brain, ScriptedLLM]:
    llm = ScriptedLLM(turns)
    return Brain(react(llm), tools=shop.tools, **options), llm


async def results(memory: Memory) -> list[str]:
    return [m.content for m in await memory.dump() if m.role is Role.TOOL]


async def test_nothing_of_a_round_runs_until_all_of_it_is_decided():
    shop = Shop()
    brain, llm = brain_for(shop, [SUM, pay(5, "a"), pay(7, "b")], ["done"])
    async with brain.stream("go") as run:
        events = [event async for event in run]
    [asked] = [e for e in events if isinstance(e, ApprovalRequested)]
    assert [a.id for a in asked.actions] == ["a", "b"]
    assert isinstance(events[-1], RunFinished)
    assert run.result.stop_reason is StopReason.APPROVAL
    assert (brain.memory.control.status, await results(brain.memory)) == ("waiting", [])

    result = await brain.resume(approve=["a"])
    assert (result.stop_reason, shop.paid) == (StopReason.APPROVAL, [])
    result = await brain.resume(approve=True)
    assert (result.stop_reason, sorted(shop.paid)) == (StopReason.DONE, [5, 7])
    assert await results(brain.memory) == ["3", "paid 5", "paid 7"]
    llm.assert_complete()


async def test_a_refusal_and_its_reason_go_to_the_model():
    shop = Shop()
    brain, llm = brain_for(shop, [pay(5, "a"), pay(6, "b")], ["well"])
    await brain.run("go")
    await brain.resume(deny={"a": "too dear"}, approve="b")
    refused = llm.calls[-1].messages[-2]
    assert refused.content == "A person refused this call: too dear: it was not run"
    assert (refused.is_error, shop.paid) == (True, [6])
    assert refused.metadata["decision"] == {"approved": False, "reason": "too dear", "args": None}


async def test_edited_arguments_are_run_recorded_and_reported():
    shop = Shop()
    brain, _ = brain_for(shop, [pay(500, "a")], ["well"])
    await brain.run("go")
    async with brain.stream_resume(edit={"a": {"amount": 5}}) as run:
        events = [event async for event in run]
    [finished] = [e for e in events if isinstance(e, ActionFinished)]
    assert (shop.paid, finished.action.args) == ([5], {"amount": 5})
    assert finished.result.metadata["decision"]["args"] == {"amount": 5}  # type: ignore[index, call-overload]
    assert "changed the arguments" in finished.result.content


async def test_a_predicate_decides_by_the_arguments_and_asks_when_it_fails():
    done = []

    def expensive(args: dict[str, Any]) -> bool:
        return args["amount"] > 10 or args["note"] == args["missing"]

    @tool(requires_approval=expensive)
    async def spend(amount: int, note: str = "") -> str:
        """Spend."""
        done.append(amount)
        return "spent"

    assert await spend.needs_approval({"amount": "11"})
    assert await spend.needs_approval({"amount": 1})  # the function raised
    assert not await spend.needs_approval({"amount": "many"})  # it will not run

    cheap = tool(requires_approval=lambda args: args["amount"] > 10)(spend.function)
    llm = ScriptedLLM([[Action(name="spend", args={"amount": 3})], "ok"])
    result = await Brain(react(llm), tools=[cheap]).run("go")
    assert (result.stop_reason, done) == (StopReason.DONE, [3])


@pytest.mark.parametrize(
    "decisions, message",
    [
        ({}, r"waits for a person: pass approve=, deny= or edit= for 'a' \(pay\)"),
        ({"approve": ["zz"]}, "No call 'zz' waits for approval"),
        ({"deny": {"zz": "no"}}, "No call 'zz'"),
        ({"edit": {"zz": {}}}, "No call 'zz'"),
        ({"edit": {"a": {"amount": object()}}}, "no arguments for 'a' that JSON can carry"),
        ({"approve": ["a"], "deny": ["a"]}, "two decisions about the call 'a'"),
        ({"approve": 3}, "3 does not name calls"),
        ({"input": "yes"}, "no question waits"),
        ({"input": {"q": "yes"}}, "No question 'q'"),
    ],
)
async def test_decisions_that_do_not_fit_are_refused_and_the_run_keeps_waiting(decisions, message):
    shop = Shop()
    brain, _ = brain_for(shop, [pay(5, "a")], ["done"])
    await brain.run("go")
    before = await brain.memory.snapshot()
    with pytest.raises(ResumeError, match=message):
        await brain.resume(**decisions)
    assert await brain.memory.snapshot() == before
    assert (await brain.resume(approve=True)).stop_reason is StopReason.DONE


async def test_decisions_for_a_run_that_does_not_wait_are_refused():
    brain, _ = brain_for(Shop(), RuntimeError("down"), ["done"])
    with pytest.raises(RuntimeError):
        await brain.run("go")
    with pytest.raises(ResumeError, match="does not wait for a person"):
        await brain.resume(approve=True)
    assert (await brain.resume()).answer == "done"


async def test_a_new_goal_closes_the_calls_that_wait():
    shop = Shop()
    brain, llm = brain_for(shop, [ask("who?", "q"), SUM], ["never mind"])
    await brain.run("go")
    assert (await brain.run("something else")).answer == "never mind"
    assert await results(brain.memory) == ["The call was not run: a new goal was set first", "3"]
    assert brain.memory.control.human_requests is None
    llm.assert_complete()


async def test_leaving_the_stream_at_the_question_leaves_the_run_waiting():
    shop = Shop()
    brain, _ = brain_for(shop, [pay(5, "a")], ["done"])
    async with brain.stream("go") as run:
        async for event in run:
            if isinstance(event, ApprovalRequested):
                break
    assert run.result.stop_reason is StopReason.APPROVAL
    assert (await brain.resume(approve=True)).answer == "done"


async def test_an_answer_becomes_the_result_and_what_was_done_is_kept():
    shop = Shop()
    brain, llm = brain_for(shop, [SUM, ask("Which city?", "q"), ask("Who?", "w")], ["done"])
    async with brain.stream("go") as run:
        events = [event async for event in run]
    asked = [(e.id, e.prompt) for e in events if isinstance(e, InputRequested)]
    assert asked == [("q", "Which city?"), ("w", "Who?")]
    assert run.result.stop_reason is StopReason.INPUT
    with pytest.raises(ResumeError, match="several questions wait"):
        await brain.resume(input="Rome")
    finished = [e.action.id for e in events if isinstance(e, ActionFinished)]
    async with brain.stream_resume(input={"w": "Ann"}) as run:
        finished += [e.action.id async for e in run if isinstance(e, ActionFinished)]
    assert run.result.stop_reason is StopReason.INPUT
    async with brain.stream_resume(input="Rome") as run:
        finished += [e.action.id async for e in run if isinstance(e, ActionFinished)]
    assert finished == ["sum", "w", "q"]
    assert await results(brain.memory) == ["3", "Rome", "Ann"]
    assert (brain.memory.control.spent.tool_calls, shop.asked) == (3, 2)
    llm.assert_complete()


class Asks(State):
    """Asks a person itself."""

    async def run(self, memory: Memory) -> AsyncIterator[Any]:
        if memory.control.input is None:
            yield InputRequested("Your name?")
        else:
            yield f"Hello {memory.control.input}"

    async def next_state(self, memory: Memory) -> Literal[None]:
        return None


@pytest.mark.parametrize("nested", [False, True])
async def test_a_state_gets_the_answer_through_control(nested):
    net = single(Asks())
    if nested:
        net = Net({Steps.ONE: SubnetState(net, on_done=Steps.TWO), Steps.TWO: Say("!")})
    brain = Brain(net)
    assert (await brain.run("go")).stop_reason is StopReason.INPUT
    said = []
    async with brain.stream_resume(input="Ann") as run:
        said = [e.text async for e in run if hasattr(e, "text")]
    assert said == ["Hello Ann", *(["!"] if nested else [])]
    assert brain.memory.control.human_requests is None


async def test_a_wait_inside_a_subnet_continues_inside():
    shop = Shop()
    llm = ScriptedLLM([[pay(5, "a")], ["inner done"]])
    outer = Net({Steps.ONE: SubnetState(react(llm), on_done=Steps.TWO), Steps.TWO: Say("end")})
    brain = Brain(outer, tools=shop.tools)
    assert (await brain.run("go")).stop_reason is StopReason.APPROVAL
    assert (await brain.resume(approve=True)).answer == "end"
    assert shop.paid == [5]
    llm.assert_complete()


async def test_nobody_is_asked_from_a_memory_that_is_not_found_again():
    shop = Shop()
    llm = ScriptedLLM([[pay(5, "a"), ask("who?", "q")], ["then not"]])
    brain = Brain(single(OwnMemory(react(llm), tuple(shop.tools))))
    result = await brain.run("go")
    assert (result.stop_reason, shop.paid) == (StopReason.DONE, [])
    told = [m.content for m in llm.calls[1].messages if m.role is Role.TOOL]
    assert "cannot be asked for here" in told[0]
    assert "nobody can be asked here" in told[1]


ELSEWHERE = """
import sys, anyio
from agent_brain import Brain, MessagesMemory, react, tool
from agent_brain.memories import Snapshot
from agent_brain.memories import SQLiteJournal
from agent_brain.testing import ScriptedLLM, run_state

@tool(requires_approval=True)
async def pay(amount: int) -> str:
    "Pay."
    return f"paid {amount}"

async def main() -> None:
    how, where = sys.argv[1:]
    journal = SQLiteJournal(where) if how == "journal" else None
    async with MessagesMemory([pay], journal=journal) as memory:
        if how == "snapshot":
            await memory.restore(Snapshot.from_json(open(where).read()))
        result = await Brain(react(ScriptedLLM(["done"])), memory).resume(approve=["a"])
        print(result.stop_reason, [m.content for m in result.messages])
    if journal is not None:
        await journal.aclose()

anyio.run(main)
"""


@pytest.mark.parametrize("how", ["snapshot", "journal"])
async def test_a_wait_is_resumed_in_another_process(how: str, tmp_path: Path):
    where = tmp_path / "kept"
    memory = MessagesMemory(Shop().tools, journal=str(where) if how == "journal" else None)
    result = await Brain(react(ScriptedLLM([[pay(5, "a")]])), memory).run("go")
    assert result.stop_reason is StopReason.APPROVAL
    if how == "snapshot":
        where.write_text((await memory.snapshot()).model_dump_json())
    await memory.aclose()
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, how, str(where)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "done ['go', '', 'paid 5', 'done']", done.stderr


async def test_decisions_of_a_part_survive_a_restart():
    shop = Shop()
    brain, _ = brain_for(shop, [pay(5, "a"), pay(7, "b")])
    await brain.run("go")
    await brain.resume(approve=["a"])
    text = (await brain.memory.snapshot()).model_dump_json()
    memory = MessagesMemory(shop.tools)
    await memory.restore(Snapshot.from_json(text))
    result = await Brain(react(ScriptedLLM(["done"])), memory).resume(deny=["b"])
    assert (result.stop_reason, shop.paid) == (StopReason.DONE, [5])
    assert (await results(memory))[1] == (
        "A person refused this call, and gave no reason: it was not run"
    )


def test_what_is_decided_does_not_wait_any_more():
    asked = HumanRequests(approvals=["a", "b"], questions={"q": "?"})
    control = Control(status="waiting", human_requests=asked)
    Decisions(approve=["a"], input="yes").write(control)
    assert (asked.approvals, asked.questions, asked.answers) == (["b"], {}, {"q": "yes"})
    assert asked.decisions == {"a": Decision(approved=True)}


async def test_a_dry_run_checks_calls_and_runs_none():
    shop = Shop()
    bad = Action(name="pay", args={"amount": "much"})
    brain, _ = brain_for(shop, [pay(5, "a"), bad, SUM], ["done"], dry_run=True)
    assert (await brain.run("go")).stop_reason is StopReason.DONE
    told = await results(brain.memory)
    assert told[0] == "Dry run: the call of 'pay' is valid and was not executed."
    assert "Invalid arguments for tool 'pay'" in told[1]
    assert (told[2][:8], shop.paid) == ("Dry run:", [])


async def test_a_dry_run_reaches_into_branches():
    shop = Shop()
    llm = ScriptedLLM([[SUM], ["done"]])
    brain = Brain(single(ParallelState([react(llm)])), tools=shop.tools, dry_run=True)
    await brain.run("go")
    assert llm.calls[1].messages[-1].content.startswith("Dry run")


async def test_progress_comes_with_the_context():
    @tool
    async def work(context: ToolContext) -> str:
        """Work."""
        context.progress(1, 2, "half")
        return context.key

    tools: list[BaseTool] = [work]
    brain = Brain(react(ScriptedLLM([[Action(name="work", id="c")], ["ok"]])), tools=tools)
    async with brain.stream("go") as run:
        events = [event async for event in run]
    [note] = [e for e in events if isinstance(e, ToolProgress)]
    assert (note.done, note.total, note.message) == (1, 2, "half")
    assert await results(brain.memory) == [f"{run.run_id}/1/c"]


async def test_a_run_that_is_cut_short_after_its_approval_waits_no_more():
    started = anyio.Event()

    @tool(requires_approval=True)
    async def slow() -> None:
        """Never end."""
        started.set()
        await anyio.sleep_forever()

    brain = Brain(react(ScriptedLLM([[Action(name="slow", id="a")]])), tools=[slow])
    await brain.run("go")

    async def go_on() -> None:
        await brain.resume(approve=["a"])

    async with anyio.create_task_group() as group:
        group.start_soon(go_on)
        await started.wait()
        group.cancel_scope.cancel()
    control = brain.memory.control
    assert (control.status, control.stop_reason, control.human_requests) == (
        "ended",
        "cancelled",
        None,
    )


async def test_a_limit_that_is_reached_while_waiting_closes_the_calls():
    shop = Shop()
    brain, _ = brain_for(shop, [pay(5, "a")], limits=Limits(max_steps=1))
    brain.limits = Limits(max_steps=5)
    await brain.run("go")
    brain.limits = Limits(max_steps=1)
    result = await brain.resume(approve=True)
    assert (result.stop_reason, shop.paid) == (StopReason.MAX_STEPS, [])
    assert brain.memory.control.human_requests is None
    assert await results(brain.memory) == ["The call was not run: the limit of steps was reached"]


class OwnMemory(State):
    """Delegates to a net on a memory that is not a fork."""

    def __init__(self, net: Net, tools: tuple[BaseTool, ...]) -> None:
        self.net = net
        self.tools = tools

    async def run(self, memory: Memory) -> AsyncIterator[Any]:
        own = MessagesMemory(self.tools)
        await own.set_goal("inner")
        yield Delegate([Branch("inner", self.net, own)])

    async def next_state(self, memory: Memory) -> Literal[None]:
        return None


async def test_a_dry_run_reaches_into_memories_that_are_not_forks():
    llm = ScriptedLLM([[SUM], ["done"]])
    brain = Brain(single(OwnMemory(react(llm), (add,))), dry_run=True)
    await brain.run("go")
    assert llm.calls[1].messages[-1].content.startswith("Dry run")


async def test_keys_in_a_branch_differ_from_step_to_step():
    keys: list[str] = []

    @tool
    async def note(context: ToolContext) -> str:
        """Note."""
        keys.append(context.key)
        return str(len(keys))

    asks = [Action(name="note", id="call_0")]
    net = single(SubnetState(react(ScriptedLLM([asks, asks, "done"])), fork=True))
    await Brain(net, tools=[note]).run("go")
    assert len(set(keys)) == 2


async def test_edited_arguments_that_do_not_fit_are_refused_and_the_call_waits() -> None:
    shop = Shop()
    brain, _ = brain_for(shop, [pay(5, "a")], ["done"])
    await brain.run("go")
    with pytest.raises(ResumeError, match="edit= for 'a'"):
        await brain.resume(edit={"a": {"amount": "a lot"}})
    assert shop.paid == []
    assert (await brain.resume(edit={"a": {"amount": 7}})).answer == "done"
    assert shop.paid == [7]


async def test_a_predicate_may_be_async():
    asked, spent = [], []

    async def expensive(args: dict[str, Any]) -> bool:
        await anyio.lowlevel.checkpoint()
        asked.append(args["amount"])
        if args["amount"] < 0:
            raise ValueError("a person decides")
        return bool(args["amount"] > 10)

    @tool(requires_approval=expensive)
    async def spend(amount: int) -> str:
        """Spend."""
        spent.append(amount)
        return "spent"

    calls = [Action(name="spend", args={"amount": amount}) for amount in (3, 11, -1)]
    brain = Brain("react", tools=[spend], llm=ScriptedLLM([*([call] for call in calls), "ok"]))
    waiting = [(await brain.run("Spend")).stop_reason]
    waiting.append((await brain.resume(approve=True)).stop_reason)
    asked_for = brain.memory.control.next_actions[0].id
    result = await brain.resume(deny=[asked_for])

    assert waiting == ["approval", "approval"]
    assert (result.stop_reason, spent, asked) == ("done", [3, 11], [3, 11, -1])


class Ask(State):
    """Notes that it was entered and left, and asks a person."""

    async def on_enter(self, memory: Memory) -> None:
        await memory.update([Message.system("entered")])

    async def on_exit(self, memory: Memory) -> None:
        await memory.update([Message.system("left")])

    async def run(self, memory: Memory) -> AsyncIterator[Any]:
        if memory.control.input is None:
            yield InputRequested("Which one?")
            return
        await memory.update([Message.assistant(f"You said {memory.control.input}.")])

    async def next_state(self, memory: Memory) -> Literal[None]:
        return None


@pytest.mark.parametrize("inside", [False, True], ids=["the net", "a subnet"])
@pytest.mark.parametrize("stored", [False, True], ids=["ram", "sqlite"])
async def test_a_state_that_waits_is_entered_and_left_once(
    stored: bool, inside: bool, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"journal": tmp_path / "a.db"} if stored else {}
    net = single(Ask())
    net = single(SubnetState(net)) if inside else net
    async with MessagesMemory(**options) as memory:
        assert (await Brain(net, memory).run("go")).stop_reason is StopReason.INPUT
        assert [m.content for m in await memory.dump()] == ["entered"]
        if not stored:
            await Brain(net, memory).resume(input="A")
            assert [m.content for m in await memory.dump()] == ["entered", "You said A.", "left"]
            return
    async with MessagesMemory(**options) as again:
        await Brain(net, again).resume(input="A")
        assert [m.content for m in await again.dump()] == ["entered", "You said A.", "left"]
        await Brain(net, again).run("go on")
        assert [m.content for m in await again.dump()][-1:] == ["entered"]


async def test_a_state_that_asks_is_entered_and_left_once_in_run_state() -> None:
    run = await run_state(Ask(), MessagesMemory(), input="A")
    assert [m.content for m in await run.memory.dump()] == ["entered", "You said A.", "left"]


@pytest.mark.parametrize("asks", [pay(5, "a"), ask("who?", "a")])
async def test_a_call_whose_tool_is_gone_keeps_waiting(asks):
    journal = RamJournal()
    shop = Shop()
    brain, llm = brain_for(shop, [asks], ["done"], memory=MessagesMemory(journal=journal))
    await brain.run("go")
    decisions = {"input": "Ann"} if asks.name == "ask" else {"approve": True}
    without = Brain(react(llm), tools=[add], memory=MessagesMemory(journal=journal))
    with pytest.raises(ResumeError, match=f"of the tool '{asks.name}', which this brain does not"):
        await without.resume(**decisions)
    again = Brain(react(llm), tools=shop.tools, memory=MessagesMemory(journal=journal))
    assert (await again.resume(**decisions)).answer == "done"
    assert shop.paid == [5] * (asks.name == "pay")


async def test_a_call_whose_tool_is_gone_may_be_denied():
    journal = RamJournal()
    brain, llm = brain_for(Shop(), [pay(5, "a")], ["done"], memory=MessagesMemory(journal=journal))
    await brain.run("go")
    without = Brain(react(llm), memory=MessagesMemory(journal=journal))
    assert (await without.resume(deny="a")).answer == "done"
