"""Look-ups that lead from one to the next."""

from __future__ import annotations

from random import Random

from agent_brain.experiments.task import Task
from agent_brain.experiments.task_sets.records import make_records, reading_tool


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
