"""A stored session as it is, or as it was at a step, for who looks at it."""

from __future__ import annotations

from agent_brain.memories.journal.base import Journal
from agent_brain.memories.messages import MessagesMemory
from agent_brain.memories.sessions.history import SavedStep
from agent_brain.memories.store.expiry import utc_now
from agent_brain.memories.store.session import read_session_key
from agent_brain.memories.stored import StoredMemory


async def memory_at(journal: Journal, key: str, step: SavedStep | None = None) -> StoredMemory:
    """Return a memory that shows all of a session, as it is or as it was at a step.

    What had not expired then is there.

    Args:
        journal: The journal; nothing is written to it.
        key: The session's key.
        step: A step that the journal has.
    """
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
