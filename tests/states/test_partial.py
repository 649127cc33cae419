"""The run's output and the arguments of calls, while they come."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    Secret,
    SecretStr,
    field_validator,
    model_validator,
)

from agent_brain import Brain, LiteLLM, react
from agent_brain.memories import is_partial
from agent_brain.nets import ParallelState
from agent_brain.states import (
    ActionDelta,
    AgentEvent,
    AnswerState,
    ArgumentsDelta,
    Hook,
    MalformedOutputError,
    ModelRequest,
    ModelResponse,
    PartialOutput,
    Piece,
    RunFinished,
)
from agent_brain.states.output_types import shape_of
from agent_brain.states.partial import PartialReader
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action, tool
from tests.support.openai_server import CallDelta, Cut, OpenAIServer, Reply


class By(Enum):
    CAR = "car"
    FERRY = "car ferry"


class Walk(BaseModel):
    kind: Literal["walk"]
    km: float


class Ride(BaseModel):
    model_config = ConfigDict(strict=True)
    kind: Literal["walk fast", "ride"]
    by: By
    seats: Annotated[list[str], Field(min_length=2)]


class Place(BaseModel):
    name: str = Field(alias="placeName")
    inside: list[Place] = []

    @field_validator("name")
    @classmethod
    def refuse_most(cls, name: str) -> str:
        assert name == "Bergen", "no other name is right"
        return name


class Trip(BaseModel):
    title: str
    day: date
    price: Decimal
    to: Place
    legs: list[Walk | Annotated[Ride, Field()]]
    notes: dict[str, str | int] = {}
    known: bool | None = None

    @model_validator(mode="after")
    def refuse_half(self) -> Trip:
        assert self.legs[0].kind == "walk"
        return self


TRIP = {
    "title": 'Fjords 2026: "\\ é \U0001f6a2 {"',
    "day": "2026-05-17",
    "price": "1200.50",
    "to": {"placeName": "Bergen", "inside": [{"placeName": "Bergen", "inside": []}]},
    "legs": [
        {"kind": "walk", "km": 12.25},
        {"kind": "ride", "by": "car ferry", "seats": ["1", "2b"]},
    ],
    "notes": {"pack": "warm", "days": 3},
    "known": True,
}


class City(BaseModel):
    name: str
    population: int


CITY = '{"name": "Oslo", "population": 717710}'
OSLO: dict[str, Any] = {"name": "Oslo", "population": 717710}


def cut(text: str, pieces: int = 5) -> list[str]:
    size = -(-len(text) // pieces)
    return [text[i : i + size] for i in range(0, len(text), size)]


def deltas(text: str, call: str = "c1", name: str = "final_result") -> list[ArgumentsDelta]:
    return [ArgumentsDelta(call, name, piece) for piece in cut(text)]


async def events_of(brain: Brain[Any]) -> list[AgentEvent]:
    async with brain.stream("Tell me.") as run:
        return [event async for event in run]


def outputs(events: list[AgentEvent]) -> list[Any]:
    return [event.output for event in events if isinstance(event, PartialOutput)]


def begins(part: Any, whole: Any, path: tuple[Any, ...] = ()) -> bool:
    """Whether ``part`` is the beginning of ``whole``, with nothing half but free texts."""
    if isinstance(part, dict):
        return part.keys() <= whole.keys() and all(
            begins(part[key], whole[key], (*path, key)) for key in part
        )
    if isinstance(part, list):
        return len(part) <= len(whole) and all(map(begins, part, whole, [path] * len(part)))
    free = path[-1:] in (("title",), ("placeName",), ("seats",))
    return bool(part == whole or (free and isinstance(part, str) and whole.startswith(part)))


# --- reading ---


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_whatever_the_pieces_nothing_is_shown_that_is_cut(seed: int, ascii_only: bool) -> None:
    text, chance = json.dumps(TRIP, ensure_ascii=ascii_only), random.Random(seed)
    reader = shape_of(Trip).partial()
    seen = []
    while text:
        size = chance.randint(1, 6)
        if reader.add(text[:size]):
            seen.append(reader.value)
        text = text[size:]
    assert len(seen) > 20
    assert all(begins(value, TRIP) for value in seen)


@dataclass
class Point:
    x: int
    by: By


@pytest.mark.parametrize(
    ("kind", "text", "shown"),
    [
        (int, '{"value": 12', None),
        (int, '{"value": 12}', 12),
        (str, '{"value": "Os', "Os"),
        (date, '{"value": "2026-05-1', None),
        (list[int], '{"value": [1, 23', [1]),
        (list[By], '{"value": ["car", "car', ["car"]),
        (tuple[str, By], '{"value": ["car", "car', ["car"]),
        (By | str, '{"value": "ca', "ca"),
        (Decimal, '{"value": "1200.5', None),
        (int | str, '{"value": "12', None),
        (Point, '{"x": 3, "by": "car', {"x": 3}),
        (dict[str, float], '{"a": 1.5, "b": 2.', {"a": 1.5}),
        (Walk | Ride, '{"type": "Walk", "value": {"kind": "walk", "km": 12.2', {"kind": "walk"}),
        (Any, '{"value": {"a": "b', {"a": "b"}),
        (City, 'It is:\n```json\n{"name": "Os', {"name": "Os"}),
        (City, "{name: 'Oslo'", None),
        (City, '{"name": "\ud83d', None),
        (City, "[" * 500, None),
    ],
    ids=str,
)
def test_values_of_any_type_are_read_as_far_as_they_are_whole(
    kind: Any, text: str, shown: Any
) -> None:
    reader = shape_of(kind).partial()
    reader.add(text)
    assert reader.value == shown


def test_a_long_object_is_not_read_again_for_every_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    class Counting(PartialReader):
        def _read(self, text: str) -> Any:
            read.append(len(text))
            return super()._read(text)

    text = json.dumps({"value": [f"item {number}" for number in range(6000)]})
    reader = Counting(shape_of(list[str]).schema, wrapped=True)
    for start in range(0, len(text), 4):
        reader.add(text[start : start + 4])
    assert sum(read) < 18 * len(text)
    assert len(reader.value) > 5600


# --- in a run ---


def brain_of(how: str, *texts: str, hooks: tuple[Hook, ...] = ()) -> Brain[Any]:
    """A brain whose model gives these answers, as text or by the tool for the answer."""
    if how == "text":
        llm = ScriptedLLM([cut(text) for text in texts])
        return Brain({By.CAR: AnswerState(llm, output_type=City)}, hooks=hooks)
    calls = [Action(name="final_result", args=json.loads(text), id="c1") for text in texts]
    turns = [[*deltas(text), call] for text, call in zip(texts, calls, strict=True)]
    return Brain(react(ScriptedLLM(turns), output_type=City), hooks=hooks)


BOTH = pytest.mark.parametrize("how", ["text", "call"])


@BOTH
@pytest.mark.anyio
async def test_the_output_grows_in_the_events(how: str) -> None:
    events = await events_of(brain_of(how, CITY))
    grown = outputs(events)
    assert grown[0] == {"name": "Os"} or grown[0] == {"name": "Oslo"}
    assert grown[-2:] == [{"name": "Oslo"}, OSLO]
    finished = events[-1]
    assert isinstance(finished, RunFinished)
    assert finished.output == City(name="Oslo", population=717710)
    (response,) = {event.response_id for event in events if isinstance(event, PartialOutput)}
    assert response == next(e.response_id for e in events if e.kind == "response_started")
    assert not any(isinstance(event, ActionDelta) for event in events)


@BOTH
@pytest.mark.anyio
async def test_outputs_are_the_object_as_it_grows(how: str) -> None:
    async with brain_of(how, CITY).stream("Tell me.") as run:
        seen = [output async for output in run.outputs()]
    assert seen[-1] == OSLO
    assert len(seen) > 1
    assert run.result.output == City(**OSLO)


@BOTH
@pytest.mark.anyio
async def test_an_object_that_must_be_corrected_is_taken_back(how: str) -> None:
    wrong = '{"name": "Oslo", "population": "many"}'
    events = await events_of(brain_of(how, wrong, CITY))
    grown = outputs(events)
    assert grown.count(None) == 1
    first, second = grown[: grown.index(None)], grown[grown.index(None) + 1 :]
    assert first
    assert second[-1] == OSLO
    ids = [event.response_id for event in events if isinstance(event, PartialOutput)]
    assert len(set(ids[: len(first) + 1])) == 1
    assert set(ids[: len(first) + 1]).isdisjoint(ids[len(first) + 1 :])


@BOTH
@pytest.mark.anyio
async def test_an_object_that_never_fits_is_taken_back(how: str) -> None:
    wrong = '{"name": "Oslo", "population": "many"}'
    seen: list[AgentEvent] = []

    async def read() -> None:
        async with brain_of(how, wrong, wrong).stream("Tell me.") as run:
            async for event in run:
                seen.append(event)

    with pytest.raises(MalformedOutputError):
        await read()
    assert outputs(seen)[-1] is None


class Change(Hook):
    async def after_model_call(self, request: ModelRequest, response: ModelResponse) -> Any:
        return replace(response, text=CITY.replace("Oslo", "Rome"))


@pytest.mark.anyio
async def test_a_response_that_a_hook_changes_replaces_what_was_shown() -> None:
    grown = outputs(await events_of(brain_of("text", CITY, hooks=(Change(),))))
    assert grown[0]["name"].startswith("Os")
    assert grown[-1] == {**OSLO, "name": "Rome"}


class Whole(Hook):
    async def on_model_error(self, request: ModelRequest, error: Exception) -> Any:
        return ModelResponse(text=CITY.replace("Oslo", "Rome"))


@pytest.mark.anyio
async def test_what_a_hook_answers_to_an_error_is_not_added_to_half_an_object() -> None:
    llm = ScriptedLLM([['{"name": "Oslo", "population":', ConnectionError("gone")]])
    brain = Brain({By.CAR: AnswerState(llm, output_type=City)}, hooks=[Whole()])
    assert outputs(await events_of(brain)) == [{"name": "Oslo"}, {**OSLO, "name": "Rome"}]


@BOTH
@pytest.mark.anyio
async def test_a_run_whose_events_nobody_reads_reads_no_half_object(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: object) -> bool:
        raise AssertionError("somebody reads")

    monkeypatch.setattr(PartialReader, "add", read)
    assert (await brain_of(how, CITY).run("Tell me.")).output == City(**OSLO)
    text = "".join([piece async for piece in brain_of(how, CITY).answer("Tell me.")])
    assert json.loads(text) == OSLO
    with pytest.raises(AssertionError):
        await events_of(brain_of(how, CITY))


@pytest.mark.anyio
async def test_the_object_of_a_branch_is_marked_as_an_aside() -> None:
    branches = {name: AnswerState(ScriptedLLM([cut(CITY)]), output_type=City) for name in "ab"}
    net = {By.CAR: ParallelState({name: {By.CAR: state} for name, state in branches.items()})}
    events = await events_of(Brain(net))
    grown = [event for event in events if isinstance(event, PartialOutput)]
    assert {event.path[-1] for event in grown} == {"a", "b"}
    assert all(event.thought for event in grown)


# --- the arguments of calls ---


@tool
async def weather(city: str, days: int = 1) -> str:
    """The weather in a city.

    Args:
        city: Its name.
        days: How many days.
    """
    return f"Rain in {city} for {days} days"


ARGUMENTS = '{"city": "Oslo", "days": 3}'
CALL = Action(name="weather", args={"city": "Oslo", "days": 3}, id="c1")


async def asked(*turns: list[Piece | BaseException] | str, **options: Any) -> list[AgentEvent]:
    return await events_of(Brain("react", tools=[weather], llm=ScriptedLLM(turns), **options))


def texts_of(events: list[AgentEvent]) -> dict[str, str]:
    found: dict[str, str] = {}
    for event in events:
        if isinstance(event, ActionDelta):
            found[event.id] = found.get(event.id, "") + event.text
    return found


def dropped(events: list[AgentEvent]) -> list[str]:
    return [event.id for event in events if isinstance(event, ActionDelta) and event.dropped]


@pytest.mark.anyio
async def test_arguments_come_as_events_before_the_call_is_requested() -> None:
    events = await asked([*deltas(ARGUMENTS, "c1", "weather"), CALL], "Rain.")
    kinds = [event.kind for event in events]
    assert kinds.count("action_delta") == 5
    assert kinds.index("action_requested") == kinds.index("action_delta") + 5
    assert texts_of(events) == {"c1": ARGUMENTS}
    assert not dropped(events)


@pytest.mark.anyio
async def test_a_call_that_does_not_come_is_taken_back() -> None:
    half = deltas(ARGUMENTS, "c0", "weather")[:3]
    events = await asked([*half, *deltas(ARGUMENTS, "c1", "weather"), CALL], "Rain.")
    assert dropped(events) == ["c0"]


class Answer(Hook):
    async def on_model_error(self, request: ModelRequest, error: Exception) -> Any:
        return ModelResponse(text="No idea.")


@pytest.mark.anyio
async def test_a_call_is_taken_back_when_a_hook_answers_for_the_model() -> None:
    half = deltas(ARGUMENTS, "c1", "weather")[:3]
    events = await asked([*half, ConnectionError("gone")], hooks=[Answer()])
    assert dropped(events) == ["c1"]
    assert events[-1].kind == "run_finished"


class Held(Hook):
    buffer = True

    async def after_model_call(self, request: ModelRequest, response: ModelResponse) -> None:
        """Have it held back."""


@pytest.mark.anyio
async def test_a_hook_that_holds_the_text_back_holds_arguments_and_objects_back() -> None:
    events = await asked([*deltas(ARGUMENTS, "c1", "weather"), CALL], "Rain.", hooks=[Held()])
    assert not texts_of(events)
    assert outputs(await events_of(brain_of("call", CITY, hooks=(Held(),)))) == [OSLO]


# --- from a provider ---

litellm_only = pytest.mark.filterwarnings("ignore:Accessing the 'model_:DeprecationWarning:litellm")


def call_deltas(call: str, name: str, text: str) -> list[CallDelta]:
    first, *rest = cut(text)
    return [CallDelta(0, first, id=call, name=name), *(CallDelta(0, piece) for piece in rest)]


def model_of(server: OpenAIServer, **options: Any) -> LiteLLM:
    settings = {"api_base": server.url, "api_key": "some-secret-key", "retries": 0, "backoff": 0}
    return LiteLLM("openai/scripted", **{**settings, **options})


@litellm_only
@pytest.mark.asyncio
async def test_litellm_gives_arguments_and_outputs_as_they_come() -> None:
    script = [
        Reply("Let me see.", *call_deltas("c1", "weather", ARGUMENTS)),
        Reply(*call_deltas("c2", "final_result", CITY)),
    ]
    with OpenAIServer(script) as server:
        llm = model_of(server)
        events = await events_of(Brain("react", tools=[weather], llm=llm, output_type=City))
        await llm.aclose()
    assert texts_of(events) == {"c1": ARGUMENTS}
    assert outputs(events)[-2:] == [{"name": "Oslo"}, OSLO]


@litellm_only
@pytest.mark.asyncio
async def test_an_attempt_that_fails_between_arguments_is_made_again_and_taken_back() -> None:
    calls = call_deltas("c1", "weather", ARGUMENTS)
    outs = call_deltas("c3", "final_result", CITY)
    script = [
        Reply(*calls[:3], Cut()),
        Reply(*call_deltas("c2", "weather", ARGUMENTS)),
        Reply(*outs[:3], Cut()),
        Reply(*call_deltas("c4", "final_result", CITY)),
    ]
    with OpenAIServer(script) as server:
        llm = model_of(server, retries=1)
        events = await events_of(Brain("react", tools=[weather], llm=llm, output_type=City))
        await llm.aclose()
    assert dropped(events) == ["c1"]
    assert texts_of(events)["c2"] == ARGUMENTS
    requested = [event.action.id for event in events if event.kind == "action_requested"]
    assert requested == ["c2"]
    known = [event.id for event in events if isinstance(event, ActionDelta)]
    assert known.index("c2") > len(known) - 1 - known[::-1].index("c1")  # it is not shown beside it
    grown = outputs(events)
    assert grown.count(None) == 1
    assert grown[grown.index(None) + 1 :] == [{"name": "Oslo"}, OSLO]


@litellm_only
@pytest.mark.asyncio
async def test_calls_without_ids_keep_the_ones_that_were_shown() -> None:
    call = [CallDelta(0, '{"city": ', name="weather"), CallDelta(0, '"Oslo"}')]
    with OpenAIServer([Reply(*call), Reply("Rain.")]) as server:
        llm = model_of(server)
        events = await events_of(Brain("react", tools=[weather], llm=llm))
        await llm.aclose()
    (requested,) = [event.action for event in events if event.kind == "action_requested"]
    assert texts_of(events) == {requested.id: '{"city": "Oslo"}'}


class Login(BaseModel):
    user: str
    password: SecretStr
    old: list[SecretStr | None] = []
    others: dict[str, SecretStr] = {}


@pytest.mark.parametrize("how", ["text", "call"])
@pytest.mark.anyio
async def test_secrets_are_shown_as_asterisks_while_they_come_too(how: str) -> None:
    login: dict[str, Any] = {
        "user": "ann",
        "password": "hunter22",
        "old": ["pw1", None],
        "others": {"x": "pw2"},
    }
    turn: list[Any] = cut(json.dumps(login), 12)
    if how == "call":
        turn = [*deltas(json.dumps(login)), Action(name="final_result", args=login, id="c1")]
    llm = ScriptedLLM([turn])
    answers = {By.CAR: AnswerState(llm, output_type=Login)}
    events = await events_of(Brain(react(llm, output_type=Login) if how == "call" else answers))
    assert not [event for event in events if "hunter" in str(event) or "pw" in str(event)]
    stars = "*" * 10
    whole = {"user": "ann", "password": stars, "old": [stars, None], "others": {"x": stars}}
    assert outputs(events)[-1] == whole
    assert outputs(events)[1]["password"] == stars


def test_nothing_is_read_of_secrets_that_a_schema_does_not_mark() -> None:
    reader = shape_of(dict[str, Secret[int]]).partial()
    assert not reader.add('{"pin": 1234, "more": 5')
    assert reader.value is None


@pytest.mark.anyio
async def test_the_part_of_an_object_that_was_seen_is_kept_when_the_run_is_left() -> None:
    texts = cut(CITY, 12)
    brain = Brain({By.CAR: AnswerState(ScriptedLLM([texts, [CITY]]), output_type=City)})
    async with brain.stream("Tell me.") as run:
        async for event in run:
            if isinstance(event, PartialOutput):
                break
    assert isinstance(event, PartialOutput)
    kept = (await brain.memory.dump())[-1]
    assert is_partial(kept)
    assert json.loads(kept.content) == event.output == json.loads(run.result.answer)

    result = await brain.resume()
    assert result.output == City(**OSLO)
    assert [m.content for m in await brain.memory.dump()] == [result.answer]


@pytest.mark.anyio
async def test_a_part_that_nobody_has_seen_or_that_was_taken_back_is_not_kept() -> None:
    turn = [*cut(CITY), ConnectionError("gone")]
    brain = Brain({By.CAR: AnswerState(ScriptedLLM([turn, turn]), output_type=City)})
    with pytest.raises(ConnectionError):
        await brain.run("Tell me.")
    with pytest.raises(ConnectionError):
        await events_of(brain)
    assert not any(is_partial(message) for message in await brain.memory.dump())
