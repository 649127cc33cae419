"""A session as it was at a step. Private."""

from __future__ import annotations

from agent_brain.cli.exit_codes import UserError
from agent_brain.cli.sessions.places import describe
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.sessions import reading
from agent_brain.memories.sessions.history import SavedStep, saved_steps
from agent_brain.memories.stored import StoredMemory

CLOSE = 3  # numbers that an error names


async def find_step(journal: Journal, key: str, number: int) -> SavedStep:
    """Return a step of a session.

    Raises:
        UserError: The journal does not have it; the message names the closest ones.
    """
    steps = {step.number: step for step in await saved_steps(journal, key)}
    if number not in steps:
        close = sorted(sorted(steps, key=lambda known: abs(known - number))[:CLOSE])
        near = f"the closest are {', '.join(map(str, close))}" if close else "it has none"
        raise UserError(
            f"There is no step {number} of {describe(key)}: {near}; agent-brain sessions steps "
            "lists all that are kept"
        )
    return steps[number]


async def memory_at(journal: Journal, key: str, number: int | None) -> StoredMemory:
    """Return a memory that shows all of a session, as it is or as it was at a step.

    Raises:
        UserError: The journal does not have the step.
    """
    step = None if number is None else await find_step(journal, key, number)
    return await reading.memory_at(journal, key, step)
