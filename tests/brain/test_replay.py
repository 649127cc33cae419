"""A recorded run is replayed: without models and tools, with the net of today."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import pytest

from agent_brain import Brain, Limits, Memory, Message, Net, ReplayError, State, react, tool
from agent_brain.errors import LLMServerError
from agent_brain.memories import (
    LayeredMemory,
    MessagesMemory,
    RamJournal,
    SQLiteJournal,
    TodoMemory,
    WindowedMemory,
)
from agent_brain.nets import MapState, ParallelState, SubnetState, create_net
from agent_brain.states import (
    ActionFinished,
    AnswerState,
    Hook,
    InputRequested,
    ModelRequest,
    ModelResponse,
)
from agent_brain.testing import ModelCall, ScriptedLLM
from agent_brain.tools import Action, InputNeeded
from tests.memories.durable.life import clever
from tests.nets.models import FunctionLLM

pytestmark = pytest.mark.anyio

ran: list[str] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


@tool
def look(number: int) -> str:
    """Look something up."""
    ran.append(f"look {number}")
    if number > 100:
        raise ValueError("too far")
    return f"seen {number}"


@tool(requires_approval=True)
def pay(number: int) -> str:
    """Pay."""
    ran.append(f"pay {number}")
    return f"paid {number}"


@tool
def ask() -> str:
    """Ask a person."""
    raise InputNeeded("Which one?")


MEMORIES: dict[str, Callable[[], Any]] = {
    "in RAM": MessagesMemory,
    "in a journal": lambda: MessagesMemory(journal=RamJournal()),
    "windowed": lambda: WindowedMemory(max_messages=6, journal=RamJournal()),
    "to-do": lambda: TodoMemory(MessagesMemory(journal=RamJournal())),
    "layered": lambda: LayeredMemory(
        WindowedMemory(max_messages=6, journal=RamJournal()), MessagesMemory(journal=RamJournal())
    ),
}


def call(name: str, number: int) -> Action:
    return Action(name=name, args={"number": number})


def brain_of(turns: Any, memory: Any = None, **options: Any) -> Brain[Any]:
    memory = MessagesMemory(journal=RamJournal()) if memory is None else memory
    options = {"trace": True, "llm": ScriptedLLM(turns), **options}
    return Brain("react", memory, [look, pay, ask], **options)


async def check(brain: Brain[Any], run_id: str | None = None) -> None:
    """Replay, and see that nothing differs and nothing is done or changed."""
    before = [*ran], (await brain.memory.snapshot()).model_dump_json()
    report = await brain.replay(run_id)
    assert report.equal, str(report)
    assert ([*ran], (await brain.memory.snapshot()).model_dump_json()) == before


@pytest.mark.parametrize("name", MEMORIES)
@pytest.mark.parametrize("count", [0, 1, 2, 3])
async def test_a_run_with_the_same_net_is_equal(name: str, count: int) -> None:
    turns = [*([call("look", n), call("look", n + 1)] for n in range(count)), "Seen."]
    brain = brain_of(turns, MEMORIES[name]())
    await brain.run("Look.")
    await check(brain)
    report = await brain.replay()
    assert (report.requests, report.complete, report.traced) == (count + 1, True, True)


@pytest.mark.parametrize("place", ["net", "subnet", "empty", "branches", "items", "both"])
@pytest.mark.parametrize("memory", ["in RAM", "in a journal"])
async def test_tools_of_nets_do_not_run_either(place: str, memory: str) -> None:
    def work(messages: Any) -> Any:
        return [call("look", 1)] if messages[-1].role == "user" else "Seen."

    inner = react(ScriptedLLM([work] * 4), tools=[look])
    net: Any = {
        "net": lambda: inner,
        "subnet": lambda: {Step.ONE: SubnetState(inner)},
        "empty": lambda: {Step.ONE: SubnetState(inner, fork="empty")},
        "branches": lambda: {Step.ONE: ParallelState([inner, inner])},
        "items": lambda: {Step.ONE: MapState(lambda memory: ["a", "b"], inner, fork="empty")},
        "both": lambda: Net({Step.ONE: SubnetState(inner)}, tools=[look]),
    }[place]()
    brain = Brain(net, MEMORIES[memory](), trace=True)
    await brain.run("Look.")
    assert {*ran} == {"look 1"}
    await check(brain)


async def test_a_run_with_options_is_replayed_with_them() -> None:
    brain = Brain("react", llm=ScriptedLLM(["Never."]), trace=True)
    llm = ScriptedLLM([call("look", 1), Action(name="final_result", args={"value": 7})])
    options: Any = {"llm": llm, "tools": [look], "prompt": "Be brief.", "output_type": int}
    assert (await brain.run("Look.", **options)).output == 7
    assert not (await brain.replay()).equal
    report = await brain.replay(**options)
    assert report.equal, str(report)
    assert ran == ["look 1"]


async def test_a_run_in_ram_is_replayed_from_a_state_that_asks_no_model() -> None:
    async def first(memory: Memory) -> Literal[Step.TWO]:
        return Step.TWO

    answer = AnswerState(ScriptedLLM(["Yes."]), ask=True)
    brain = Brain(Net({Step.ONE: first, Step.TWO: answer}), trace=True)
    await brain.run("Well?")
    await check(brain)


async def test_each_run_of_a_session_is_replayed() -> None:
    brain = brain_of([[call("look", 1)], "One.", "Two.", [call("look", 3)], "Three."])
    runs = [(await brain.run(f"Question {n}")).run_id for n in range(3)]
    for run_id in runs:
        await check(brain, run_id)


async def test_a_tool_that_failed_fails_again() -> None:
    brain = brain_of([[call("look", 101)], "Too far."])
    await brain.run("Look.")
    await check(brain)


async def test_a_list_that_the_memory_keeps_is_edited_again() -> None:
    memory = TodoMemory(MessagesMemory(journal=RamJournal()))
    add = [Action(name="add_todo", args={"text": "Buy tea"})]
    brain = brain_of([add, [call("look", 1)], "Done."], memory)
    await brain.run("Plan.")
    await check(brain)
    assert len(await memory.todos()) == 1


async def test_it_says_where_a_request_differs() -> None:
    memory = MessagesMemory(journal=RamJournal())
    await brain_of([[call("look", 1)], "Seen."], memory).run("Look.")
    net = react(ScriptedLLM(), prompt="Be brief. {goal}")
    report = await Brain(net, memory).replay()
    found = report.difference
    assert found is not None
    assert (found.kind, found.step, found.state, found.path) == ("request", 0, "REASONING", ())
    assert "+system: Be brief. Look." in found.diff
    assert "messages" in found.found
    assert "step 0" in str(report)
    assert report.to_dict()["difference"]["kind"] == "request"


class Step(Enum):
    ONE = "one"
    TWO = "two"
    THREE = "three"


class Choose(State):
    def __init__(self, choose: Callable[[], Step]) -> None:
        self.choose = choose

    async def run(self, memory: Memory) -> AsyncIterator[str]:
        yield "Choosing."

    async def next_state(self, memory: Memory) -> Literal[Step.TWO, Step.THREE]:
        return self.choose()  # type: ignore[return-value]


class Say(State):
    def __init__(self, text: Callable[[], str]) -> None:
        self.text = text

    async def run(self, memory: Memory) -> AsyncIterator[str]:
        text = self.text()
        await memory.update([Message.assistant(text)])
        yield text

    async def next_state(self, memory: Memory) -> None:
        return None


def choosing(choose: Callable[[], Step], text: Callable[[], str] = lambda: "Said.") -> Net:
    return Net({Step.ONE: Choose(choose), Step.TWO: Say(text), Step.THREE: Say(text)})


async def test_it_says_where_another_state_follows() -> None:
    memory = MessagesMemory(journal=RamJournal())
    await Brain(choosing(lambda: Step.TWO), memory, trace=True).run("Go.")
    await check(Brain(choosing(lambda: Step.TWO), memory))
    report = await Brain(choosing(lambda: Step.THREE), memory).replay()
    found = report.difference
    assert found is not None
    assert (found.kind, found.expected, found.found) == ("state", "TWO", "THREE")


async def test_chance_in_a_state_is_found() -> None:
    memory = MessagesMemory(journal=RamJournal())
    net = choosing(lambda: Step.TWO, lambda: f"It is {random.random()}")
    await Brain(net, memory, trace=True).run("Go.")
    found = (await Brain(net, memory).replay()).difference
    assert found is not None
    assert found.kind == "message"
    assert found.expected.startswith("assistant: It is 0.")


async def test_a_net_that_begins_elsewhere_differs() -> None:
    memory = MessagesMemory(journal=RamJournal())
    await brain_of(["Hi."], memory).run("Hello")
    report = await Brain(choosing(lambda: Step.TWO), memory).replay()
    assert report.difference is not None
    assert (report.difference.expected, report.difference.found) == ("REASONING", "ONE")


async def test_a_run_that_ends_earlier_or_later_differs() -> None:
    memory = MessagesMemory(journal=RamJournal())
    await brain_of([[call("look", 1)], "Seen."], memory).run("Look.")
    brain = Brain("react", memory, llm=ScriptedLLM(), limits=Limits(max_steps=1))
    report = await brain.replay()
    assert report.difference is not None


# decisions and interruptions


@pytest.mark.parametrize("name", MEMORIES)
async def test_decisions_of_a_person_are_made_again(name: str) -> None:
    brain = brain_of([[call("pay", 1), call("pay", 2), call("pay", 3)], "Paid."], MEMORIES[name]())
    await brain.run("Pay.")
    asked = brain.memory.control.human_requests
    assert asked is not None
    one, two, three = asked.approvals
    await brain.resume(approve=[one])
    await brain.resume(deny={two: "too much"}, edit={three: {"number": 4}})
    assert sorted(ran) == ["pay 1", "pay 4"]
    await check(brain)


async def test_a_call_whose_arguments_were_changed_and_whose_result_was_shortened() -> None:
    @tool(requires_approval=True, max_result_tokens=40)
    def read(number: int) -> str:
        """Read a page."""
        return f"page {number} " * 200

    llm = ScriptedLLM([[call("read", 1)], "Read."])
    brain = Brain(react(llm), MessagesMemory(journal=RamJournal()), [read], trace=True)
    await brain.run("Read.")
    asked = brain.memory.control.human_requests
    assert asked is not None
    await brain.resume(edit={asked.approvals[0]: {"number": 2}})
    await check(brain)


@pytest.mark.parametrize("trace", [False, True])
async def test_a_call_that_ran_at_once_and_now_needs_approval_differs(trace: bool) -> None:
    brain = brain_of([[call("look", 1)], "Seen."], trace=trace)
    await brain.run("Look.")

    @tool(name="look", description="Look something up.", requires_approval=True)
    def careful(number: int) -> str:
        """Look something up."""
        return ""

    brain.memory.available_tools["look"] = careful
    report = await brain.replay()
    assert report.difference is not None
    assert (report.difference.kind, report.difference.state) == ("end", "ACTION")
    assert report.difference.found == "it waits for a person's approval"


async def test_the_answer_to_a_question_is_given_again() -> None:
    brain = brain_of([[Action(name="ask", args={})], "The left one."])
    await brain.run("Ask.")
    await brain.resume(input="the left one")
    await check(brain)


class Inquire(State):
    async def run(self, memory: Memory) -> AsyncIterator[Any]:
        if memory.control.input is None:
            yield InputRequested("Your name?")
            return
        await memory.update([Message.assistant(f"Hello {memory.control.input}")])
        yield f"Hello {memory.control.input}"

    async def next_state(self, memory: Memory) -> None:
        return None


async def test_the_answer_to_a_state_is_given_again() -> None:
    memory = MessagesMemory(journal=RamJournal())
    brain = Brain(Net({Step.ONE: Inquire()}), memory, trace=True)
    await brain.run("Hi")
    await brain.resume(input="Ann")
    await check(brain)


async def test_a_call_that_ended_before_a_question_in_its_step_is_among_the_events() -> None:
    work = SubnetState(react(ScriptedLLM([[call("look", 1)], "Seen."])), on_done=Step.TWO)
    inside = Net({Step.ONE: work, Step.TWO: Inquire()})
    memory = MessagesMemory([look], journal=RamJournal())
    brain = Brain(Net({Step.ONE: SubnetState(inside)}), memory, trace=True)
    await brain.run("Look.")
    await brain.resume(input="Ann")
    report = await brain.replay()
    assert report.equal, str(report)
    ended = [event.result.content for event in report.events if isinstance(event, ActionFinished)]
    assert ended == ["seen 1"]


async def test_a_run_that_still_waits_is_equal_as_far_as_it_came() -> None:
    brain = brain_of([[call("pay", 1)], "Paid."])
    await brain.run("Pay.")
    await check(brain)
    assert not (await brain.replay()).complete


async def test_a_run_that_failed_fails_again() -> None:
    brain = brain_of([[call("look", 1)], LLMServerError("down")])
    with pytest.raises(LLMServerError):
        await brain.run("Look.")
    await check(brain)


async def test_the_half_step_of_an_interrupted_run_is_left_out() -> None:
    brain = brain_of([[call("look", 1)], LLMServerError("down"), [call("look", 2)], "Seen."])
    with pytest.raises(LLMServerError):
        await brain.run("Look.")
    await brain.resume()
    await check(brain)


async def test_a_cancelled_run_is_equal_as_far_as_it_came() -> None:
    brain = brain_of([[call("look", 1)], "It is seen and told."])
    async with brain.stream("Look.") as run:
        async for event in run:
            if event.kind == "text_delta":
                break
    await check(brain)
    await brain.over(brain.memory).memory.open()


async def test_a_run_that_was_resumed_after_a_limit() -> None:
    memory = MessagesMemory(journal=RamJournal())
    turns = [[call("look", 1)], [call("look", 2)], "Seen."]
    short = brain_of(turns, memory, limits=Limits(max_steps=2))
    await short.run("Look.")
    await brain_of(turns[1:], memory).resume()
    await check(short)
    await check(brain_of([], memory))


async def test_messages_that_were_sent_to_the_run_are_sent_again() -> None:
    brain = brain_of([[call("look", 1)], "Seen."])
    async with brain.stream("Look.") as run:
        async for event in run:
            if event.kind == "action_finished":
                run.send("Hurry!")
    assert "Hurry!" in [m.content for m in await brain.memory.dump()]
    await check(brain)


# branches


def branching(kind: str, model: Callable[[], Any]) -> Net:
    if kind == "parallel":
        return Net({Step.ONE: ParallelState({"left": react(model()), "right": react(model())})})
    if kind == "map":
        return Net({Step.ONE: MapState(lambda _: ["a", "b", "c"], react(model()))})
    if kind == "subnet":
        return Net({Step.ONE: SubnetState(react(model()))})
    return Net({Step.ONE: SubnetState(react(model()), fork=True)})


def by_context(call_made: ModelCall) -> Any:
    if call_made.tools and not any(m.role == "tool" for m in call_made.messages):
        return [call("look", len(call_made.messages[-1].content))]
    return "Seen."


@pytest.mark.parametrize("kind", ["parallel", "map", "subnet", "fork"])
@pytest.mark.parametrize("name", ["in RAM", "in a journal"])
async def test_branches_are_matched_by_their_paths(kind: str, name: str) -> None:
    memory = MEMORIES[name]()
    net = branching(kind, lambda: FunctionLLM(by_context))
    brain = Brain(net, memory, [look], trace=True)
    await brain.run("Look.")
    assert ran
    await check(brain)


def paying(call_made: ModelCall) -> Any:
    if call_made.tools and not any(m.role == "tool" for m in call_made.messages):
        return [call("pay", 1)]
    return "Paid."


@pytest.mark.parametrize("kind", ["parallel", "map"])
async def test_branches_that_wait_are_given_their_decisions_again(kind: str) -> None:
    memory = MessagesMemory(journal=RamJournal())
    net = branching(kind, lambda: FunctionLLM(paying))
    brain = Brain(net, memory, [pay], trace=True)
    result = await brain.run("Pay.")
    assert result.stop_reason == "approval"
    asked = memory.control.human_requests
    assert asked is not None
    await brain.resume(approve=asked.approvals[:1], deny=asked.approvals[1:])
    assert len(ran) == 1
    await check(brain)


async def test_a_brain_that_is_a_tool_does_not_run() -> None:
    inner = ScriptedLLM("Forty-two.")
    expert = Brain(react(inner)).as_tool("expert", "Knows.")
    memory = MessagesMemory(journal=RamJournal())
    outer = ScriptedLLM([[Action(name="expert", args={"task": "Think."})], "It is 42."])
    brain = Brain(react(outer), memory, [expert], trace=True)
    await brain.run("Ask.")
    await check(brain)
    assert len(inner.calls) == 1


@pytest.mark.parametrize(
    "net", ["react", "plan_execute", "reflexion", "debate", "tree_of_thoughts"]
)
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_built_in_nets_are_replayed(net: str, tmp_path: Path) -> None:
    from agent_brain.nets import net_names
    from tests.memories.durable.life import Effects

    if net not in net_names():
        pytest.skip(f"there is no net {net!r}")
    async with SQLiteJournal(tmp_path / "j.db", durability="os") as journal:
        memory = MessagesMemory(journal=journal)
        effects = Effects()
        brain = Brain(create_net(net, FunctionLLM(clever)), memory, effects.tools, trace=True)
        await brain.run("What is 2 + 2?")
        done = dict(effects.done)
        report = await brain.replay()
        assert report.equal, str(report)
        assert dict(effects.done) == done


# hooks, and what cannot be replayed


async def test_hooks_around_model_calls_are_called_and_others_are_not() -> None:
    log: list[str] = []

    class Logging(Hook):
        def before_model_call(self, request: ModelRequest) -> ModelRequest:
            log.append("model")
            return request

        def after_attempt(self, request: ModelRequest, response: ModelResponse) -> None:
            log.append("attempt")

        def before_tool_call(self, request: Any) -> None:
            log.append("tool")

        def before_run(self, request: Any) -> None:
            log.append("run")

    brain = brain_of([[call("look", 1)], "Seen."], hooks=[Logging()])
    await brain.run("Look.")
    log.clear()
    await check(brain)
    assert log == ["model", "model"]


async def test_a_run_without_a_trace_is_replayed_from_its_messages() -> None:
    brain = brain_of([[call("look", 1)], "Seen."], trace=False)
    await brain.run("Look.")
    await check(brain)
    assert not (await brain.replay()).traced


async def test_a_run_whose_messages_do_not_tell_the_calls_is_refused() -> None:
    memory = MessagesMemory(journal=RamJournal())
    llm = FunctionLLM(clever)
    await Brain(create_net("plan_execute", llm), memory, [look]).run("Plan.")
    with pytest.raises(ReplayError, match="trace=True"):
        await Brain(create_net("plan_execute", llm), memory).replay()


async def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    brain = brain_of(["Hi."])
    with pytest.raises(ReplayError, match="no run to replay"):
        await brain.replay()
    await brain.run("Hello")
    with pytest.raises(ReplayError, match="no run 'run_x'"):
        await brain.replay("run_x")
    in_ram = brain_of(["Hi.", "Hi."], MessagesMemory())
    first = await in_ram.run("Hello")
    await in_ram.run("Hello")
    with pytest.raises(ReplayError, match="Without a journal only the last run"):
        await in_ram.replay(first.run_id)


@pytest.mark.parametrize("journal", [None, RamJournal])
async def test_a_run_whose_beginning_is_gone_is_refused(journal: Any) -> None:
    memory = MessagesMemory() if journal is None else MessagesMemory(journal=journal(), history=5)
    turns = [*([call("look", n)] for n in range(150)), "Seen."]
    brain = brain_of(turns, memory, limits=Limits(max_steps=1000))
    await brain.run("Look.")
    with pytest.raises(ReplayError, match="beginning"):
        await brain.replay()
