"""Copies of sessions with the branches below them. Private."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any, TypeAlias

import anyio

from agent_brain.memories.errors import JournalError
from agent_brain.memories.journal.base import Journal, conflict, name_of
from agent_brain.memories.journal.entry import Entry
from agent_brain.memories.store.kinds import NOTED, STEPS
from agent_brain.memories.store.session import (
    below,
    branch_key,
    branch_place,
    delete_key,
    is_session_key,
    read_session_key,
    session_key,
)
from agent_brain.tools.ids import new_id
from agent_brain.tools.secrets import get_logger

log = get_logger(__name__)
Branches: TypeAlias = Mapping[tuple[str, ...], Sequence[Entry]]  # by their places below a session


async def branch_keys(journal: Journal, key: str) -> list[str]:
    """Return the keys of all branches of a session."""
    return await journal.sessions(below(key)) if is_session_key(key) else []


async def read_entries(journal: Journal, key: str) -> list[Entry]:
    """Return the entries of a session, with its history."""
    pages = journal.pages(key, history=journal.has_history)
    return [entry async for page in pages for entry in page]


async def read_branches(journal: Journal, key: str, *place: str) -> Branches:
    """Return the branches of a session in a journal.

    Args:
        journal: The journal.
        key: The key of the session.
        place: The place of a step: only its branches. Default: all.
    """
    found = await branch_keys(journal, branch_key(key, *place) if place else key)
    return {tuple(branch_place(key, at)): await read_entries(journal, at) for at in found}


async def read_calls_after(journal: Journal, key: str, step: int) -> list[Entry]:
    """Return what a session has of calls and parts in the step that follows one.

    Args:
        journal: The journal.
        key: The key of the session.
        step: The number of the step.
    """
    found: list[Entry] = []
    async with aclosing(journal.pages(key, step, history=journal.has_history)) as pages:
        async for page in pages:
            for entry in page:
                if entry.kind in STEPS:
                    return found
                if entry.kind in NOTED:
                    found.append(replace(entry, retired=False))
    return found


def step_place(control: Mapping[str, Any]) -> tuple[str, str]:
    """Return the place of the step that comes next, as the entry of a step has it."""
    return control.get("run_id") or "", str(control.get("moves", 0))


async def write_copy(
    journal: Journal, key: str, entries: Sequence[Entry], branches: Branches
) -> None:
    """Write a session with its branches, all or nothing.

    Args:
        journal: The journal.
        key: The key of the session, which must not have entries.
        entries: Its entries.
        branches: Those of its branches.

    Raises:
        JournalConflictError: The session has entries.
        JournalError: The journal cannot do it.
    """
    if last := await journal.last(key):
        raise conflict(key, 0, last)
    for left in await branch_keys(journal, key):  # of a copy that was cut off
        await journal.delete(left)
    written: list[str] = []
    try:
        for names, inside in branches.items():
            written.append(branch_key(key, *names))
            await journal.load(written[-1], inside)
        await journal.load(key, entries)  # last: then all of it is there
    except BaseException:
        with anyio.CancelScope(shield=True), suppress(JournalError):
            for branch in written:
                await journal.delete(branch)
        raise


async def replace_session(
    journal: Journal, key: str, entries: Sequence[Entry], branches: Branches
) -> None:
    """Write a session with its branches over another one with its branches.

    Whatever fails, the old session is whole, or the new one. A journal that cannot do it in one
    step has a copy of the old one until it is done.

    Args:
        journal: The journal.
        key: The key of the session.
        entries: Its new entries.
        branches: Those of its branches.

    Raises:
        LeaseHeldError: A run uses the session.
        JournalError: The journal cannot do it.
    """
    lease = await journal.acquire(key)
    try:
        if journal.has_exchange:
            new = {branch_key(key, *names): inside for names, inside in branches.items()}
            going = [*await branch_keys(journal, key), key]
            await journal.exchange(going, {**new, key: entries})
        else:
            await _replace_in_steps(journal, key, entries, branches)
    finally:
        await journal.release(lease)


async def _replace_in_steps(
    journal: Journal, key: str, entries: Sequence[Entry], branches: Branches
) -> None:
    """Replace a session, and keep a copy of the old one until it is done."""
    name, tenant = read_session_key(key)
    aside = session_key(new_id(f"{name} before"), tenant)
    old, old_branches = await read_entries(journal, key), await read_branches(journal, key)
    await write_copy(journal, aside, old, old_branches)
    try:
        await delete_key(journal, key)
        await write_copy(journal, key, entries, branches)
    except BaseException as error:
        try:
            with anyio.CancelScope(shield=True):
                await delete_key(journal, key)
                await write_copy(journal, key, old, old_branches)
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
