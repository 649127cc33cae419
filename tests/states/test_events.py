"""Events: what happened, as typed data and as one JSON object."""

from __future__ import annotations

import dataclasses
import json
import math
import typing
from datetime import UTC

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError

from agent_brain.memories import Attachment, Message, RecalledItem
from agent_brain.states import (
    ActionFinished,
    ActionRequested,
    AgentEvent,
    CitedSource,
    Event,
    MessageReceived,
    OtherEvent,
    Position,
    RecordedError,
    RunFailed,
    RunFinished,
    RunStarted,
    TextDelta,
    Usage,
)
from agent_brain.tools import Action
from tests.support.own_events import FIELDS, PagesRead
from tests.support.thorough import examples


class Answer(BaseModel):
    city: str


AT = Position("run_1", 3, "ACT", ("outer", "inner"))
ACTION = Action(name="add", id="call_1")


def test_an_event_says_where_it_happened():
    event = TextDelta("hi", at=AT)

    assert (event.run_id, event.step, event.state, event.path) == (
        "run_1",
        3,
        "ACT",
        ("outer", "inner"),
    )


def test_an_event_becomes_one_json_object_on_one_line():
    event = TextDelta("a\nb é", thought=True, at=AT)

    assert json.loads(event.to_json()) == {
        "kind": "text_delta",
        "run_id": "run_1",
        "step": 3,
        "state": "ACT",
        "path": ["outer", "inner"],
        "text": "a\nb é",
        "thought": True,
        "response_id": None,
    }
    assert "\n" not in event.to_json()


@pytest.mark.parametrize(
    ("event", "field", "value"),
    [
        (RunStarted(None), "goal", None),
        (ActionRequested(ACTION), "action", {"name": "add", "args": {}, "id": "call_1", "unparsed": None}),
        (
            ActionFinished(ACTION, Message.user("x"), ValueError("bad")),
            "exception",
            {"type": "ValueError", "message": "bad"},
        ),
        (RunFailed(OSError("gone")), "error", {"type": "OSError", "message": "gone"}),
        (RunFinished("done", "Oslo", Answer(city="Oslo")), "output", {"city": "Oslo"}),
        (RunFinished("done", "", {"a": [Answer(city="x")]}), "output", {"a": [{"city": "x"}]}),
        (RunFinished("done", "", (1, {2})), "output", [1, [2]]),
        (TextDelta("a\ud800"), "text", "a\ufffd"),
    ],
)  # fmt: skip
def test_what_happened_is_written_as_json(event, field, value):
    assert json.loads(event.to_json().encode())[field] == value


ADAPTER: TypeAdapter[AgentEvent] = TypeAdapter(AgentEvent)
POSITIONS = st.builds(
    Position,
    st.text(),
    st.integers(0, 2**31),
    st.none() | st.text(),
    st.lists(st.text(), max_size=3).map(tuple),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
ACTIONS = st.builds(Action, name=st.text(), args=st.dictionaries(st.text(), JSON, max_size=2))
MESSAGES = st.builds(Message.user, st.text(), metadata=st.dictionaries(st.text(), JSON, max_size=2))
ERRORS = st.builds(ValueError, st.text()) | st.builds(KeyError, st.text())
USAGES = st.builds(
    Usage,
    st.integers(0),
    st.integers(0),
    st.none() | st.floats(0),
    st.integers(0),
    st.none() | st.text(),
)
BY_NAME = {
    "text": st.text(),
    "action": ACTIONS,
    "args": st.dictionaries(st.text(), st.integers()),
    "attachment": st.just(Attachment(media_type="image/png", data="AAAA")),
    "actions": st.lists(ACTIONS, max_size=2).map(tuple),
    "uncertain": st.lists(st.text(), max_size=2).map(tuple),
    "goal": st.none() | MESSAGES,
    "result": MESSAGES,
    "error": ERRORS,
    "exception": st.none() | ERRORS,
    "usage": USAGES,
    "output": JSON,
    "schema": st.none() | st.dictionaries(st.text(), JSON, max_size=2),
    "verdict": st.sampled_from(["hint", "stop"]),
    "until": st.datetimes(timezones=st.just(UTC)),
    "items": st.lists(
        st.builds(RecalledItem, st.text(), st.none() | st.floats(0, 1), st.none() | st.text())
    ).map(tuple),
    "sources": st.lists(st.builds(CitedSource, st.text(), st.text()), max_size=2).map(tuple),
    "refused": st.dictionaries(st.text(), st.integers(0), max_size=2),
    **dict.fromkeys(["ids", "added", "replaced"], st.lists(st.text(), max_size=2).map(tuple)),
}
BY_TYPE = {
    bool: st.booleans(),
    int: st.integers(0),
    float: st.floats(),
    str | None: st.none() | st.text(),
    float | None: st.none() | st.floats(),
}


def events_of(kind: type[Event]) -> st.SearchStrategy[Event]:
    fields = [field for field in dataclasses.fields(kind) if field.name != "at"]
    types = typing.get_type_hints(kind)
    values = {
        field.name: BY_NAME.get(field.name, BY_TYPE.get(types[field.name], st.text()))
        for field in fields
    }
    if kind is MessageReceived:
        values["message"] = MESSAGES
    return st.builds(kind, **values, at=POSITIONS)


@pytest.mark.parametrize("kind", typing.get_args(AgentEvent), ids=lambda kind: kind.kind)
@given(data=st.data())
@settings(max_examples=examples(40))
def test_every_event_is_one_line_of_json_and_is_read_back_from_it(kind, data):
    event = data.draw(events_of(kind))
    line = event.to_json()
    assert len(line.splitlines()) == 1
    json.loads(line.encode(), parse_constant=lambda constant: pytest.fail(constant))

    again = ADAPTER.validate_json(line)
    assert type(again) is kind
    assert again.to_json() == line
    assert (again.run_id, again.step, again.path) == tuple(
        json.loads(line)[name] if name != "path" else tuple(json.loads(line)["path"])
        for name in ("run_id", "step", "path")
    )


def test_an_event_that_was_read_back_is_equal():
    event = ActionFinished(ACTION, Message.user("x"), at=AT)
    again = ADAPTER.validate_json(event.to_json())

    assert again == event
    assert again.at == AT
    assert ADAPTER.validate_python(event.to_dict()) == event
    assert ADAPTER.validate_python(event) is event
    assert ADAPTER.validate_json(ADAPTER.dump_json(event)) == event


def test_an_error_read_from_json_has_its_type_and_text():
    again = ADAPTER.validate_json(RunFailed(OSError("gone"), at=AT).to_json())

    assert isinstance(again, RunFailed)
    assert isinstance(again.error, RecordedError)
    assert (again.error.type, str(again.error)) == ("OSError", "gone")


def test_what_is_not_an_event_is_refused():
    wrong: list[object] = [{"kind": "unheard_of"}, {}, [], {"kind": "text_delta"}]
    for data in wrong:
        with pytest.raises(ValidationError):
            ADAPTER.validate_python(data)


def test_fields_of_later_releases_are_left_out():
    data: dict[str, object] = {**TextDelta("hi", at=AT).to_dict(), "later": 1}
    assert ADAPTER.validate_python(data) == TextDelta("hi", at=AT)


def test_events_have_a_json_schema():
    kinds = {part["properties"]["kind"]["const"] for part in ADAPTER.json_schema()["anyOf"]}
    assert kinds == {kind.kind for kind in typing.get_args(AgentEvent)}


@pytest.mark.parametrize(
    "end", ["\n", "\r", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]
)
def test_no_character_ends_the_line(end):
    line = TextDelta(f"a{end}b").to_json()

    assert line.splitlines() == [line]
    assert json.loads(line)["text"] == f"a{end}b"


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_json_does_not_have_become_null(number):
    class Measured(BaseModel):
        value: float

    for output in (
        number,
        [number],
        {"a": number},
        Measured(value=number),
        {"a": Measured(value=number)},
    ):
        line = RunFinished("done", "", output, Usage(cost=math.inf)).to_json()
        assert "NaN" not in line
        assert "Infinity" not in line
        assert json.loads(line)["usage"]["cost"] is None


def test_usage_is_written_with_its_parts():
    usage = json.loads(RunFinished("done", "", usage=Usage(1, 2, 0.5, 3)).to_json())["usage"]

    assert usage["input_tokens"] == 1
    assert usage["cost"] == 0.5


def test_events_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        TextDelta("a").text = "b"  # type: ignore[misc]


def test_every_kind_is_distinguished():
    kinds = [event.kind for event in typing.get_args(AgentEvent)]

    assert len(set(kinds)) == len(kinds)
    assert all(issubclass(event, Event) for event in typing.get_args(AgentEvent))


def test_usages_add_up():
    assert Usage(1, 2, 0.5, 1, "a") + Usage(3, 4, 0.25, 2, "a") == Usage(4, 6, 0.75, 3, "a")
    assert (Usage(model="a") + Usage(model="b")).model is None
    assert Usage(1, 2).total_tokens == 3


def test_an_event_of_a_class_of_its_own_is_read_back_with_its_fields():
    own = PagesRead(3, 7, at=AT)
    reader: TypeAdapter[Event] = TypeAdapter(Event)

    again = reader.validate_json(own.to_json())
    assert again == OtherEvent("pages_read", FIELDS, at=AT)
    assert again.to_json() == own.to_json()
    assert reader.validate_python(own.to_dict()) == again
    assert reader.validate_json(reader.dump_json(again)) == again
    assert TypeAdapter(PagesRead).validate_python(again.to_dict()) == own
    assert reader.validate_python(own) is own


@pytest.mark.parametrize(
    "data",
    [
        {"kind": "unheard_of"},
        {"kind": "unheard_of", "run_id": None, "step": None, "path": None},
        {"kind": "unheard_of", "data": {"kind": 1}, "text": []},
    ],
    ids=str,
)
def test_an_event_of_a_kind_that_is_unknown_needs_no_fields(data):
    again = TypeAdapter(Event).validate_python(data)
    assert (again.kind, again.run_id, again.step, again.state, again.path) == (
        "unheard_of", "", 0, None, (),
    )  # fmt: skip


@pytest.mark.parametrize("kind", typing.get_args(AgentEvent), ids=lambda kind: kind.kind)
@given(data=st.data())
@settings(max_examples=10)
def test_events_of_the_library_are_read_as_their_classes_beside_others(kind, data):
    event = data.draw(events_of(kind))
    again = TypeAdapter(Event).validate_json(event.to_json())
    assert type(again) is kind
    assert again.to_json() == event.to_json()


@pytest.mark.parametrize("data", [{}, [], {"kind": "text_delta"}, {"kind": 7}], ids=str)
def test_what_is_no_event_at_all_is_refused_by_the_reader_of_all_kinds(data):
    with pytest.raises(ValidationError):
        TypeAdapter(Event).validate_python(data)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"kind": "text_delta"}, "has the kind 'text_delta', which is that of an event of the lib"),
        ({"kind": "gap"}, "has the kind 'gap', which is"),
        ({"kind": "price found"}, "has the kind 'price found': use letters"),
        ({"kind": "a\ndata: b"}, "has the kind .*: use letters"),
        ({"kind": ""}, "has the kind .*: use letters"),
        ({"kind": "price", "__annotations__": {"kind": "str"}}, "has its kind as a field: write"),
        ({"kind": "price", "__annotations__": {"kind": str}}, "has its kind as a field: write"),
        ({"__annotations__": {"state": "str"}}, "has a field 'state', which is a part of every"),
        ({"__annotations__": {"at": "str"}}, "has a field 'at'"),
        ({"__annotations__": {"price": "float", "step": "int"}}, "has a field 'step'"),
    ],
)
def test_an_event_of_a_program_that_could_not_be_read_again_is_refused(
    body: dict[str, typing.Any], problem: str
) -> None:
    with pytest.raises(TypeError, match=f"^The event Found {problem}"):
        type("Found", (Event,), {"__module__": __name__, **body})


def test_an_event_of_a_program_may_derive_from_another_one() -> None:
    class Shop(Event):
        """Events of a shop."""

    @dataclasses.dataclass(frozen=True, slots=True)
    class Found(Shop):
        kind: typing.ClassVar[str] = "shop.price-found"
        price: float

    assert Found(2.5).to_dict()["price"] == 2.5
