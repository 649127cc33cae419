"""Questions with a type: asked within a state, a tool, a branch; answered here or elsewhere."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from datetime import date
from enum import Enum, StrEnum
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pytest
from pydantic import (
    AliasChoices,
    BaseModel,
    Field,
    Secret,
    SecretStr,
    computed_field,
    field_validator,
)

from agent_brain import Brain, Memory, Message, MessagesMemory, State, react, tool
from agent_brain.errors import InputNeeded, ResumeError, StateDefinitionError
from agent_brain.memories import (
    Journal,
    PostgresJournal,
    RamJournal,
    RedisJournal,
    SQLiteJournal,
)
from agent_brain.nets import Branch, Delegate, MapState, Net, ParallelState
from agent_brain.states import (
    Ask,
    AskPersonState,
    FunctionState,
    GuardedState,
    InputRequested,
    Notes,
    Together,
)
from agent_brain.testing import FakeMemory, ScriptedLLM, run_net, run_state
from agent_brain.tools import Action, ToolContext
from tests.support import postgres_server, redis_server

pytestmark = pytest.mark.anyio

Open: TypeAlias = Callable[[], AbstractAsyncContextManager[Journal]]


class Seat(BaseModel):
    row: int = Field(ge=1, le=30)
    side: Literal["window", "aisle"]

    @field_validator("row")
    @classmethod
    def _is_not_13(cls, row: int) -> int:
        if row == 13:
            raise ValueError("there is no row 13")
        return row


class Only(Enum):
    HERE = "here"


def net(function: Callable[[Memory], AsyncIterator[Any]]) -> Net:
    return Net({Only.HERE: FunctionState(function)})


async def booking(memory: Memory) -> AsyncIterator[Any]:
    seat = Ask("Which seat?", Seat)
    yield seat
    day = Ask("Which day?", date)
    yield day
    sure = Ask("Shall I book?", bool)
    yield sure
    yield f"{seat.value.row} {seat.value.side} {day.value:%d.%m.} {sure.value}"


async def test_a_state_asks_in_the_middle_and_reads_objects_of_its_types() -> None:
    brain = Brain(net(booking))
    async with brain.stream("Book a seat") as run:
        asked = [event async for event in run if isinstance(event, InputRequested)]
    assert run.result.stop_reason == "input"
    assert [(e.prompt, e.id, e.schema) for e in asked] == [
        ("Which seat?", "", Seat.model_json_schema())
    ]

    await brain.resume(input=Seat(row=4, side="aisle"))
    await brain.resume(input=date(2026, 3, 1))
    result = await brain.resume(input="yes")

    assert result.answer == "4 aisle 01.03. True"


@pytest.mark.parametrize("answer", ['{"row": 4, "side": "aisle"}', {"row": 4, "side": "aisle"}])
@pytest.mark.parametrize("by_id", [False, True])
async def test_an_answer_may_be_text_or_data_by_itself_or_by_the_id(
    answer: object, by_id: bool
) -> None:
    brain = Brain(net(booking))
    await brain.run("Book a seat")

    await brain.resume(input={"": answer} if by_id else answer)

    requests = brain.memory.control.human_requests
    assert requests is not None
    assert requests.questions == {"?2": "Which day?"}


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("window", "'window' is not of type 'object'"),
        ({"row": 31, "side": "aisle"}, "row: 31 is greater than the maximum of 30"),
        ({"": {"row": 3}}, "'side' is a required property"),
        (True, "True is not of type 'object'"),
        ({"row": 3, "side": "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"}, "side: "),
    ],
)
async def test_a_wrong_answer_is_refused_and_changes_nothing(answer: object, problem: str) -> None:
    brain = Brain(net(booking))
    await brain.run("Book a seat")
    before = (await brain.memory.snapshot()).model_dump_json()

    with pytest.raises(ResumeError) as error:
        await brain.resume(input=answer)

    assert f"The answer to 'Which seat?' does not fit: {problem}" in str(error.value)
    assert "abcdefgh" not in str(error.value)
    assert (await brain.memory.snapshot()).model_dump_json() == before


async def test_what_a_validator_refuses_is_asked_again() -> None:
    brain = Brain(net(booking))
    await brain.run("Book a seat")

    result = await brain.resume(input={"row": 13, "side": "aisle"})

    assert result.stop_reason == "input"
    requests = brain.memory.control.human_requests
    assert requests is not None
    assert "there is no row 13" in requests.questions[""]
    await brain.resume(input={"row": 14, "side": "aisle"})
    requests = brain.memory.control.human_requests
    assert requests is not None
    assert requests.questions == {"?2": "Which day?"}


class Wishes(BaseModel):
    seat: str = "any"


async def test_a_misspelt_field_of_a_form_with_defaults_is_asked_again() -> None:
    async def asking(memory: Memory) -> AsyncIterator[Any]:
        wishes = Ask("What do you wish?", Wishes)
        yield wishes
        yield wishes.value.seat

    brain = Brain(net(asking))
    await brain.run("Book a seat")
    assert (await brain.resume(input={"saet": "window"})).stop_reason == "input"
    requests = brain.memory.control.human_requests
    assert requests is not None
    assert "it has the unknown fields 'saet' and lacks 'seat'" in requests.questions[""]
    assert (await brain.resume(input={"seat": "window"})).answer == "window"


@pytest.fixture(params=["ram", "sqlite", "redis", "postgres"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Opens a journal of each kind, as another process would."""
    with ExitStack() as stack:
        if request.param == "ram":
            journal = RamJournal()
            yield lambda: nullcontext(journal)
        elif request.param == "sqlite":
            yield lambda: SQLiteJournal(tmp_path / "journal.db")
        elif request.param == "redis":
            url = redis_server.redis_url()
            prefix = stack.enter_context(redis_server.journal_prefix())
            yield lambda: RedisJournal(url, prefix=prefix)
        else:
            postgres_server.needs_postgres()
            schema = stack.enter_context(postgres_server.new_schema())
            yield lambda: PostgresJournal(postgres_server.URL, schema=schema)


async def test_each_answer_may_come_from_another_process(opened: Open) -> None:
    answers: list[Any] = [None, {"row": 4, "side": "aisle"}, "2026-03-01", True]
    for answer in answers:
        async with opened() as journal, MessagesMemory(journal=journal, session="ann") as memory:
            brain = Brain(net(booking), memory)
            if answer is None:
                result = await brain.run("Book a seat")
            else:
                result = await brain.resume(input=answer)

    assert result.answer == "4 aisle 01.03. True"


PROGRAM = """
import json, os, signal, sys
from enum import Enum, StrEnum
import anyio
from agent_brain import Brain, MessagesMemory
from agent_brain.memories import SQLiteJournal
from agent_brain.nets import Net
from agent_brain.states import Ask, FunctionState

class Only(Enum):
    HERE = "here"

async def guess(memory):
    first = Ask("How many?", int)
    yield first
    if sys.argv[2] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    second = Ask("Sure?", bool)
    yield second
    yield f"{first.value + 1} {second.value}"

async def main():
    async with MessagesMemory(journal=SQLiteJournal(sys.argv[1]), session="ann") as memory:
        brain = Brain(Net({Only.HERE: FunctionState(guess)}), memory)
        answer = json.loads(sys.argv[3]) if len(sys.argv) > 3 else None
        result = await (brain.resume(input=answer) if sys.argv[2] != "run" else brain.run("Guess"))
        print(result.stop_reason.value, result.answer)

anyio.run(main)
"""


def test_an_answer_survives_the_process_that_was_given_it(tmp_path: Path) -> None:
    def live(*arguments: str) -> tuple[int, str]:
        command = [sys.executable, "-c", PROGRAM, str(tmp_path / "journal.db"), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout.strip()

    assert live("run") == (0, "input")
    assert live("die", "41") == (-signal.SIGKILL, "")
    assert live("resume") == (0, "input")  # the first question has its answer
    assert live("resume", "true") == (0, "done 42 True")


async def test_a_question_is_asked_again_in_the_next_step() -> None:
    class Game(Enum):
        GUESS = "guess"

    class Guess(State):
        async def run(self, memory: Memory) -> AsyncIterator[Any]:
            guess = Ask("Your guess?", int)
            yield guess
            memory.control.scratch["won"] = guess.value == 3
            yield f"{guess.value} "

        async def next_state(self, memory: Memory) -> Literal[Game.GUESS] | None:
            return None if memory.control.scratch["won"] else Game.GUESS

    run = await run_net({Game.GUESS: Guess()}, "Play", answers=[1, 2, 3])

    assert run.text == "1 2 3 "


async def test_an_answer_outlives_what_the_state_does_after_it() -> None:
    inner: list[str] = []

    async def inside(memory: Memory) -> AsyncIterator[Any]:
        ask = Ask("Inside?", int)
        yield ask
        inner.append(f"inside {ask.value}")
        yield "."

    async def outside(memory: Memory) -> AsyncIterator[Any]:
        first = Ask("First?", int)
        yield first
        yield Delegate([Branch("sub", net(inside), memory)])
        second = Ask("Second?", int)
        yield second
        await memory.update([Message.assistant(f"{first.value} {second.value}")])

    brain = Brain(net(outside))
    await brain.run("Go")
    await brain.resume(input=1)
    requests = brain.memory.control.human_requests
    assert requests is not None
    assert requests.questions == {"HERE/sub": "Inside?"}
    await brain.resume(input=2)
    await brain.resume(input=3)

    assert inner == ["inside 2"]
    assert (await brain.memory.dump())[-1].content == "1 3"


async def test_a_state_that_is_entered_again_asks_again_also_after_an_inner_net() -> None:
    async def inside(memory: Memory) -> AsyncIterator[Any]:
        yield "."

    async def outside(memory: Memory) -> AsyncIterator[Any]:
        ask = Ask("More?", bool)
        yield ask
        yield Delegate([Branch("sub", net(inside), memory)])
        memory.control.scratch["more"] = ask.value

    again = FunctionState(
        outside, choose=lambda memory: Only.HERE if memory.control.scratch["more"] else None
    )
    run = await run_net({Only.HERE: again}, "Go", answers=[True, True, False])

    assert (run.path, len(run.of(InputRequested))) == ([Only.HERE.name] * 6, 3)


@pytest.mark.parametrize("kind", ["parallel", "map", "nested brain"])
async def test_branches_ask_with_types(kind: str) -> None:
    async def seat(memory: Memory) -> AsyncIterator[Any]:
        ask = Ask("Which seat?", Seat)
        yield ask
        yield f"row {ask.value.row}"

    if kind == "parallel":
        brain = Brain(Net({Only.HERE: ParallelState({"a": net(seat), "b": net(seat)})}))
    elif kind == "map":
        brain = Brain(Net({Only.HERE: MapState(lambda _: ["a", "b"], net(seat))}))
    else:
        calls = [Action(name="seat", args={"task": name}, id=name) for name in "ab"]
        inner = Brain(net(seat)).as_tool("seat", "Choose a seat.")
        brain = Brain(react(ScriptedLLM([calls, "Done."])), tools=[inner])

    await brain.run("Go")
    requests = brain.memory.control.human_requests
    assert requests is not None
    first, second = requests.questions
    assert {*requests.schemas} == {first, second}
    with pytest.raises(ResumeError, match="row: 99 is greater"):
        await brain.resume(input={first: {"row": 1, "side": "aisle"}, second: {"row": 99}})
    result = await brain.resume(input={first: {"row": 1, "side": "aisle"}})
    assert result.stop_reason == "input"
    result = await brain.resume(input={"row": 2, "side": "aisle"})

    assert result.stop_reason == "done"
    said = " ".join(message.content for message in result.messages)
    assert "row 1" in said
    assert "row 2" in said


async def test_a_retried_state_keeps_its_answers() -> None:
    tries: list[int] = []

    class Shaky(State):
        async def run(self, memory: Memory) -> AsyncIterator[Any]:
            first = Ask("First?", int)
            yield first
            tries.append(first.value)
            if len(tries) == 1:
                raise OSError("once")
            second = Ask("Second?", int)
            yield second
            yield f"{first.value} {second.value}"

        async def next_state(self, memory: Memory) -> None:
            return None

    guarded = GuardedState(Shaky(), retries=1, backoff=0)
    run = await run_net({Only.HERE: guarded}, "Go", answers=[1, 2])

    assert run.answer == "1 2"
    assert [event.prompt for event in run.of(InputRequested)] == ["First?", "Second?"]


async def test_several_are_asked_at_once_by_their_names() -> None:
    async def both(memory: Memory) -> AsyncIterator[Any]:
        together: Together[Any] = Together([Ask("Row?", int, name="row"), Ask("Why?", name="why")])
        yield together
        yield f"{together.results}"

    brain = Brain(net(both))
    await brain.run("Go")
    assert (await brain.resume(input={"why": "the view"})).stop_reason == "input"
    assert (await brain.resume(input={"row": "7"})).answer == "[7, 'the view']"


async def test_several_at_once_without_names_are_refused() -> None:
    async def both(memory: Memory) -> AsyncIterator[Any]:
        yield Together([Ask("Row?", int), Ask("Why?")])

    with pytest.raises(StateDefinitionError, match="give each a name="):
        await Brain(net(both)).run("Go")


async def test_a_question_may_be_left_open() -> None:
    async def tip(memory: Memory) -> AsyncIterator[Any]:
        ask = Ask("How much is the tip?", int | None)
        yield ask
        yield f"tip {ask.value}"

    assert (await run_net(net(tip), "Go", answers="")).answer == "tip None"
    brain = Brain(net(tip))
    await brain.run("Go")
    assert (await brain.resume(input={"": None})).answer == "tip None"


async def test_a_type_that_is_none_is_refused_where_it_is_written() -> None:
    with pytest.raises(StateDefinitionError, match=r"Ask\('Why\?'\): 'int' is not a type"):
        Ask("Why?", "int")
    with pytest.raises(StateDefinitionError, match=r"Ask.value was read before"):
        _ = Ask("Why?").value


async def test_the_event_alone_may_have_a_schema_too() -> None:
    class Count(State):
        async def run(self, memory: Memory) -> AsyncIterator[Any]:
            if memory.control.input is None:
                yield InputRequested("How many?", schema={"type": "integer"})
            else:
                yield f"{memory.control.answer_to('')!r} {memory.control.input!r}"

        async def next_state(self, memory: Memory) -> None:
            return None

    assert (await run_state(Count(), FakeMemory("Go"), input="7")).text == "7 '7'"


async def test_a_state_in_a_test_is_given_objects() -> None:
    state, memory = FunctionState(booking), FakeMemory("Go")
    for row in (1, 2):  # the same memory again
        answers = [Seat(row=row, side="aisle"), date(2026, 3, 1), False]
        run = await run_state(state, memory, input=answers)
        assert run.text == f"{row} aisle 01.03. False"


# -- tools


def asking(runs: list[str]) -> Any:
    @tool(requires_approval=True)
    def reserve(flight: str, context: ToolContext) -> str:
        """Reserve a seat."""
        runs.append(flight)
        seat = context.ask("Which seat?", Seat)
        if seat.side == "window" and not context.ask(
            "It costs 5 euros more. Is that all right?", bool
        ):
            return "not reserved"
        return f"{flight}: row {seat.row}"

    return reserve


async def test_a_tool_that_asks_runs_again_with_the_answers(opened: Open) -> None:
    runs: list[str] = []
    looked: list[str] = []

    @tool
    def look(what: str) -> str:
        """Look."""
        looked.append(what)
        return "seen"

    calls = [
        Action(name="reserve", args={"flight": "F1"}, id="one"),
        Action(name="look", args={"what": "sky"}, id="two"),
    ]

    async def part(llm: ScriptedLLM, **decisions: Any) -> Any:
        tools = [asking(runs), look]
        async with (
            opened() as journal,
            MessagesMemory(tools, journal=journal, session="ann") as memory,
        ):
            brain = Brain(react(llm), memory)
            done = await (brain.resume(**decisions) if decisions else brain.run("Go"))
            return done, memory.control.human_requests

    await part(ScriptedLLM([calls]))
    _, asked = await part(ScriptedLLM([]), approve=True)
    assert asked.schemas == {"one": Seat.model_json_schema()}
    with pytest.raises(ResumeError, match="does not fit"):
        await part(ScriptedLLM([]), input={"one": "the front"})
    _, asked = await part(ScriptedLLM([]), input={"row": 13, "side": "window"})
    assert "there is no row 13" in asked.questions["one"]
    _, asked = await part(ScriptedLLM([]), input={"row": 2, "side": "window"})
    assert asked.questions == {"one": "It costs 5 euros more. Is that all right?"}
    done, _ = await part(ScriptedLLM(["Done."]), input="yes")

    assert done.answer == "Done."
    results = [message.content for message in done.messages if message.role == "tool"]
    assert results == ["F1: row 2", "seen"]
    assert (len(runs), looked) == (4, ["sky"])


async def test_the_answer_to_input_needed_is_the_result_and_fits_its_type() -> None:
    @tool
    def choose() -> str:
        """Choose."""
        raise InputNeeded("Which side?", Literal["window", "aisle"])

    llm = ScriptedLLM([Action(name="choose", args={}), "Done."])
    brain = Brain(react(llm), tools=[choose])
    await brain.run("Go")
    with pytest.raises(ResumeError, match="'middle' is not one of"):
        await brain.resume(input="middle")

    result = await brain.resume(input="Window")

    assert result.messages[-2].content == "window"


async def test_where_nobody_can_be_asked_the_model_is_told() -> None:
    from agent_brain.tools import call_tool

    runs: list[str] = []
    action = Action(name="reserve", args={"flight": "F1"})

    outcome = await call_tool(action, {"reserve": asking(runs)})

    assert outcome.is_error
    assert "nobody can be asked here" in outcome.content


async def test_what_was_asked_can_be_replayed() -> None:
    runs: list[str] = []
    call = Action(name="reserve", args={"flight": "F1"})
    brain = Brain(react(ScriptedLLM([call, "Done."])), MessagesMemory([asking(runs)]), trace=True)
    await brain.run("Go")
    await brain.resume(approve=True)
    await brain.resume(input={"row": 2, "side": "aisle"})

    replay = await brain.replay()

    assert replay.equal, str(replay)
    other = Brain(net(booking), MessagesMemory(journal=RamJournal(), session="x"), trace=True)
    await other.run("Book a seat")
    for answer in ({"row": 4, "side": "aisle"}, "2026-03-01", "no"):
        await other.resume(input=answer)
    assert (await other.replay()).equal
    assert json.dumps([event.to_dict() for event in replay.events])


# -- what was kept, and what was given


async def test_two_questions_of_one_name_are_refused() -> None:
    async def both(memory: Memory) -> AsyncIterator[Any]:
        row = Ask("Row?", int, name="it")
        yield row
        yield Ask("Why?", name="it")

    brain = Brain(net(both))
    await brain.run("Go")
    with pytest.raises(StateDefinitionError, match=r"name='it'\): the state has asked a question"):
        await brain.resume(input=7)
    with pytest.raises(StateDefinitionError, match=r"name='it'\): the state has asked a question"):
        await Brain(net(at_once)).run("Go")


async def at_once(memory: Memory) -> AsyncIterator[Any]:
    yield Together([Ask("Row?", int, name="it"), Ask("Why?", name="it")])


@pytest.mark.parametrize("name", ["", "it"])
@pytest.mark.parametrize("kind", [str, bool, Seat, {"type": "boolean"}])
async def test_an_answer_that_was_kept_for_another_type_is_asked_again(
    kind: Any, name: str
) -> None:
    kinds = [int, kind]

    async def asks(memory: Memory) -> AsyncIterator[Any]:
        yield Ask("What?", kinds[0], name=name)
        yield Ask("Sure?", bool)

    brain = Brain(net(asks))
    await brain.run("Go")
    await brain.resume(input=7)
    del kinds[0]  # the program is another one
    result = await brain.resume(input=True)

    assert result.stop_reason == "input"
    requests = brain.memory.control.human_requests
    assert requests is not None
    assert requests.questions[name].startswith("What?\n\nThat could not be used: ")


async def test_a_tool_is_not_given_an_answer_of_another_type() -> None:
    kinds: list[Any] = [int, str]

    @tool
    def choose(context: ToolContext) -> str:
        """Choose."""
        what = context.ask("What?", kinds[0])
        return f"{what!r} {context.ask('Sure?', bool)}"

    brain = Brain(react(ScriptedLLM([Action(name="choose"), "Done."])), tools=[choose])
    await brain.run("Go")
    await brain.resume(input=7)
    del kinds[0]
    await brain.resume(input=True)
    await brain.resume(input="seven")
    result = await brain.resume(input="no")

    assert result.messages[-2].content == "'seven' False"


class Login(BaseModel):
    user: str = Field(alias="userName", exclude=True)
    password: SecretStr
    code: Secret[int] | None = Field(None, validation_alias=AliasChoices("pin", "code"))

    @computed_field  # type: ignore[prop-decorator]
    @property
    def length(self) -> int:
        return len(self.password.get_secret_value())


@dataclass
class Logins:
    all: list[Login]


async def test_an_object_comes_back_equal_in_another_process(opened: Open) -> None:
    given = Logins([Login.model_validate({"userName": "ann", "password": "s3cret!", "pin": 7})])
    found: list[Any] = []

    async def logs_in(memory: Memory) -> AsyncIterator[Any]:
        ask = Ask("Who?", Logins)
        yield ask
        found.append(ask.value)
        yield Ask("Sure?", bool)

    for answer in (None, given, True):
        async with opened() as journal, MessagesMemory(journal=journal, session="ann") as memory:
            brain = Brain(net(logs_in), memory)
            await (brain.run("Go") if answer is None else brain.resume(input=answer))

    assert found == [given, given]


class Mood(Enum):
    UNSET = None
    EMPTY = ""
    FINE = "fine"
    BOTH = ("fine", "tired")


class Shade(StrEnum):
    LOW = "yes"
    NONE = ""


async def given_back(kind: Any, given: Any) -> Any:
    """Return what a state that asks for a type reads when it is given an answer."""
    found: list[Any] = []

    async def asks(memory: Memory) -> AsyncIterator[Any]:
        ask = Ask("What?", kind)
        yield ask
        found.append(ask.value)

    brain = Brain(net(asks))
    await brain.run("Go")
    assert (await brain.resume(input=given)).stop_reason == "done"
    return found[-1]


@pytest.mark.parametrize(
    ("kind", "given", "value"),
    [
        *((Mood, mood, mood) for mood in Mood),
        *((Mood | None, mood, mood) for mood in (Mood.EMPTY, Mood.BOTH)),
        *((Shade | None, shade, shade) for shade in Shade),
        (Mood, "", Mood.EMPTY),
        (Mood, "FINE", Mood.FINE),
        (Mood, ["fine", "tired"], Mood.BOTH),
        (Literal["", None], "", ""),
        ({"enum": ["", 0, None]}, "", ""),
        (str | None, "", None),
        (str | None, {"": None}, None),
        (bool | str, {"": "yes"}, "yes"),
    ],
)
async def test_a_choice_comes_back_as_it_was_given(kind: Any, given: Any, value: Any) -> None:
    found = await given_back(kind, given)
    assert (type(found), found) == (type(value), value)


class Account(Notes):
    login: Login | None = None
    words: dict[str, list[SecretStr]] = {}


async def test_a_secret_is_kept_where_a_state_keeps_an_answer() -> None:
    def asks(kind: Any, into: Any) -> Net:
        return Net({Only.HERE: AskPersonState("Who?", kind, into=into)})

    login = {"userName": "ann", "password": "s3cret!", "pin": 7}
    memory = MessagesMemory()
    brain = Brain(asks(dict[str, list[SecretStr]], Account), memory)
    await brain.run("Go")
    await brain.resume(input={"": {"first": ["s3cret!"]}})
    [word] = Account.read(memory).words["first"]
    assert word.get_secret_value() == "s3cret!"

    brain = Brain(asks(Login, "login"))
    await brain.run("Go")
    await brain.resume(input=login)
    kept = brain.memory.control.scratch["login"]
    assert (kept["password"], kept["code"]) == ("s3cret!", 7)
    assert "s3cret!" not in (await brain.memory.dump())[-1].content


@pytest.mark.parametrize(
    ("kind", "given", "problem"),
    [
        (Seat, {}, "'row' is a required property"),
        (str, {}, "it is not a text: {}"),
        (str, {"name": "Ann"}, "No question 'name' waits"),
        (str, 5, "it is not a text: 5"),
    ],
)
async def test_a_dict_that_is_no_answer_is_refused_and_the_run_still_waits(
    kind: Any, given: object, problem: str
) -> None:
    async def asks(memory: Memory) -> AsyncIterator[Any]:
        yield Ask("What?", kind)

    brain = Brain(net(asks))
    await brain.run("Go")
    with pytest.raises(ResumeError, match=problem):
        await brain.resume(input=given)

    assert brain.memory.control.human_requests is not None
    assert brain.memory.control.human_requests.questions == {"": "What?"}


async def test_a_form_without_required_fields_may_be_left_empty() -> None:
    class Wishes(BaseModel):
        food: str = "any"

    async def asks(memory: Memory) -> AsyncIterator[Any]:
        ask = Ask("What?", Wishes)
        yield ask
        yield ask.value.food

    brain = Brain(net(asks))
    await brain.run("Go")
    assert (await brain.resume(input={})).answer == "any"


@pytest.mark.parametrize(
    ("prompt", "name", "problem"),
    [
        (5, "", r"Ask\(5\): the question must be a text"),
        ("", "", r"Ask\(''\): the question must be a text"),
        ("Why?", 5, r"Ask\('Why\?', name=5\): the name must be a text"),
        ("Why?", "?2", r"without .\?. in front"),
    ],
)
async def test_a_question_that_is_none_is_refused(prompt: Any, name: Any, problem: str) -> None:
    with pytest.raises(StateDefinitionError, match=problem):
        Ask(prompt, name=name)


@pytest.mark.parametrize("fails", [False, True])
async def test_a_question_that_a_tool_catches_is_asked_all_the_same(fails: bool) -> None:
    @tool
    def choose(context: ToolContext) -> str:
        """Choose."""
        try:
            return f"side {context.ask('Which side?')}"
        except Exception as error:
            if fails:
                raise ValueError("I failed") from error
            return "no side"

    brain = Brain(react(ScriptedLLM([Action(name="choose"), "Done."])), tools=[choose])
    assert (await brain.run("Go")).stop_reason == "input"
    result = await brain.resume(input="left")

    assert result.messages[-2].content == "side left"
