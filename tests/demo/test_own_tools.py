"""The demo model with tools it has never seen."""

from __future__ import annotations

from enum import Enum
from typing import Literal

import pytest

from agent_brain.tools import ToolError, tool
from tests.demo.helpers import ask

pytestmark = pytest.mark.anyio


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
def multiply(x: float, y: float) -> float:
    """Multiply."""
    return x * y


@tool
def get_weather(city: str) -> str:
    """Get the current weather of a city."""
    return f"sunny in {city}"


@tool
def get_forecast(
    city: str, days: int, units: Literal["metric", "imperial"] = "metric"
) -> dict[str, object]:
    """Weather forecast."""
    return {"city": city, "days": days, "units": units, "sky": "grey"}


@tool
def book_flight(origin: str, destination: str, date: str) -> str:
    """Book a flight."""
    return f"booked {origin}-{destination} on {date}"


@tool
def web_search(query: str) -> str:
    """Search the web."""
    return "It was Shakespeare."


@tool
def miles_to_km(miles: float) -> float:
    """Convert."""
    return miles * 1.609344


@tool
def reverse_string(s: str) -> str:
    """Turn it round."""
    return s[::-1]


@tool
def days_between(start: str, end: str) -> int:
    """Number of days."""
    return 7


class Room(Enum):
    KITCHEN = "kitchen"
    LIVING_ROOM = "living_room"


@tool
def switch_light(room: Room, state: Literal["on", "off"]) -> str:
    """Switch a light."""
    return f"{room.value} {state}"


@pytest.mark.parametrize(
    "question,tools,calls",
    [
        ("what is 3 plus 4", [add], [("add", {"a": 3, "b": 4})]),
        (
            "17 times 23 plus 4",
            [add, multiply],
            [("multiply", {"x": 17, "y": 23}), ("add", {"a": 391, "b": 4})],
        ),
        ("What's the weather in Paris?", [get_weather], [("get_weather", {"city": "Paris"})]),
        (
            "weather in Paris and in Rome?",
            [add, get_weather],
            [("get_weather", {"city": "Paris"}), ("get_weather", {"city": "Rome"})],
        ),
        (
            "what is the weather like in london",
            [get_weather],
            [("get_weather", {"city": "london"})],
        ),
        (
            "Give me a 3 day forecast for Oslo in imperial units",
            [get_weather, get_forecast],
            [("get_forecast", {"city": "Oslo", "days": 3, "units": "imperial"})],
        ),
        (
            "Book a flight from Berlin to New York on 1 May 2026",
            [book_flight],
            [
                (
                    "book_flight",
                    {"origin": "Berlin", "destination": "New York", "date": "2026-05-01"},
                )
            ],
        ),
        (
            "who wrote Hamlet?",
            [add, get_weather, web_search],
            [("web_search", {"query": "who wrote Hamlet?"})],
        ),
        ("convert 5 miles to km", [miles_to_km], [("miles_to_km", {"miles": 5})]),
        ("reverse 'abc'", [reverse_string], [("reverse_string", {"s": "abc"})]),
        (
            "how many days between 2026-01-01 and 2026-01-08",
            [days_between],
            [("days_between", {"start": "2026-01-01", "end": "2026-01-08"})],
        ),
        (
            "Switch the light in the living room off",
            [switch_light],
            [("switch_light", {"room": "living_room", "state": "off"})],
        ),
        (
            "What is 2+2 and what is the weather in Paris?",
            [add, get_weather],
            [("add", {"a": 2, "b": 2}), ("get_weather", {"city": "Paris"})],
        ),
    ],
)
async def test_a_tool_is_found_and_filled_by_its_name_and_schema(question, tools, calls):
    assert (await ask(question, tools)).calls == calls


@pytest.mark.parametrize(
    "question", ["reverse 'abc'", "how many r's in strawberry", "What is the capital of France?"]
)
async def test_a_tool_that_does_not_fit_is_left_alone(question):
    talk = await ask(question, [add, get_weather, miles_to_km])
    assert talk.calls == []
    assert "not a language model" in talk.answer


async def test_a_missing_value_is_asked_for():
    talk = await ask("What's the weather?", [get_weather])
    assert talk.calls == []
    assert "'city'" in talk.answer


async def test_a_tool_that_fails_is_reported_as_failing():
    @tool
    def get_tides(harbour: str) -> str:
        """Tides of a harbour."""
        raise ToolError("the gauge is broken")

    talk = await ask("tides in Hamburg", [get_tides])
    assert len(talk.calls) == 1
    assert "the gauge is broken" in talk.answer


async def test_without_a_clock_it_does_not_know_today():
    talk = await ask("how many days until Christmas?", [days_between])
    assert talk.calls == []
    assert "current date" in talk.answer


async def test_a_result_is_quoted_as_the_tool_gave_it_even_where_it_is_wrong():
    @tool(name="add")
    def wrong(a: int, b: int) -> int:
        """Add."""
        return 99

    assert "2 + 2 = 99" in (await ask("2 + 2", [wrong])).answer
