"""Copies what can still be read of a damaged journal into another one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from agent_brain.memories.errors import JournalConflictError, JournalDamagedError, JournalError
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.journal.entry import Entry


@dataclass(frozen=True, slots=True)
class SalvagedSession:
    """What was copied of a session.

    Attributes:
        key: Its key.
        entries: How many entries were copied, history included.
        last: The number of the last one, 0 if there is none.
        problem: What could not be read or copied; None if everything was.
    """

    key: str
    entries: int
    last: int
    problem: str | None


@dataclass(frozen=True, slots=True)
class Salvage:
    """What was copied of a journal.

    Attributes:
        sessions: The sessions, sorted by key.
        problem: Why sessions may be missing; None if the list of them is whole.
    """

    sessions: list[SalvagedSession]
    problem: str | None


@runtime_checkable
class Salvageable(Protocol):
    """A journal that can read a session although its place in the list of sessions is damaged."""

    async def readable_sessions(self) -> list[str]:
        """Return the keys of sessions that can be found, maybe not of all, sorted."""
        ...


async def salvage(source: Journal, target: Journal, prefix: str = "") -> Salvage:
    """Copy of every session what stands before the damage.

    Numbers, versions, times and the history are kept.

    Args:
        source: The damaged journal, opened with ``readonly=True`` if it can be: it is not written.
        target: Another journal. A session that it has already is not touched.
        prefix: Only sessions whose keys start with it.

    Raises:
        JournalError: The source cannot be read at all, or the target cannot be written.
    """
    if not getattr(source, "readonly", True):
        raise JournalError("Open the damaged journal with readonly=True, so that nothing changes")
    keys, problem = await _keys(source, prefix)
    return Salvage([await _copy(source, target, key) for key in keys], problem)


async def _keys(source: Journal, prefix: str) -> tuple[list[str], str | None]:
    try:
        return await source.sessions(prefix), None
    except JournalDamagedError as error:
        if not isinstance(source, Salvageable):
            raise
        keys = await source.readable_sessions()
        return [key for key in keys if key.startswith(prefix)], str(error)


async def _copy(source: Journal, target: Journal, key: str) -> SalvagedSession:
    found: list[Entry] = []
    problem = await _read(source, key, found, history=source.has_history)
    if problem is not None:  # it may be in the history
        await _read(source, key, found, history=False)
    last = found[-1].seq if found else 0
    try:
        await target.load(key, found)
    except JournalConflictError:
        return SalvagedSession(key, 0, 0, "The target has this session already")
    return SalvagedSession(key, len(found), last, problem)


async def _read(source: Journal, key: str, into: list[Entry], *, history: bool) -> str | None:
    """Add the entries up to a damage that are not there yet; return what is wrong."""
    after = into[-1].seq if into else 0
    try:
        async for page in source.pages(key, after, history=history):
            into += [entry for entry in page if entry.seq > after]
    except JournalDamagedError as error:
        return str(error)
    return None
