"""What makes a net short to write: functions as states, data that is kept, tools of one net."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from enum import Enum
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from agent_brain import Brain, Limits, tool
from agent_brain.errors import (
    BrainUseError,
    MalformedOutputError,
    NetDefinitionError,
    ResumeError,
    StateDefinitionError,
)
from agent_brain.memories import (
    LayeredMemory,
    Memory,
    Message,
    MessagesMemory,
    Role,
    SQLiteJournal,
    WindowedMemory,
)
from agent_brain.nets import MapState, Net, ParallelState, SubnetState, react
from agent_brain.nets.library.handoff import HandoffAgent, handoff
from agent_brain.states import (
    ActionFinished,
    AnswerState,
    AskPersonState,
    AskState,
    EvaluationState,
    FunctionState,
    Notes,
    PlanningState,
    State,
    StreamItem,
    TellState,
)
from agent_brain.testing import ScriptedLLM, run_net, run_state
from agent_brain.tools import Action

pytestmark = pytest.mark.anyio

WRONG: Any = 5  # no function


class Step(Enum):
    PLAN = "plan"
    SEARCH = "search"
    CHECK = "check"
    ANSWER = "answer"


class Plan(Notes):
    searches: list[str] = []


class Flight(BaseModel):
    number: str
    price: int


class NoFlight(BaseModel):
    why: str


# Functions


async def check(memory: Memory) -> Literal[Step.SEARCH, Step.ANSWER]:
    goal = (await memory.goal())[-1].content
    return Step.SEARCH if "search" in goal else Step.ANSWER


async def search(memory: Memory) -> AsyncIterator[StreamItem | Literal[Step.ANSWER] | None]:
    yield "Found it."
    yield Step.ANSWER if "twice" in (await memory.goal())[-1].content else None


async def answer(memory: Memory) -> str:
    return "Done."


NET: dict[Step, Any] = {Step.CHECK: check, Step.SEARCH: search, Step.ANSWER: answer}


@pytest.mark.parametrize(
    ("goal", "said"),
    [("no", "Done."), ("search", "Found it."), ("search twice", "Done.")],
)
async def test_functions_are_states_and_their_annotations_the_edges(goal: str, said: str) -> None:
    net = Net(NET)
    assert net.edges == {
        Step.CHECK: (Step.SEARCH, Step.ANSWER),
        Step.SEARCH: (Step.ANSWER, None),
        Step.ANSWER: (None,),
    }
    assert (await Brain(NET).run(goal)).answer == said


async def test_an_enum_local_to_a_function_is_found() -> None:
    class Local(Enum):
        ONE = 1
        TWO = 2

    async def one(memory: Memory) -> Literal[Local.TWO]:
        return Local.TWO

    async def two(memory: Memory) -> None: ...

    assert Net({Local.ONE: one, Local.TWO: two}).edges[Local.ONE] == (Local.TWO,)


async def test_a_state_that_no_annotation_declares_is_refused() -> None:
    async def go(memory: Memory) -> Any:
        return Step.ANSWER

    with pytest.raises(StateDefinitionError, match="return annotation does not declare it"):
        await Brain({Step.CHECK: FunctionState(go)}).run("x")


@pytest.mark.parametrize("records", [True, False])
async def test_text_that_a_function_returns_is_recorded_once(records: bool) -> None:
    async def go(memory: Memory) -> str:
        if records:
            await memory.update([Message.assistant("Yes.")])
        return "Yes."

    memory = MessagesMemory()
    earlier = Message.assistant("Yes.")  # the same was said before
    await memory.update([Message.user("Well?"), earlier])
    await run_state(FunctionState(go), memory)
    assert [m.content for m in await memory.dump()] == ["Well?", "Yes.", "Yes."]


@pytest.mark.parametrize("wrong", [5, ["x"], {"a": 1}, 0, False])
async def test_what_is_neither_text_nor_a_state_is_refused(wrong: Any) -> None:
    async def go(memory: Memory) -> Any:
        return wrong

    with pytest.raises(StateDefinitionError, match="neither text nor a state"):
        await Brain({Step.CHECK: go}).run("x")


def test_the_error_about_a_sync_function_says_how_to_write_it() -> None:
    def go(memory: Memory) -> None: ...

    with pytest.raises(NetDefinitionError, match=r"is not async.*async def f\(memory\)"):
        Net({Step.CHECK: go})  # type: ignore[dict-item]


async def test_nothing_may_follow_the_next_state() -> None:
    async def go(memory: Memory) -> AsyncIterator[str | Literal[Step.ANSWER]]:
        yield Step.ANSWER
        yield "late"

    with pytest.raises(StateDefinitionError, match="behind the next state"):
        await Brain({Step.CHECK: go, Step.ANSWER: answer}).run("x")


# Where a state continues


async def test_a_built_in_state_continues_with_what_a_function_chooses() -> None:
    async def choose(memory: Memory) -> Literal[Step.ANSWER] | None:
        return Step.ANSWER if Plan.read(memory).searches else None

    llm = ScriptedLLM(['{"searches": ["a"]}', "Hello."])
    net = Net(
        {
            Step.PLAN: AskState(llm, "Plan.", output_type=Plan, choose=choose),
            Step.ANSWER: AnswerState(llm, ask=True),
        }
    )
    assert net.edges[Step.PLAN] == (Step.ANSWER, None)
    assert (await Brain(net).run("x")).answer == "Hello."
    with pytest.raises(StateDefinitionError, match="either on_done= or choose="):
        AnswerState(llm, on_done=Step.ANSWER, choose=choose)


async def test_choose_of_a_reasoning_state_is_for_its_answer() -> None:
    from agent_brain.states import ActionState, ReasoningState

    def choose(memory: Memory) -> Literal[Step.ANSWER]:
        return Step.ANSWER

    llm = ScriptedLLM([[Action(name="add", args={"a": 1, "b": 2})], "Three."])
    net = Net(
        {
            Step.PLAN: ReasoningState(llm, on_action=Step.SEARCH, choose=choose),
            Step.SEARCH: ActionState(Step.PLAN),
            Step.ANSWER: TellState(lambda memory: "Told."),
        }
    )
    assert net.edges[Step.PLAN] == (Step.SEARCH, Step.ANSWER)
    assert (await Brain(net, tools=[add]).run("x")).answer == "Told."


# Data that is kept


class Research(Notes):
    plan: list[str] = []
    flight: Flight | None = None


@pytest.mark.parametrize("fork", [False, True])
async def test_the_output_of_a_net_is_kept_for_later_states(fork: bool) -> None:
    def route(memory: Memory) -> Literal[Step.ANSWER] | None:
        return Step.ANSWER if Research.read(memory).flight else None

    async def tell(memory: Memory) -> str:
        flight = Research.read(memory).flight
        return f"{flight and flight.number}"

    searcher = react(ScriptedLLM([final("", number="A1", price=80)]), output_type=Flight)
    search = SubnetState(searcher, fork=fork, into=Research, choose=route)
    assert (await Brain({Step.SEARCH: search, Step.ANSWER: tell}).run("Rome")).answer == "A1"


@pytest.mark.parametrize("into", [None, "flight", Research, "function"], ids=str)
async def test_data_is_kept_where_into_says(into: Any) -> None:
    kept: list[Flight] = []

    async def keep(memory: Memory, data: Flight) -> None:
        kept.append(data)

    llm = ScriptedLLM(['{"number": "A1", "price": 80}'])
    state = AskState(
        llm, "Book for {goal}.", output_type=Flight, into=keep if into == "function" else into
    )
    memory = MessagesMemory()
    result = await run_net({Step.PLAN: state}, memory, goal="Rome")
    assert "Book for Rome." in llm.calls[0].messages[0].content
    assert await memory.dump() == []
    assert result.result is not None
    assert result.result.output is None
    flight = {"number": "A1", "price": 80}
    if into is None:
        assert memory.control.scratch["Flight"] == flight
    elif into == "flight":
        assert memory.control.scratch["flight"] == flight
    elif into is Research:
        assert Research.read(memory).flight == Flight(number="A1", price=80)
    else:
        assert kept == [Flight(number="A1", price=80)]


async def test_a_model_is_not_asked_for_what_notes_have_of_themselves() -> None:
    llm = ScriptedLLM(['{"searches": []}'])
    await Brain({Step.PLAN: AskState(llm, "Plan.", output_type=Plan)}).run("x")
    assert "ended" not in llm.calls[0].messages[0].content


def test_notes_without_a_field_for_the_data_are_refused() -> None:
    for kind, notes in ((NoFlight, Research), (Flight, Plan)):
        with pytest.raises(StateDefinitionError, match="no field is of the type"):
            AskState(ScriptedLLM([]), "x", output_type=kind, into=notes)


# A person who is asked


class Offer(BaseModel):
    refund: int


class Case(Notes):
    offer: Offer | None = None


def question(memory: Memory) -> str:
    return "What does Ann get?"


async def offered(memory: Memory) -> Literal[Step.ANSWER, Step.PLAN]:
    offer = Case.read(memory).offer
    return Step.ANSWER if offer and offer.refund < 50 else Step.PLAN


async def test_a_person_is_asked_and_the_answer_is_recorded_kept_and_decides(tmp_path: Any) -> None:
    llm = ScriptedLLM(["You get 20."])
    net = Net(
        {
            Step.PLAN: AskPersonState(question, Offer, into=Case, choose=offered),
            Step.ANSWER: AnswerState(llm, ask=True),
        }
    )
    assert net.edges[Step.PLAN] == (Step.ANSWER, Step.PLAN)

    def brain() -> Brain:  # as in another process
        return Brain(net, memory_options={"journal": tmp_path / "a.db", "session": "ann"})

    result = await brain().run("Refund me")
    assert result.questions == {"": "What does Ann get?"}
    with pytest.raises(ResumeError, match="does not fit"):
        await brain().resume(input="a lot")
    result = await brain().resume(input={"refund": 500})
    assert result.stop_reason == "input", "it is asked again, as the function chose"
    result = await brain().resume(input=Offer(refund=20))
    assert (result.answer, result.questions) == ("You get 20.", {})
    told = [m.content for m in llm.calls[0].messages if m.role == "user"]
    assert 'What does Ann get?\n{"refund":500}' in told
    assert 'What does Ann get?\n{"refund":20}' in told


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: AskPersonState("?", object()), "not a type"),
        (lambda: AskPersonState("?", int, into=Research), "no field is of the type"),
        (lambda: SubnetState(react(ScriptedLLM([])), into="x"), "no output_type="),
        (lambda: AskPersonState(WRONG), "called as prompt.memory"),
        (
            lambda: SubnetState(react(ScriptedLLM([])), fork=True, goal=WRONG),
            "called as goal.memory",
        ),
        (lambda: TellState(WRONG), "called as find.memory"),
        (lambda: TellState(str, choose=WRONG), "called as choose.memory"),
    ],
    ids=["type", "into", "net without output", "question", "goal", "answer", "choice"],
)
def test_what_cannot_be_asked_or_kept_is_refused(make: Any, why: str) -> None:
    with pytest.raises(StateDefinitionError, match=why):
        make()


async def test_what_is_told_is_text_that_may_have_to_be_awaited() -> None:
    async def find(memory: Memory) -> str:
        return (await memory.goal())[-1].content

    assert (await Brain({Step.ANSWER: TellState(find)}).run("Seven")).answer == "Seven"
    with pytest.raises(StateDefinitionError, match="returned 7"):
        await Brain({Step.ANSWER: TellState(lambda memory: 7)}).run("Seven")  # type: ignore[arg-type, return-value]


def test_a_run_that_waits_is_resumed_without_an_event_loop() -> None:
    @tool(requires_approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    llm = ScriptedLLM([[Action(name="pay", args={"amount": 5}, id="p")], "Paid."])
    brain = Brain(react(llm), tools=[pay])
    result = brain.run_sync("Pay 5")
    assert [call.args for call in result.approvals] == [{"amount": 5}]
    assert brain.resume_sync(approve=[call.id for call in result.approvals]).answer == "Paid."


async def test_an_event_loop_cannot_resume_without_one() -> None:
    with pytest.raises(BrainUseError, match=r"await brain\.resume"):
        Brain(react(ScriptedLLM([]))).resume_sync()


# Checks of the program


async def test_a_check_sees_what_the_run_was_given_and_the_model_corrects_itself() -> None:
    async def affordable(memory: Memory, flight: Flight) -> str | None:
        return None if flight.price <= memory.deps else f"at most {memory.deps}"

    llm = ScriptedLLM([f'{{"number": "A{n}", "price": {n}00}}' for n in (5, 4, 3, 2)])
    state = AskState(llm, "x", output_type=Flight, check=affordable, corrections=3, into="flight")
    memory = MessagesMemory()
    await Brain({Step.PLAN: state}, memory).run("Rome", deps=250)
    assert memory.control.scratch["flight"]["number"] == "A2"
    assert "at most 250" in llm.calls[-1].messages[-1].content

    llm = ScriptedLLM([f'{{"number": "A{n}", "price": {n}00}}' for n in (5, 4)])
    state = AskState(llm, "x", output_type=Flight, check=affordable, into="flight")
    with pytest.raises(MalformedOutputError, match="at most 250"):
        await Brain({Step.PLAN: state}).run("Rome", deps=250)


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def final(kind: str, **args: Any) -> list[Action]:
    return [Action(name=f"final_result_{kind}".rstrip("_"), args=args)]


async def test_the_agent_itself_is_corrected_and_may_call_tools_before_it_answers_again() -> None:
    def cheap(flight: Flight | NoFlight) -> str | None:
        return "too dear" if isinstance(flight, Flight) and flight.price > 100 else None

    llm = ScriptedLLM(
        [
            final("Flight", number="A5", price=500),
            [Action(name="add", args={"a": 1, "b": 2})],
            final("Flight", number="A4", price=400),
            final("Flight", number="A1", price=100),
        ]
    )
    net = react(llm, output_type=Flight | NoFlight, check=cheap, corrections=2, tools=[add])
    result = await Brain(net).run("Rome")
    assert result.output == Flight(number="A1", price=100)
    third = llm.calls[2].messages
    assert any("too dear" in message.content for message in third), "it is told again"
    assert result.answer == '{"number":"A1","price":100}'

    llm = ScriptedLLM(
        [
            final("Flight", number="A5", price=500),
            [Action(name="add", args={"a": 1, "b": 2})],
            final("Flight", number="A4", price=400),
        ]
    )
    with pytest.raises(MalformedOutputError, match="too dear"):
        await Brain(react(llm, output_type=Flight | NoFlight, check=cheap, tools=[add])).run("R")


@pytest.mark.parametrize(
    ("check", "why"),
    [(lambda: None, r"check\(data\) or"), (lambda a, b, c: None, "or check.mem"), (1, "check=1")],
    ids=["nothing", "three", "object"],
)
def test_a_check_that_cannot_be_called_is_refused(check: Any, why: str) -> None:
    with pytest.raises(StateDefinitionError, match=why):
        react(ScriptedLLM([]), output_type=Flight, check=check)


def test_a_check_needs_data() -> None:
    with pytest.raises(StateDefinitionError, match="give output_type= too"):
        react(ScriptedLLM([]), check=lambda flight: None)


# Tools of one net


async def test_tools_of_a_net_are_offered_while_it_runs_only() -> None:
    inner = ScriptedLLM([[Action(name="add", args={"a": 1, "b": 2})], "Three."])
    outer = ScriptedLLM(["Good."])
    net = Net(
        {
            Step.SEARCH: SubnetState(react(inner, tools=[add]), on_done=Step.ANSWER),
            Step.ANSWER: SubnetState(react(outer, prompt="Answer.")),
        }
    )
    memory = MessagesMemory()
    result = await Brain(net, memory).run("1 + 2?")
    assert [tool.name for tool in inner.calls[0].tools] == ["add"]
    assert [m.content for m in result.messages if m.role == "tool"] == ["3"]
    assert memory.available_tools == {}


async def test_approval_of_a_tool_of_the_net_waits_and_continues() -> None:
    @tool(requires_approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    llm = ScriptedLLM([[Action(name="pay", args={"amount": 5}, id="p")], "Paid."])
    brain = Brain(react(llm, tools=[pay]))
    result = await brain.run("Pay 5")
    assert result.stop_reason == "approval"
    result = await brain.resume(edit={"p": {"amount": 6}})
    assert [m.content for m in result.messages if m.role == "tool"] == [
        "[A person changed the arguments of this call first]\npaid 6"
    ]


# Nets inside


class Report(BaseModel):
    text: str


@pytest.mark.parametrize("kind", ["messages", "windowed", "sqlite"])
async def test_a_net_begins_with_nothing_and_gives_data_back(kind: str, tmp_path: Any) -> None:
    memory: Memory = {
        "messages": lambda: MessagesMemory(),
        "windowed": lambda: WindowedMemory(max_messages=5),
        "sqlite": lambda: MessagesMemory(journal=SQLiteJournal(tmp_path / "a.db"), session="s"),
    }[kind]()
    llm = ScriptedLLM([[Action(name="final_result", args={"text": "rain"})]])

    def join(memory: Memory, report: Report) -> str:
        return f"It says: {report.text}"

    searcher = SubnetState(
        react(llm, output_type=Report, prompt="Search."), fork="empty", goal="weather", join=join
    )
    async with memory:
        await memory.update([Message.user("secret plans"), Message.assistant("ok")])
        result = await Brain({Step.SEARCH: searcher}, memory, tools=[add]).run("the long task")
        seen = [message.content for message in llm.calls[0].messages]
        assert not any("secret" in text or "long task" in text for text in seen)
        assert any("weather" in text for text in seen)
        assert [tool.name for tool in llm.calls[0].tools][:1] == ["add"]
        assert result.answer == "It says: rain"
        assert result.output is None


@pytest.mark.parametrize("kind", ["subnet", "items", "branches"])
async def test_a_net_over_two_memories_that_began_with_nothing_continues(
    kind: str, tmp_path: Any
) -> None:
    def work(messages: Sequence[Message]) -> list[Action] | str:
        last = messages[-1]
        return "Done." if last.role is Role.TOOL else [Action(name="add", args={"a": 1, "b": 2})]

    net = react(ScriptedLLM([work] * 8), tools=[add])
    state: State = {
        "subnet": lambda: SubnetState(net, fork="empty"),
        "items": lambda: MapState(lambda memory: ["a", "b"], net, fork="empty"),
        "branches": lambda: ParallelState([net, net], fork="empty"),
    }[kind]()
    journal = str(tmp_path / "a.db")
    short = WindowedMemory(journal=journal, session="s")
    async with LayeredMemory(short, MessagesMemory(journal=journal, session="long")) as memory:
        brain = Brain(Net({Step.SEARCH: state}), memory)
        result = await brain.run("Add.", limits=Limits(max_steps=1))
        steps = 1
        while result.stop_reason == "max_steps":
            result = await brain.resume(limits=Limits(max_steps=(steps := steps + 1)))
    assert result.answer.count("Done.") == (1 if kind == "subnet" else 2)


async def test_items_and_branches_begin_with_nothing_and_their_data_is_joined() -> None:
    def reporter(text: str) -> Net:
        turn = [Action(name="final_result", args={"text": text})]
        return react(ScriptedLLM([turn]), output_type=Report)

    each = ScriptedLLM([[Action(name="final_result", args={"text": "x"})]] * 2)
    net = Net(
        {
            Step.SEARCH: MapState(
                lambda memory: ["a", "b"],
                react(each, output_type=Report),
                fork="empty",
                join=lambda memory, results: "".join(r.output.text for r in results),
                on_done=Step.CHECK,
            ),
            Step.CHECK: ParallelState(
                [reporter("one"), reporter("two")],
                fork="empty",
                join=lambda memory, branches: " ".join(b.output.text for b in branches),
            ),
        }
    )
    memory = MessagesMemory()
    result = await Brain(net, memory).run("secret")
    assert [m.content for m in result.messages if m.role == "assistant"] == ["xx", "one two"]
    goals = [[m.content for m in call.messages if m.role == "user"] for call in each.calls]
    assert sorted(goals) == [["a"], ["b"]]


def test_a_fork_for_a_function_of_an_item_is_refused() -> None:
    with pytest.raises(StateDefinitionError, match="a function of an item has no memory"):
        MapState(lambda memory: [], str, fork="empty")


def test_a_fork_that_is_none_is_refused() -> None:
    with pytest.raises(StateDefinitionError, match="fork='emtpy'"):
        SubnetState(react(ScriptedLLM([])), fork="emtpy")  # type: ignore[arg-type]


# Hand-offs


async def test_a_program_is_told_of_a_hand_off() -> None:
    told: list[tuple[str, str]] = []

    async def note(memory: Memory, sender: str, reason: str) -> None:
        told.append((sender, reason))

    llm = ScriptedLLM([[Action(name="transfer_to_bill", args={"reason": "money"})], "Paid."])
    net = handoff(llm, {"front": HandoffAgent(), "bill": HandoffAgent(on_handoff=note)})
    assert (await Brain(net).run("Pay")).answer == "Paid."
    assert told == [("front", "money")]


async def test_a_program_is_told_of_a_hand_off_in_the_next_turn_if_the_run_ended_before() -> None:
    told: list[str] = []

    async def note(memory: Memory, sender: str, reason: str) -> None:
        told.append(reason)
        if len(told) == 1:
            raise OSError("the telephone is out of order")

    transfers = [[Action(name="transfer_to_bill", args={"reason": "money"})], "Paid.", "Gladly."]
    net = handoff(
        ScriptedLLM(transfers), {"front": HandoffAgent(), "bill": HandoffAgent(on_handoff=note)}
    )
    brain = Brain(net)
    async with brain.stream("Pay") as run:
        async for event in run:
            if isinstance(event, ActionFinished):
                run.stop()
    assert (run.result.stop_reason, told) == ("stopped", [])
    with pytest.raises(OSError, match="telephone"):
        await brain.run("Hello?")
    assert (await brain.run("Hello?")).answer == "Paid."
    assert (await brain.run("Thanks")).answer == "Gladly."
    assert told == ["money", "money"]


@pytest.mark.parametrize("option", ["see", "on_handoff"])
def test_an_option_of_an_agent_that_cannot_be_called_is_refused(option: str) -> None:
    given: Any = {option: 5}
    with pytest.raises(NetDefinitionError, match=f"Agent 'front' has {option}=5. Pass a function"):
        handoff(ScriptedLLM([]), {"front": HandoffAgent(**given)})


async def test_judges_planners_and_told_answers_continue_with_a_choice_too() -> None:
    def choose(memory: Memory) -> Literal[Step.ANSWER]:
        return Step.ANSWER

    llm = ScriptedLLM(['{"steps": []}', "A draft."])
    net = Net(
        {
            Step.PLAN: PlanningState(llm, on_plan=Step.PLAN, choose=choose),
            Step.ANSWER: AnswerState(llm, ask=True, on_done=Step.CHECK),
            Step.CHECK: EvaluationState(
                lambda memory, answer: True,
                on_fail=Step.ANSWER,
                choose=lambda memory: Step.SEARCH,
            ),
            Step.SEARCH: TellState(lambda memory: "Told.", choose=lambda memory: None),
        }
    )
    assert net.edges[Step.PLAN] == (Step.PLAN, Step.ANSWER)
    assert (await Brain(net).run("x")).answer == "Told."
