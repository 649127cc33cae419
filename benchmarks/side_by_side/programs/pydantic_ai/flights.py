"""Booking a flight with Pydantic AI: its own example, shortened."""

from dataclasses import dataclass
from datetime import date
from typing import Literal

from pydantic import BaseModel, Field
from pydantic_ai import Agent, ModelMessage, ModelRetry, RunContext, RunUsage, UsageLimits

# Offline: a page, and what a model and a person say
from scripted import Scripted, call
from stand_ins import FLIGHTS, PAGE, SEAT, person

model = Scripted(
    [
        call("extract_flights"),
        call("final_result", response=FLIGHTS),
        call("final_result_Flight", **FLIGHTS[0]),
        call("final_result_Flight", **FLIGHTS[1]),
        call("final_result_Flight", **FLIGHTS[2]),
        call("final_result_NoSeat"),
        call("final_result_Seat", **SEAT),
    ]
)
ask = person("search", "buy", "a good one", "at the window, with leg room")


# The program
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


@dataclass
class Request:
    page: str
    origin: str
    destination: str
    day: date


searcher = Agent[Request, Flight | NoFlight](
    model,
    output_type=Flight | NoFlight,
    deps_type=Request,
    retries=4,
    instructions="Find the cheapest flight on the given day.",
)
extractor = Agent(model, output_type=list[Flight], instructions="Extract all flights.")
seats = Agent[None, Seat | NoSeat](
    model,
    output_type=Seat | NoSeat,
    instructions="Extract the seat. A and F are at windows; rows 1, 14 and 20 have leg room.",
)


@searcher.tool
async def extract_flights(ctx: RunContext[Request]) -> list[Flight]:
    """Return all flights."""
    return (await extractor.run(ctx.deps.page, usage=ctx.usage)).output


@searcher.output_validator
def fits(ctx: RunContext[Request], found: Flight | NoFlight) -> Flight | NoFlight:
    if isinstance(found, NoFlight):
        return found
    wanted = (ctx.deps.origin, ctx.deps.destination, ctx.deps.day)
    if (found.origin, found.destination, found.day) != wanted:
        raise ModelRetry(f"The flight should be {wanted}")
    return found


def find_seat(usage: RunUsage, limits: UsageLimits) -> Seat:
    history: list[ModelMessage] = []
    while True:
        text = ask("Which seat would you like?")
        result = seats.run_sync(text, message_history=history, usage=usage, usage_limits=limits)
        if isinstance(result.output, Seat):
            return result.output
        history = result.all_messages()


def book(request: Request) -> str:
    usage, limits = RunUsage(), UsageLimits(request_limit=15)
    history: list[ModelMessage] = []
    while True:
        result = searcher.run_sync(
            f"Find a flight from {request.origin} to {request.destination} on {request.day}.",
            deps=request,
            message_history=history,
            usage=usage,
            usage_limits=limits,
        )
        if isinstance(result.output, NoFlight):
            return "No flight found."
        flight = result.output
        if ask(f"{flight.number} for {flight.price}: buy, or search on?") == "buy":
            seat = find_seat(usage, limits)
            return f"Bought {flight.number}, seat {seat.row}{seat.letter}."
        history = result.all_messages(output_tool_return_content="Suggest another flight.")


# Shown: a trip
print(book(Request(PAGE, "SFO", "ANC", date(2027, 1, 10))))
