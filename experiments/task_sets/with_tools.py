"""Tasks with tools: arithmetic, and look-ups that lead from one to the next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from agent_brain.experiments.expressions import Expression, Operation, value_of, write
from agent_brain.experiments.task import Task
from agent_brain.experiments.task_sets.making import TOWNS, code, people, person
from agent_brain.tools.base import BaseTool
from agent_brain.tools.errors import ToolError
from agent_brain.tools.function import tool

_WORDS = (
    "What is {sum}?",
    "Calculate {sum}.",
    "Order {order} came with {boxes} boxes, which does not matter here. What is {sum}?",
    "What is {sum}? The form with number {order} is another matter.",
)


def arithmetic(random: Random, name: str) -> Task:
    """Return a task: an expression of three to five operations, among numbers that do not count."""
    expression = make_expression(random, random.randint(3, 5))
    text = random.choice(_WORDS).format(
        sum=write(expression), order=random.randrange(1000, 9999), boxes=random.randrange(2, 99)
    )
    return Task(
        id=name,
        turns=text,
        expected=int(value_of(expression)),
        tools=calculators,
        tags=["arithmetic"],
    )


def make_expression(random: Random, operations: int) -> Expression:
    """Return an expression with this many operations, whose every value is a whole number."""
    expression: Expression = random.randint(11, 99)
    for _ in range(operations):
        symbol = random.choice("+-*")
        other: Expression = random.randint(2, 9) if symbol == "*" else random.randint(11, 999)
        if symbol != "*" and random.random() < 0.3:
            other = Operation("*", random.randint(11, 99), random.randint(2, 9))
        sides = (other, expression) if random.random() < 0.3 else (expression, other)
        expression = Operation(symbol, *sides)
    return expression


def calculators() -> list[BaseTool]:
    """Return tools for the operations, and one that nobody needs."""

    @tool
    def add(a: int, b: int) -> int:
        """Add two whole numbers."""
        return a + b

    @tool
    def subtract(a: int, b: int) -> int:
        """Subtract the whole number b from a."""
        return a - b

    @tool
    def multiply(a: int, b: int) -> int:
        """Multiply two whole numbers."""
        return a * b

    @tool
    def largest(a: int, b: int) -> int:
        """Compare two whole numbers and return the larger one."""
        return max(a, b)

    return [add, subtract, multiply, largest]


_DEPARTMENTS = "Accounting Archives Design Logistics Purchasing Research Sales Security".split()
_SHIPS = "Albatross Castor Dolphin Fulmar Heron Kittiwake Osprey Petrel Puffin Tern".split()
_BOOKS = (
    "Amber|Beyond the Mill|Cold Ferries|Dust and Salt|Early Snow|Grey Harbours|Long Shadows|"
    "Quiet Engines"
).split("|")


@dataclass(frozen=True, slots=True)
class Records:
    """Records, and a way through them.

    Attributes:
        entries: What each record holds, by its name.
        start: The record at the beginning of the way.
        way: The entries to follow, from the beginning on.
        answer: What stands at its end.
    """

    entries: Mapping[str, Mapping[str, str]]
    start: str
    way: tuple[str, ...]
    answer: str

    @property
    def asked(self) -> str:
        """What is asked for, such as "the town of the manager of Logistics"."""
        return " of ".join(["the " + name for name in reversed(self.way)]) + f" of {self.start}"

    def read(self, name: str) -> str:
        """Return the record of a name as text.

        Raises:
            ToolError: There is none.
        """
        known = {one.casefold(): one for one in self.entries}
        found = known.get(name.strip().casefold())
        if found is None:
            raise ToolError(f"There is no record of {name!r}")
        return f"{found}. " + "; ".join(f"{k}: {v}" for k, v in self.entries[found].items())


def make_records(random: Random, hops: int) -> Records:
    """Return records with a way of two to four entries, beside records that lead elsewhere."""
    steps = random.choice((_company, _ship, _book))(random)[:hops]
    start = steps[0][0]
    entries: dict[str, dict[str, str]] = {}
    for (name, entry, value), (_, _, other) in zip(steps, _others(random, steps), strict=True):
        entries[name] = {entry: value} | _padding(random)
        entries[_near(random, name, entries)] = {entry: other} | _padding(random)
    return Records(entries, start, tuple(step[1] for step in steps), steps[-1][2])


Step = tuple[str, str, str]


def _company(random: Random) -> list[Step]:
    clerk, manager, mayor = people(random, 3)
    department, town = random.choice(_DEPARTMENTS), random.choice(TOWNS)
    return _way(clerk, "department", department, "manager", manager, "town", town, "mayor", mayor)


def _ship(random: Random) -> list[Step]:
    captain, mayor = people(random, 2)
    ship, town = random.choice(_SHIPS), random.choice(TOWNS)
    badge = code(random)
    return _way(ship, "captain", captain, "birthplace", town, "mayor", mayor, "badge", badge)


def _book(random: Random) -> list[Step]:
    author, printer = people(random, 2)
    book, town = random.choice(_BOOKS), random.choice(TOWNS)
    postcode = code(random)
    return _way(book, "author", author, "printer", printer, "town", town, "postcode", postcode)


def _way(*names: str) -> list[Step]:
    """Return the steps from each name, by an entry of it, to the next name."""
    return [*zip(names[:-2:2], names[1::2], names[2::2], strict=True)]


def _others(random: Random, steps: list[Step]) -> list[Step]:
    """Return values that differ from those of the way."""
    others = []
    for name, entry, value in steps:
        pool = [*TOWNS, *_DEPARTMENTS] if " " not in value else people(random, 9)
        fresh = code(random) if "-" in value else random.choice([p for p in pool if p != value])
        others.append((name, entry, fresh))
    return others


def _padding(random: Random) -> dict[str, str]:
    return {"room": str(random.randrange(100, 999)), "since": str(random.randrange(1990, 2025))}


def _near(random: Random, name: str, taken: Mapping[str, object]) -> str:
    """Return a name like another one, that no record has."""
    while True:
        near = f"{name.partition(' ')[0]} {person(random).partition(' ')[2]}"
        if near not in taken:
            return near


def reading_tool(
    records: Records,
    name: str = "look_up",
    about: str = "",
    *,
    fails: Callable[[str], str] = lambda name: "",
) -> BaseTool:
    """Return a tool that reads records.

    Args:
        records: The records.
        name: The name of the tool.
        about: What its description says besides.
        fails: Returns the error of a call, by the name that is looked up; empty for none.
    """

    def read(name: str) -> str:
        if problem := fails(name):
            raise ToolError(problem)
        return records.read(name)

    described = f"Look up the record of a person, a place, a department or a thing.{about}"
    return tool(name=name, description=described)(read)


def lookup(random: Random, name: str) -> Task:
    """Return a task: a question whose answer takes two to four look-ups."""
    records = make_records(random, random.randint(2, 4))
    return Task(
        id=name,
        turns=f"What is {records.asked}?",
        expected=records.answer,
        tools=lambda: [reading_tool(records)],
        tags=["lookup"],
    )


def failing_tool(random: Random, name: str) -> Task:
    """Return a task of two look-ups, the tool of which fails for a while or for one name."""
    records = make_records(random, 2)
    make = _busy_once if random.random() < 0.5 else _broken_for_one
    return Task(
        id=name,
        turns=f"What is {records.asked}?",
        expected=records.answer,
        tools=lambda: make(records),
        tags=["failing tool"],
    )


def _busy_once(records: Records) -> list[BaseTool]:
    """Return a tool that fails at its first call, and works after it."""
    problems = iter(["The records are busy: try again"])
    return [reading_tool(records, fails=lambda name: next(problems, ""))]


def _broken_for_one(records: Records) -> list[BaseTool]:
    """Return a tool that fails for the first name of the way, and one that reads old copies."""

    def fails(name: str) -> str:
        same = name.strip().casefold() == records.start.casefold()
        return f"The record of {name!r} is damaged: read it in the archive" if same else ""

    archive = reading_tool(records, "archive", " These are copies on paper.")
    return [reading_tool(records, fails=fails), archive]
