"""Booking a flight as a net that waits for the person, also in another process."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Literal

from pydantic import BaseModel, Field

from agent_brain import Brain, Limits, Memory, Message, Net, SubnetState, ToolContext, react, tool
from agent_brain.states import Ask, Notes, StreamItem, extract

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
Step = Enum("Step", "FIND OFFER SEAT")


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


searcher = react(
    model,
    prompt="Find the cheapest flight on the given day.",
    tools=[extract_flights],
    output_type=Flight | NoFlight,
    check=fits,
    corrections=4,
)


async def offer(memory: Memory) -> AsyncIterator[StreamItem | Literal[Step.FIND, Step.SEAT, None]]:
    if isinstance(flight := Trip.read(memory).flight, Flight):
        question = f"{flight.number} for {flight.price}: buy, or search on?"
        yield (choice := Ask(question, Literal["buy", "search"]))
        await memory.update([Message.user(f"{question} {choice.value}")])
        yield Step.SEAT if choice.value == "buy" else Step.FIND
    else:
        yield "No flight found."


async def seat(memory: Memory) -> AsyncIterator[StreamItem | Literal[Step.SEAT] | None]:
    yield (wish := Ask("Which seat would you like?"))
    prompt = "Extract the seat. A and F are at windows; rows 1, 14 and 20 have leg room."
    messages = [Message.system(prompt), Message.user(wish.value)]
    yield (call := model.call(messages, output_type=Seat | NoSeat))
    if isinstance(call.output, NoSeat):
        yield Step.SEAT
    else:
        flight = Trip.read(memory).flight
        yield f"Bought {flight.number}, seat {call.output.row}{call.output.letter}."


search = SubnetState(searcher, into=Trip, on_done=Step.OFFER, as_thoughts=True)
net = Net({Step.FIND: search, Step.OFFER: offer, Step.SEAT: seat})


def book(request: Request) -> str:
    brain = Brain(net, limits=Limits(max_requests=15))
    task = f"Find a flight from {request.origin} to {request.destination} on {request.day}."
    result = brain.run_sync(task, deps=request)
    while result.questions:
        result = brain.resume_sync(input=ask(*result.questions.values()), deps=request)
    return result.answer


# Shown: a trip
print(book(Request(PAGE, "SFO", "ANC", date(2027, 1, 10))))
