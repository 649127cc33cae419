"""Booking a flight with LangGraph, as agents of LangChain's `create_agent`."""

from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

from langchain.agents import create_agent
from langchain.agents.middleware import ModelCallLimitMiddleware, after_agent
from langchain.agents.structured_output import ToolStrategy
from langchain.tools import ToolRuntime, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.runtime import Runtime
from pydantic import BaseModel, Field

# Offline: a page, and what a model and a person say
from scripted import Scripted, call
from stand_ins import FLIGHTS, PAGE, SEAT, person

model = Scripted(
    [
        call("extract_flights"),
        call("Flights", flights=FLIGHTS),
        call("Flight", **FLIGHTS[0]),
        call("Flight", **FLIGHTS[1]),
        call("Flight", **FLIGHTS[2]),
        call("NoSeat"),
        call("Seat", **SEAT),
    ]
)
ask = person("search", "buy", "a good one", "at the window, with leg room")


# The program
class Flight(BaseModel):
    """A flight."""

    number: str
    price: int
    origin: str = Field(description="Three-letter airport code")
    destination: str = Field(description="Three-letter airport code")
    day: date


class Flights(BaseModel):
    """All flights."""

    flights: list[Flight]


class NoFlight(BaseModel):
    """When no flight fits."""


class Seat(BaseModel):
    """A seat."""

    row: int = Field(ge=1, le=30)
    letter: Literal["A", "B", "C", "D", "E", "F"]


class NoSeat(BaseModel):
    """When no seat can be told from the text."""


@dataclass
class Request:
    page: str
    origin: str
    destination: str
    day: date


@tool
def extract_flights(runtime: ToolRuntime[Request]) -> list[Flight]:
    """Return all flights."""
    messages = [("system", "Extract all flights."), ("user", runtime.context.page)]
    return model.with_structured_output(Flights).invoke(messages).flights


@after_agent(can_jump_to=["model"])
def fits(state: Any, runtime: Runtime[Request]) -> dict[str, Any] | None:
    found, asked = state.get("structured_response"), runtime.context
    wanted = (asked.origin, asked.destination, asked.day)
    if not isinstance(found, Flight) or (found.origin, found.destination, found.day) == wanted:
        return None
    return {"messages": [("user", f"The flight should be {wanted}")], "jump_to": "model"}


searcher = create_agent(
    model,
    [extract_flights],
    system_prompt="Find the cheapest flight on the given day.",
    response_format=ToolStrategy(Flight | NoFlight),
    context_schema=Request,
    middleware=[fits, ModelCallLimitMiddleware(thread_limit=15)],
    checkpointer=InMemorySaver(),
)
seats = create_agent(
    model,
    system_prompt="Extract the seat. A and F are at windows; rows 1, 14 and 20 have leg room.",
    response_format=ToolStrategy(Seat | NoSeat),
    middleware=[ModelCallLimitMiddleware(thread_limit=15)],
    checkpointer=InMemorySaver(),
)


def book(request: Request) -> str:
    config = {"configurable": {"thread_id": "1"}}
    task = f"Find a flight from {request.origin} to {request.destination} on {request.day}."
    while True:
        done = searcher.invoke({"messages": [("user", task)]}, config, context=request)
        flight = done["structured_response"]
        if isinstance(flight, NoFlight):
            return "No flight found."
        if ask(f"{flight.number} for {flight.price}: buy, or search on?") == "buy":
            break
        task = "Suggest another flight."
    while True:
        text = ask("Which seat would you like?")
        done = seats.invoke({"messages": [("user", text)]}, config)
        seat = done["structured_response"]
        if isinstance(seat, Seat):
            return f"Bought {flight.number}, seat {seat.row}{seat.letter}."


# Shown: a trip
print(book(Request(PAGE, "SFO", "ANC", date(2027, 1, 10))))
