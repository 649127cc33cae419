"""The arguments of a function: validated, coerced, and passed as its signature requires."""

from __future__ import annotations

import datetime as dt
import enum
from typing import Annotated

import pytest
from pydantic import AliasChoices, AliasPath, BaseModel, Field, Strict, model_validator

from agent_brain.tools import ToolArgumentsError, as_tool, tool


class Color(enum.Enum):
    RED = "red"


class Point(BaseModel):
    x: int
    y: int = 0


@tool
def paint(count: int, when: dt.date, color: Color = Color.RED, at: Point | None = None) -> str:
    """Paint."""
    return f"{count}{when}{color}{at}"


def test_arguments_are_coerced_to_the_annotated_types():
    given = {"count": "3", "when": "2026-01-02", "color": "red", "at": {"x": 1}}

    expected = {
        "count": 3,
        "when": dt.date(2026, 1, 2),
        "color": Color.RED,
        "at": Point(x=1),
    }
    assert paint.validate(given) == expected


def test_every_problem_is_listed_in_one_error():
    with pytest.raises(ToolArgumentsError) as caught:
        paint.validate({"count": "many", "color": "pink", "at": {"y": "z"}, "extra": 1})

    told = [problem.split(":")[0] for problem in caught.value.problems]
    assert told == ["count", "when", "color", "at.x", "at.y", "extra"]
    assert all(problem in str(caught.value) for problem in caught.value.problems)
    assert caught.value.tool == "paint"


class Flight(BaseModel):
    number: str
    price: int


class NoFlight(BaseModel):
    reason: str = ""


class Order(BaseModel):
    flight: Flight | NoFlight


@tool
def book(order: Order, more: list[Flight | NoFlight] | None = None) -> str:
    """Book."""
    return f"{order} {more}"


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (
            {"order": {"flight": {"number": "A1"}}},
            "order.flight: as NoFlight it has the unknown fields 'number' and lacks 'reason'",
        ),
        (
            {"order": {"flight": {}}, "more": [{"number": "A1", "price": 5}, {"price": 5}]},
            "more.1: as NoFlight it has the unknown fields 'price' and lacks 'reason'",
        ),
    ],
)
def test_data_with_a_mistake_is_not_taken_for_an_object_of_defaults(args, problem):
    with pytest.raises(ToolArgumentsError) as caught:
        book.validate(args)
    assert [*caught.value.problems] == [problem]


def test_an_unknown_field_of_a_complete_object_is_ignored():
    args = {"order": {"flight": {"number": "A1", "price": 5, "seat": "window"}}}
    assert book.validate(args)["order"] == Order(flight=Flight(number="A1", price=5))


class Place(BaseModel):
    lat: float = 0
    note: str = Field("", validation_alias=AliasChoices("note", AliasPath("notes", 0)))

    @model_validator(mode="before")
    @classmethod
    def of_text(cls, data: dict[str, object]) -> dict[str, object]:
        at = data.get("at")
        return data if at is None else {**data, "lat": at}


class Anything(BaseModel, extra="allow"):
    size: int = 0


class Named(BaseModel):
    title: str = Field("", alias="name")
    pages: int = 0


def test_fields_that_a_class_reads_in_its_own_way_are_known():
    @tool
    def put(at: Place, other: Anything, book: Named) -> None: ...

    read = put.validate(
        {"at": {"at": 5, "notes": ["a"]}, "other": {"colour": "red"}, "book": {"name": "B"}}
    )

    assert (read["at"].lat, read["at"].note, read["book"].title) == (5, "a", "B")
    assert read["other"].model_extra == {"colour": "red"}


def test_constraints_are_checked():
    @tool
    def f(a: Annotated[int, Field(ge=1)], b: int = Field(2, le=3)) -> None: ...

    with pytest.raises(ToolArgumentsError) as caught:
        f.validate({"a": 0, "b": 9})
    assert len(caught.value.problems) == 2


def test_a_strict_type_takes_its_json_form():
    @tool
    def f(when: Annotated[dt.date, Strict()]) -> None: ...

    assert f.validate({"when": "2026-01-02"}) == {"when": dt.date(2026, 1, 2)}


def test_python_values_that_json_cannot_express_are_reported_as_what_they_are():
    with pytest.raises(ToolArgumentsError, match="count"):
        paint.validate({"count": object(), "when": dt.date(2026, 1, 2)})


def test_a_mutable_default_is_not_shared_between_calls():
    @tool
    def f(items: list[int] = []) -> None: ...  # noqa: B006

    f.validate({})["items"].append(1)

    assert f.validate({}) == {"items": []}


def test_a_default_factory_makes_a_default_for_each_call():
    @tool
    def f(items: list[int] = Field(default_factory=list)) -> None: ...  # noqa: B008

    f.validate({})["items"].append(1)

    assert f.validate({}) == {"items": []}


@pytest.mark.anyio
async def test_positional_only_and_keyword_only_parameters_are_passed_as_they_must_be():
    def f(a: int, b: int = 2, /, c: int = 3, *, d: int) -> list[int]:
        return [a, b, c, d]

    assert await as_tool(f).invoke({"d": "4", "a": "1"}) == [1, 2, 3, 4]


@pytest.mark.anyio
async def test_arguments_may_have_the_names_of_what_passes_them_on():
    def f(func: int, function: int, args: int, action: int) -> int:
        return func + function + args + action

    assert await as_tool(f).invoke({"func": 1, "function": 2, "args": 3, "action": 4}) == 10


@pytest.mark.anyio
async def test_execute_validates_too():
    with pytest.raises(ToolArgumentsError):
        await paint.execute(count="many")


def test_a_tool_can_be_called_as_the_function_it_is():
    @tool
    def double(a: int) -> int:
        """Double it."""
        return a * 2

    assert double(4) == 8
    assert (vars(double)["__name__"], double.__doc__) == ("double", "Double it.")
