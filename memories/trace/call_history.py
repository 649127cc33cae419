"""Reads the recorded calls of a memory, and copies them to another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_brain.memories.errors import MemoryUseError
from agent_brain.memories.sessions.timeline import SavedStep, saved_steps
from agent_brain.memories.store.events import RECORDED_CALL
from agent_brain.memories.store.many import in_thread_if_many
from agent_brain.memories.store.session import entries_of
from agent_brain.memories.trace.chunks import ChunkReader
from agent_brain.memories.trace.recorded_call import DIGEST, RecordedCall, with_bytes

if TYPE_CHECKING:
    from agent_brain.memories.store.store import MessageStore

AT_ONCE = 20  # entries that are decoded at once


async def read_calls(
    store: MessageStore, run_id: str | None, step: int | SavedStep | None
) -> list[RecordedCall]:
    """Return the recorded calls; see :meth:`StoredMemory.recorded_calls`."""
    if run_id is not None and not isinstance(run_id, str):
        raise MemoryUseError(f"run_id= takes the ID of a run, not {run_id!r}")
    number = type(step) is int and step >= 0
    if step is not None and not number and not isinstance(step, SavedStep):
        raise MemoryUseError(
            f"step= takes the number of a step, from 0, or one of steps(), not {step!r}"
        )
    found = await _stored_calls(store)
    if run_id is not None:
        found = [call for call in found if call.run_id == run_id]
    if isinstance(step, SavedStep):
        session = store.session
        steps = [] if session is None else await saved_steps(session.journal, session.key)
        after = max((saved.number for saved in steps if saved.number < step.number), default=0)
        found = [call for call in found if after < call.number < step.number]
    elif step is not None:
        found = [call for call in found if call.step == step]
    return [_with_bytes(call, store) for call in found]


async def copy_calls(source: MessageStore, target: MessageStore) -> None:
    """Write the recorded calls of one memory to another one, which has none."""
    if calls := await _stored_calls(source):
        await target.trace(calls)


async def _stored_calls(store: MessageStore) -> list[RecordedCall]:
    """Return the recorded calls as they are stored, in order."""
    session = store.session
    if session is None or store.shared or session.parent is not None:
        return [*store.traced.in_ram]
    walk = entries_of(session.journal, session.key)
    entries = [item async for item in walk if item.kind == RECORDED_CALL]
    return await in_thread_if_many(entries, lambda found: [*ChunkReader().read(found)], AT_ONCE)


def _with_bytes(call: RecordedCall, store: MessageStore) -> RecordedCall:
    """Return ``call`` with the attachments that the memory still has."""
    attached = (attachment for message in call.messages for attachment in message.attachments)
    if not any((attachment.url or "").startswith(DIGEST) for attachment in attached):
        return call
    messages = tuple(with_bytes(m, store.log.get(m.id)) for m in call.messages)
    return call.model_copy(update={"messages": messages})
