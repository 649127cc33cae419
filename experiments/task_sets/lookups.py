"""Look-ups that lead from one to the next, also with tools that fail."""

from __future__ import annotations

from random import Random

from agent_brain.experiments.task import Task
from agent_brain.experiments.task_sets.records import Records, make_records, reading_tool
from agent_brain.tools.base import BaseTool
from agent_brain.tools.errors import ToolError
from agent_brain.tools.function import tool


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
    passing = random.random() < 0.5
    return Task(
        id=name,
        turns=f"What is {records.asked}?",
        expected=records.answer,
        tools=(lambda: busy_once(records)) if passing else (lambda: broken_for_one(records)),
        tags=["failing tool"],
    )


def busy_once(records: Records) -> list[BaseTool]:
    """Return a tool that fails at its first call, and works after it."""
    calls = 0

    @tool
    def look_up(name: str) -> str:
        """Look up the record of a person, a place, a department or a thing."""
        nonlocal calls
        calls += 1
        if calls == 1:
            raise ToolError("The records are busy: try again")
        return records.read(name)

    return [look_up]


def broken_for_one(records: Records) -> list[BaseTool]:
    """Return a tool that fails for the first name of the way, and one that reads old copies."""

    @tool
    def look_up(name: str) -> str:
        """Look up the record of a person, a place, a department or a thing."""
        if name.strip().casefold() == records.start.casefold():
            raise ToolError(f"The record of {name!r} is damaged: read it in the archive")
        return records.read(name)

    return [look_up, reading_tool(records, "archive", " These are copies on paper.")]
