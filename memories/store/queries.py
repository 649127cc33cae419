"""Reads the messages of a store: found by a query, those of a turn, all of them."""

from __future__ import annotations

from collections.abc import Iterable

from agent_brain.memories.message import Message
from agent_brain.memories.store.events import Replayed, effective
from agent_brain.memories.store.filters import Query
from agent_brain.memories.store.log import MessageLog
from agent_brain.memories.store.many import in_slices, in_thread_if_many
from agent_brain.memories.store.store import MessageStore
from agent_brain.memories.views.groups import arranged, newest

ANY = Query()


async def find(log: MessageLog, query: Query, last: int | None) -> list[Message]:
    """Return the messages that a query finds, in order: the ``last`` of them, or all.

    Raises:
        MemoryUseError: As for :meth:`StoredMemory.messages`.
    """
    if query == ANY:
        newest([], last)  # checks it
        return await everything(log) if last is None else newest(log.newest(last), last)
    fits = query.predicate()
    await log.decoded()
    candidates: Iterable[Message] = log
    if isinstance(query.cause_by, str):
        candidates = log.having("cause_by", query.cause_by)
    elif isinstance(query.role, str):
        candidates = log.having("role", query.role)
    return newest([message async for message in in_slices(candidates) if fits(message)], last)


async def everything(log: MessageLog) -> list[Message]:
    """Return all messages that are in RAM, in order."""
    if log.encoded:
        await log.decoded()
    return log.all()


async def read_journal(store: MessageStore, after: int = 0, *, removed: bool = False) -> Replayed:
    """Return the messages of the journal by ID.

    Args:
        store: A store with a journal.
        after: Only entries with a larger sequence number.
        removed: Include those that were removed and are still in the journal.
    """
    assert store.session is not None
    rows = await store.session.rows(after)
    return await in_thread_if_many(
        rows, lambda rows: Replayed(rows if removed else effective(rows), removed=removed)
    )


async def journal_messages(store: MessageStore, after: int = 0) -> list[Message]:
    """Return the messages of the journal after a sequence number, in order."""
    found = await read_journal(store, after)
    return await in_thread_if_many(found, lambda found: arranged(found.values()))


async def whole_session(store: MessageStore) -> list[Message]:
    """Return all messages, with those that have left the view and are not gone."""
    if store.evicted_upto and not store.in_ram:
        return await journal_messages(store)
    messages = await everything(store.log)
    return merged(store, messages, store.released.values()) if store.released else messages


def merged(
    store: MessageStore, messages: Iterable[Message], released: Iterable[tuple[int, Message]]
) -> list[Message]:
    """Return messages of the log with evicted ones, which have their places."""
    placed = [*((store.log.place(message.id), message) for message in messages), *released]
    return arranged(message for _, message in sorted(placed, key=lambda pair: pair[0]))
