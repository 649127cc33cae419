"""Booking a flight as a net that waits for the person, also in another process."""

from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Literal

from pydantic import BaseModel, Field

from agent_brain import Brain, Limits, Memory, Net, react, tool
from agent_brain.nets import SubnetState
from agent_brain.states import AskPersonState, AskState, Notes, extract
from agent_brain.tools import ToolContext

# Offline: a page, and what a model and a person say
import json

from stand_ins import FLIGHTS, PAGE, SEAT, person

from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action

model = ScriptedLLM(
    [
        Action(name="extract_flights"),
        json.dumps(FLIGHTS),
        *(Action(name="final_result_Flight", args=flight) for flight in FLIGHTS),
        '{"type": "NoSeat", "value": {}}',
        json.dumps({"type": "Seat", "value": SEAT}),
    ]
)
ask = person("search", "buy", "a good one", "at the window, with leg room")

# The program
Step = Enum("Step", "SEARCH OFFER SEAT READ_SEAT END")


class Flight(BaseModel):
    number: str
    price: int
    origin: str = Field(description="Three-letter airport code")
    destination: str = Field(description="Three-letter airport code")
    day: date


class NoFlight(BaseModel):
    """When no flight fits."""


class Seat(BaseModel):
    row: int = Field(ge=1, le=30)
    letter: Literal["A", "B", "C", "D", "E", "F"]


class NoSeat(BaseModel):
    """When no seat can be told from the text."""


class Trip(Notes):
    flight: Flight | NoFlight | None = None
    seat: Seat | NoSeat | None = None
    choice: Literal["buy", "search"] = "search"


@dataclass
class Request:
    page: str
    origin: str
    destination: str
    day: date


@tool
async def extract_flights(context: ToolContext[Request]) -> list[Flight]:
    """Return all flights."""
    with context.memory.work_for("extract"):
        return await extract(context.deps.page, list[Flight], model)


def fits(memory: Memory, found: Flight | NoFlight) -> str | None:
    wanted = (memory.deps.origin, memory.deps.destination, memory.deps.day)
    if isinstance(found, NoFlight) or (found.origin, found.destination, found.day) == wanted:
        return None
    return f"The flight should be {wanted}"


def offer(memory: Memory) -> str:
    flight = Trip.read(memory).flight
    return f"{flight.number} for {flight.price}: buy, or search on?"


def found(memory: Memory) -> Literal[Step.OFFER, Step.END]:
    return Step.OFFER if isinstance(Trip.read(memory).flight, Flight) else Step.END


def chosen(memory: Memory) -> Literal[Step.SEAT, Step.SEARCH]:
    return Step.SEAT if Trip.read(memory).choice == "buy" else Step.SEARCH


def seated(memory: Memory) -> Literal[Step.SEAT, Step.END]:
    return Step.END if isinstance(Trip.read(memory).seat, Seat) else Step.SEAT


async def end(memory: Memory) -> str:
    match Trip.read(memory):
        case Trip(flight=Flight(number=number), seat=Seat(row=row, letter=letter)):
            return f"Bought {number}, seat {row}{letter}."
    return "No flight found."


searcher = react(
    model,
    prompt="Find the cheapest flight on the given day.",
    tools=[extract_flights],
    output_type=Flight | NoFlight,
    check=fits,
    corrections=4,
)
net = Net(
    {
        Step.SEARCH: SubnetState(searcher, into=Trip, choose=found, as_thoughts=True),
        Step.OFFER: AskPersonState(offer, Literal["buy", "search"], into=Trip, choose=chosen),
        Step.SEAT: AskPersonState("Which seat would you like?", on_done=Step.READ_SEAT),
        Step.READ_SEAT: AskState(
            model,
            "Extract the seat. A and F are at windows; rows 1, 14 and 20 have leg room.",
            output_type=Seat | NoSeat,
            into=Trip,
            choose=seated,
        ),
        Step.END: end,
    }
)


def book(request: Request) -> str:
    brain = Brain(net, limits=Limits(max_requests=15))
    task = f"Find a flight from {request.origin} to {request.destination} on {request.day}."
    result = brain.run_sync(task, deps=request)
    while result.questions:
        result = brain.resume_sync(input=ask(*result.questions.values()), deps=request)
    return result.answer


# Shown: a trip
print(book(Request(PAGE, "SFO", "ANC", date(2027, 1, 10))))
