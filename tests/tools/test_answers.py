"""What fits the type of a question, and what a person's text means."""

from __future__ import annotations

import json
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any, Literal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from agent_brain.tools.answers import (
    answer_type,
    choices_of,
    fields_of,
    read_answer,
    words_for,
)


class Side(Enum):
    WINDOW = "window"
    AISLE = "aisle"


class Size(IntEnum):
    SMALL = 1
    LARGE = 2


class Letter(Enum):
    a = 1
    A = 2


class Paper(BaseModel):
    size: Size | None = None
    pages: int | None = None


class Seat(BaseModel):
    row: int = Field(ge=1, le=30, description="The row, from the front")
    side: Side = Side.WINDOW
    note: str | None = None


ROWS = st.integers(1, 30)
SEATS = st.builds(Seat, row=ROWS, side=st.sampled_from(Side), note=st.none() | st.text())
VALUES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (bool, st.booleans()),
    (int, st.integers(-(2**53), 2**53)),
    (float, st.floats(allow_nan=False, allow_infinity=False)),
    (date, st.dates()),
    (datetime, st.datetimes()),
    (time, st.times()),
    (UUID, st.uuids()),
    (Literal["window", "aisle", 3], st.sampled_from(["window", "aisle", 3])),
    (Side, st.sampled_from(Side)),
    (Seat, SEATS),
    (Seat | None, st.none() | SEATS),
    (list[Seat], st.lists(SEATS, max_size=2)),
    (dict[str, int], st.dictionaries(st.text(), st.integers(0, 9), max_size=2)),
    (int | str, st.integers(0, 9) | st.text()),
]


@given(st.data())
def test_every_value_of_a_type_is_an_answer_as_it_is_and_as_its_json(data: st.DataObject) -> None:
    kind, values = data.draw(st.sampled_from(VALUES))
    value = data.draw(values)
    found = answer_type(kind)

    answer = read_answer(found.schema, value)

    assert found.value(answer) == value
    if not isinstance(answer, str):  # a text stands for itself first
        text = json.dumps(answer)
        expected = answer if kind != int | str else text
        assert read_answer(found.schema, text) == expected
    else:
        assert read_answer(found.schema, answer) == answer


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from([kind for kind, _ in VALUES]), JSON)
def test_whatever_is_given_fits_or_is_refused_with_a_reason(kind: Any, answer: Any) -> None:
    found = answer_type(kind)
    try:
        read = read_answer(found.schema, answer)
    except ValueError:
        return
    assert read_answer(found.schema, read) == read


@pytest.mark.parametrize(
    ("kind", "text", "answer"),
    [
        (bool, "Yes", True),
        (bool, " no ", False),
        (int, " 7 ", 7),
        (float, "2.5", 2.5),
        (Side, "AISLE", "aisle"),
        (Size, "large", 2),
        (Size, "1", 1),
        (Letter, "A", 2),
        (list[Letter], "A, a", [2, 1]),
        (list[Size], "small, 2", [1, 2]),
        (list[Size], '["LARGE", 1]', [2, 1]),
        (Paper | None, '{"size": "SMALL"}', {"size": 1}),
        (Paper, '{"size": 2}', {"size": 2}),
        (Literal[1, 2], "2", 2),
        (date, " 2026-03-01 ", "2026-03-01"),
        (Seat | None, "", None),
        (str | None, "", None),
        (list[int], "[1, 2]", [1, 2]),
        (list[Decimal], "1.10, 2", ["1.10", "2"]),
        (int | str, "7", "7"),
        ({"oneOf": [{"const": "a", "title": "The first"}]}, "the first", "a"),
        ({"type": "string", "enum": ["a"], "enumNames": ["First"]}, "first", "a"),
        ({"type": "string", "format": "email"}, "ann@example.org", "ann@example.org"),
    ],
)
def test_a_text_means_what_a_person_types(kind: Any, text: str, answer: object) -> None:
    assert read_answer(answer_type(kind).schema, text) == answer


@pytest.mark.parametrize(
    ("kind", "given_", "problem"),
    [
        (str, 5, "it is not a text: 5"),
        (int, "seven", "'seven' is not of type 'integer'"),
        (int, True, "True is not of type 'integer'"),
        (float, float("nan"), "NaN"),
        (date, "2026-02-30", "'2026-02-30' is not a 'date'"),
        (Side, "middle", "'middle' is not one of ['window', 'aisle']"),
        (Size, "huge", "'huge' is not one of ['SMALL', 'LARGE']"),
        (Paper, {"size": "huge"}, "size: 'huge' is not one of ['SMALL', 'LARGE']"),
        (Paper, {"pages": "many"}, "pages: 'many' is not of type 'integer'"),
        (Seat, '{"row": 31}', "row: 31 is greater than the maximum of 30"),
        (Seat, {"side": "aisle"}, "'row' is a required property"),
        (Seat | None, {"row": 0}, "row: 0 is less than the minimum of 1"),
        (int | None, "x", "'x' is not of type 'integer'"),
        (int, "", "it is empty"),
        (list[int], '[1, "x"]', "1: 'x' is not of type 'integer'"),
        ({"type": "string", "format": "email"}, "ann", "'ann' is not a 'email'"),
        (Seat, object(), "is not data that JSON has"),
    ],
)
def test_what_is_wrong_is_said(kind: Any, given_: object, problem: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011 - its text is compared
        read_answer(answer_type(kind).schema, given_)
    assert problem in str(error.value)


@pytest.mark.parametrize("kind", ["text", None, 5, object(), {"type": "strin"}])
def test_what_is_no_type_is_refused(kind: object) -> None:
    with pytest.raises(ValueError, match="type"):
        answer_type(kind)


class Pair(Enum):
    ONE = (1, 2)


class Mixed(Enum):
    HALF = 0.5
    ALL = "all"


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Size, "SMALL / LARGE"),
        (Size | None, "SMALL / LARGE, or nothing"),
        (Mixed, "HALF / all"),
        (Pair, "ONE"),
        (list[Size], "SMALL / LARGE; several with commas"),
        (list[Size] | None, "SMALL / LARGE; several with commas, or nothing"),
        (Side, "window / aisle"),
        (Literal[1, 2], "1 / 2"),
    ],
)
def test_members_of_an_enum_have_names_where_their_values_are_no_texts(
    kind: object, words: str
) -> None:
    assert words_for(answer_type(kind).schema or {}) == words


def test_an_enum_in_a_type_has_members_that_json_has() -> None:
    asked = answer_type(Pair | None)
    assert asked.value(read_answer(asked.schema, [1, 2])) is Pair.ONE
    with pytest.raises(ValueError, match=r"JSON does not have the value of Pair\.ONE"):
        answer_type(list[Pair])


class Accept(BaseModel):
    why: str


class Decline(BaseModel):
    """Another class with the same fields."""

    why: str


class Later(Decline):
    until: date


class Level(IntEnum):
    LOW = 1
    HIGH = 2


def test_enums_of_the_same_numbers_are_not_told_apart() -> None:
    with pytest.raises(ValueError, match="Size and Level have the same data"):
        answer_type(list[Size | Level])


@pytest.mark.parametrize("kind", [Accept | Decline, list[Accept | Decline | None]])
def test_classes_that_an_answer_does_not_tell_apart_are_refused(kind: object) -> None:
    with pytest.raises(ValueError, match="Accept and Decline have the same data"):
        answer_type(kind)
    assert answer_type(Accept | Later).value({"why": "busy", "until": "2026-03-01"}) == Later(
        why="busy", until=date(2026, 3, 1)
    )


def test_a_form_has_fields_and_choices() -> None:
    schema = answer_type(Seat | None).schema
    assert schema is not None

    fields = fields_of(schema)

    assert fields is not None
    assert [(f.name, f.required, f.label) for f in fields] == [
        ("row", True, "The row, from the front"),
        ("side", False, "Side"),
        ("note", False, "Note"),
    ]
    titled = fields_of(
        {
            "properties": {
                "code": {"title": "Postal code", "description": "Digits"},
                "from": {"description": "Three letters"},
            },
            "type": "object",
        }
    )
    assert titled is not None
    assert [field.label for field in titled] == ["Postal code: Digits", "from: Three letters"]
    assert choices_of(fields[1].schema) == [("window", "window"), ("aisle", "aisle")]
    assert fields_of(answer_type(int).schema or {}) is None
