"""A server that asks a person, over stdio."""

from __future__ import annotations

from typing import Annotated, Literal

import anyio
from mcp.server import MCPServer
from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Context, Elicit, Resolve
from pydantic import BaseModel, Field

server = MCPServer("Asking", log_level="ERROR")
booked: list[str] = []
told: list[str] = []
ordering: list[Context] = []
both = anyio.Event()


class Seat(BaseModel):
    row: int = Field(ge=1, le=30)
    side: Literal["window", "aisle"] = "aisle"


class Sure(BaseModel):
    sure: bool


class Drink(BaseModel):
    drink: Literal["tea", "coffee"]


class Nothing(BaseModel):
    pass


async def which_seat(flight: str) -> Elicit[Seat]:
    return Elicit(f"Which seat on {flight}?", Seat)


async def is_sure(seat: Annotated[Seat, Resolve(which_seat)]) -> Elicit[Sure]:
    return Elicit(f"Row {seat.row}, really?", Sure)


@server.tool()
async def book(
    flight: str,
    seat: Annotated[Seat, Resolve(which_seat)],
    sure: Annotated[ElicitationResult[Sure], Resolve(is_sure)],
) -> str:
    """Book a seat."""
    if not isinstance(sure, AcceptedElicitation) or not sure.data.sure:
        return f"not booked: {sure.action}"
    booked.append(flight)
    return f"{flight}: {seat.row} {seat.side}, {len(booked)} booked"


@server.tool()
async def order(ctx: Context) -> str:
    """Order a drink; asks as servers of the older protocol do."""
    result = await ctx.elicit("Which drink?", Drink)
    told.append(result.action)
    return f"{' '.join(told)}: {getattr(result, 'data', None)}"


@server.tool()
async def order_two(ctx: Context) -> str:
    """Order a drink, once two calls do."""
    ordering.append(ctx)
    if len(ordering) == 2:
        both.set()
    await both.wait()
    result = await ctx.elicit("Which drink?", Drink)
    return result.action


@server.tool()
async def odd(ctx: Context) -> str:
    """Ask with a form that nobody can fill in."""
    form = {"type": "object", "properties": {"x": {"type": "float"}}}
    return (await ctx.session.elicit_form("How much?", form)).action


@server.tool()
async def confirm(ctx: Context) -> str:
    """Ask for a confirmation without fields, then for one at a URL."""
    first = await ctx.elicit("Go on?", Nothing)
    second = await ctx.elicit_url("Please pay", "https://example.org/pay", "payment-1")
    return f"{first.action} {second.action}"


if __name__ == "__main__":
    server.run("stdio")
