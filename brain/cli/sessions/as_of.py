"""A session as it was at a step. Private."""

from __future__ import annotations

from agent_brain.cli.exit_codes import UserError
from agent_brain.cli.sessions.places import describe
from agent_brain.memories import MessagesMemory
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.store.expiry import utc_now
from agent_brain.memories.store.history import SavedStep, saved_steps
from agent_brain.memories.store.session import read_session_key
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

    What had not expired then is there.

    Raises:
        UserError: The journal does not have the step.
    """
    step = None if number is None else await find_step(journal, key, number)
    then = None if step is None else step.time
    session, tenant = read_session_key(key)
    memory = MessagesMemory(
        journal=journal,
        session=session,
        tenant=tenant,
        readonly=True,
        clock=utc_now if then is None else lambda: then,
    )
    await memory.open()
    return memory if step is None else await memory.as_of(step)
