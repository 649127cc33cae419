"""Reads the recorded calls of a memory, and copies them to another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from agent_brain.memories.errors import MemoryUseError
from agent_brain.memories.journal.entry import Entry
from agent_brain.memories.message import Message
from agent_brain.memories.sessions.history import SavedStep, saved_steps
from agent_brain.memories.store.kinds import TRACED, entry
from agent_brain.memories.store.many import in_thread_if_many
from agent_brain.memories.trace.model_calls import (
    ModelCallRecord,
    ToolResultRecord,
    Traced,
    digest_of,
    with_bytes,
)
from agent_brain.memories.trace.traced import ChunkReader

if TYPE_CHECKING:
    from agent_brain.memories.store.store import MessageStore

FEW = 20  # entries that are decoded at once


async def traced_entries(store: MessageStore) -> list[Entry]:
    """Return the entries of the recorded calls, in order."""
    session = store.session
    if session is None or store.shared or session.parent is not None:
        return [*store.traced.in_ram]
    found: list[Entry] = []
    async for page in session.journal.pages(session.key, history=True):
        found += [item for item in page if item.kind in TRACED]
    return found


async def read_calls(
    store: MessageStore, run_id: str | None, step: int | SavedStep | None
) -> list[ModelCallRecord]:
    """Return the recorded model calls; see :meth:`StoredMemory.model_calls`."""
    _check_choice(run_id, step)
    found = [c for c in await _read(store) if isinstance(c, ModelCallRecord)]
    if run_id is not None:
        found = [call for call in found if call.run_id == run_id]
    if isinstance(step, SavedStep):
        after = await _step_before(store, step)
        found = [call for call in found if after < call.number < step.number]
    elif step is not None:
        found = [call for call in found if call.step == step]
    return [_with_bytes(call, store) for call in found]


def _check_choice(run_id: object, step: object) -> None:
    if run_id is not None and not isinstance(run_id, str):
        raise MemoryUseError(f"run_id= takes the ID of a run, not {run_id!r}")
    number = type(step) is int and step >= 0
    if step is not None and not number and not isinstance(step, SavedStep):
        raise MemoryUseError(
            f"step= takes the number of a step, from 0, or one of steps(), not {step!r}"
        )


async def read_results(store: MessageStore, run_id: str | None) -> list[ToolResultRecord]:
    """Return the recorded results of tools."""
    found = [c for c in await _read(store) if isinstance(c, ToolResultRecord)]
    return [result for result in found if run_id in (None, result.run_id)]


async def copy_calls(source: MessageStore, target: MessageStore) -> None:
    """Write the recorded calls of one memory to another one, which has none."""
    entries = await traced_entries(source)
    session = target.session
    if not entries:
        return
    if session is None or target.shared:
        target.traced.keep_entries(entries)
        return
    async with session.lock:
        first = await session.append([entry(item.kind, item.data) for item in entries])
        target.traced.live.update(range(first, first + len(entries)))


async def _read(store: MessageStore) -> Sequence[Traced]:
    entries = await traced_entries(store)
    return await in_thread_if_many(entries, lambda found: [*ChunkReader().read(found)], FEW)


async def _step_before(store: MessageStore, step: SavedStep) -> int:
    session = store.session
    steps = [] if session is None else await saved_steps(session.journal, session.key)
    return max((saved.number for saved in steps if saved.number < step.number), default=0)


def _with_bytes(call: ModelCallRecord, store: MessageStore) -> ModelCallRecord:
    """Return ``call`` with the attachments that the memory still has."""
    if not any(_is_referred(message) for message in call.messages):
        return call
    messages = tuple(with_bytes(m, store.log.get(m.id)) for m in call.messages)
    return replace(call, messages=messages)


def _is_referred(message: Message) -> bool:
    return any(digest_of(attachment) is not None for attachment in message.attachments)
