"""Copies of sessions with the branches below them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, cast

import anyio

from agent_brain.common.ids import new_id
from agent_brain.common.secrets import get_logger
from agent_brain.memories.errors import JournalError
from agent_brain.memories.journal.base import Journal, conflict, name_of
from agent_brain.memories.journal.checks import to_lines
from agent_brain.memories.journal.entry import Entry, Line, Lines
from agent_brain.memories.store.events import NOTED
from agent_brain.memories.store.session import (
    below,
    branch_key,
    branch_place,
    delete_key,
    entries_of,
    is_session_key,
    read_session_key,
    session_key,
)

log = get_logger(__name__)
Branches: TypeAlias = Mapping[tuple[str, ...], Sequence[Entry]]  # by their places below a session


@dataclass(frozen=True, slots=True)
class SessionCopy:
    """A session with its branches, to be written somewhere else.

    Attributes:
        entries: Its entries, with its history. Many are text until they are used.
        branches: Those of its branches.
    """

    entries: Sequence[Entry]
    branches: Branches = field(default_factory=dict)

    async def write(self, journal: Journal, key: str, *, replace: bool = False) -> None:
        """Write the session with its branches, all or nothing.

        Args:
            journal: The journal.
            key: The key of the session.
            replace: Write it over what is there; otherwise nothing may be.

        Raises:
            JournalConflictError: The session has entries.
            LeaseHeldError: A run uses the session that is replaced.
            JournalError: The journal cannot do it.
        """
        if replace:
            await self._replace(journal, key)
            return
        if last := await journal.last(key):
            raise conflict(key, 0, last)
        for left in await branch_keys(journal, key):  # of a copy that was cut off
            await journal.delete(left)
        written: list[str] = []
        try:
            for names, inside in self.branches.items():
                written.append(branch_key(key, *names))
                await journal.load(written[-1], inside)
            await journal.load(key, self.entries)  # last: then all of it is there
        except BaseException:
            with anyio.CancelScope(shield=True), suppress(JournalError):
                for branch in written:
                    await journal.delete(branch)
            raise

    async def _replace(self, journal: Journal, key: str) -> None:
        """Write the session over another one.

        Whatever fails, the old session is whole, or the new one. A journal that cannot do it in one
        step has a copy of the old one until it is done.
        """
        lease = await journal.acquire(key)
        try:
            if journal.has_exchange:
                new = {branch_key(key, *names): inside for names, inside in self.branches.items()}
                going = [*await branch_keys(journal, key), key]
                await journal.exchange(going, {**new, key: self.entries})
            else:
                await _replace_in_steps(journal, key, self)
        finally:
            await journal.release(lease)


async def copy_at(
    journal: Journal, key: str, step: int | None = None, place: Sequence[str] | None = None
) -> SessionCopy:
    """Return a session as it is, or as of a step, with the branches that the step after it began.

    If there are such branches, what is known of the calls of that step is there too.

    Args:
        journal: The journal.
        key: The key of the session.
        step: The number of the last entry, which is a step; None for all entries and branches.
        place: The place of the step after it, if no entry of the session says so.
    """
    if step is None:
        return SessionCopy(await read_entries(journal, key), await _read_branches(journal, key))
    lines: list[Line] = []
    calls: list[Line] = []
    async with aclosing(entries_of(journal, key)) as found:
        async for entry in found:
            if entry.seq > step and entry.kind == "step":
                break
            if entry.seq <= step or entry.kind in NOTED:
                # what is history now was not when it was the last one
                line = to_lines([replace(entry, retired=False)], timed=True)
                (lines if entry.seq <= step else calls).extend(line)
    entries = Lines(lines)
    if place is None and entries and entries[-1].kind == "step":
        place = step_place(cast("dict[str, Any]", entries[-1].data))
    branches = await _read_branches(journal, branch_key(key, *place), key) if place else {}
    return SessionCopy(Lines(lines + calls) if branches else entries, branches)


async def branch_keys(journal: Journal, key: str) -> list[str]:
    """Return the keys of all branches of a session."""
    return await journal.sessions(below(key)) if is_session_key(key) else []


async def read_entries(journal: Journal, key: str) -> Sequence[Entry]:
    """Return the entries of a session, with its history."""
    lines: list[Line] = []
    async with aclosing(journal.pages(key, history=journal.has_history)) as pages:
        async for page in pages:
            lines += to_lines(page, timed=True)
    return Lines(lines)


async def _read_branches(journal: Journal, key: str, session: str | None = None) -> Branches:
    """Return the branches below a key, by their places below the session."""
    found = await branch_keys(journal, key)
    return {
        tuple(branch_place(session or key, at)): await read_entries(journal, at) for at in found
    }


def step_place(control: Mapping[str, Any]) -> tuple[str, str]:
    """Return the place of the step that comes next, as the entry of a step has it."""
    return control.get("run_id") or "", str(control.get("moves", 0))


async def _replace_in_steps(journal: Journal, key: str, copy: SessionCopy) -> None:
    """Replace a session, and keep a copy of the old one until it is done."""
    name, tenant = read_session_key(key)
    aside = session_key(new_id(f"{name} before"), tenant)
    old = await copy_at(journal, key)
    await old.write(journal, aside)
    try:
        await delete_key(journal, key)
        await copy.write(journal, key)
    except BaseException as error:
        try:
            with anyio.CancelScope(shield=True):
                await delete_key(journal, key)
                await old.write(journal, key)
                await delete_key(journal, aside)
        except JournalError as worse:
            raise JournalError(
                f"{name_of(key)} could not be replaced ({error}), nor put back ({worse}): what it "
                f"was is {name_of(aside)}"
            ) from error
        raise
    try:
        await delete_key(journal, aside)
    except JournalError as error:
        log.warning("What %s was before is still %s: %s", name_of(key), name_of(aside), error)
