"""Forms to be filled in: output of a given type, from a note among other notes and a look-up."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from random import Random
from typing import Any, Literal

from pydantic import BaseModel

from agent_brain.experiments.task import Task
from agent_brain.experiments.task_sets.making import TOWNS, people
from agent_brain.experiments.task_sets.with_tools import Records, reading_tool


class Order(BaseModel):
    """An order."""

    customer: str
    item: str
    quantity: int
    delivery: Literal["normal", "express"]
    town: str


class Booking(BaseModel):
    """A booking of a room."""

    guest: str
    room: int
    duration: int  # nights
    extras: list[str]


@dataclass(frozen=True)
class Repair:
    """A repair."""

    device: str
    fault: str
    cost: int
    mechanic: str


_ITEMS = "anvil barrel chair drill easel flute globe hammock kettle lantern mirror ladder".split()
_FAULTS = ("a broken belt", "a loose wire", "a worn bearing", "a cracked lens", "a dead battery")


def structured(random: Random, name: str) -> Task:
    """Return a task: a form to be filled in from one of three notes."""
    make = random.choice((_order, _booking, _repair))
    number, *others = random.sample(range(1000, 9999), 3)
    thing, entries, output_type, records = make(random)
    notes = [_note(f"{thing} {number}", entries)]
    notes += [_note(f"{thing} {other}", make(random)[1]) for other in others]
    asked = f"Fill in the form for {thing} {number}."
    town = f" Look up the town of the customer of {thing} {number}." if records else ""
    return Task(
        id=name,
        turns="\n".join([*random.sample(notes, 3), asked + town]),
        expected=_data(entries, output_type, records),
        output_type=output_type,
        tools=(lambda: [reading_tool(records)]) if records else (),
        tags=["structured"],
    )


Made = tuple[str, dict[str, Any], type[Any], Records | None]


def _order(random: Random) -> Made:
    customer, other = people(random, 2)
    town, elsewhere = random.sample(TOWNS, 2)
    entries = {
        "customer": customer,
        "item": random.choice(_ITEMS),
        "quantity": random.randrange(2, 90),
        "delivery": random.choice(["normal", "express"]),
    }
    held = {customer: {"town": town}, other: {"town": elsewhere}}
    return "order", entries, Order, Records(held, customer, ("town",), town)


def _booking(random: Random) -> Made:
    entries = {
        "guest": people(random, 1)[0],
        "room": random.randrange(100, 600),
        "duration": random.randrange(2, 15),
        "extras": random.sample(["breakfast", "a cot", "a parking place", "a boat"], 2),
    }
    return "booking", entries, Booking, None


def _repair(random: Random) -> Made:
    entries = {
        "device": random.choice(["camera", "lathe", "mower", "printer", "projector", "pump"]),
        "fault": random.choice(_FAULTS),
        "cost": random.randrange(20, 900),
        "mechanic": people(random, 1)[0],
    }
    return "repair", entries, Repair, None


def _note(subject: str, entries: dict[str, Any]) -> str:
    """Return sentences that say what the entries are."""
    return " ".join(f"The {name} of {subject} {_say(value)}." for name, value in entries.items())


def _say(value: Any) -> str:
    return f"are {' and '.join(value)}" if isinstance(value, list) else f"is {value}"


def _data(entries: dict[str, Any], output_type: type[Any], records: Records | None) -> Any:
    """Return the form as plain data."""
    more = {"town": records.answer} if records else {}
    form = output_type(**entries, **more)
    return form.model_dump() if isinstance(form, BaseModel) else asdict(form)
