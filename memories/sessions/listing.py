"""The sessions of a journal, as a list for people."""

from __future__ import annotations

import json
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from types import EllipsisType
from typing import Any, cast

from agent_brain.memories.control import Control
from agent_brain.memories.errors import JournalError
from agent_brain.memories.journal.base import Journal, SessionRecord
from agent_brain.memories.sessions.timeline import message_of
from agent_brain.memories.store.events import MESSAGES, NOTED, RUN, checked
from agent_brain.memories.store.expiry import LONG_AGO
from agent_brain.memories.store.session import (
    USER_SESSION,
    as_rows,
    branches_prefix,
    delete_key,
    listed_key,
    listed_prefix,
    names_in,
    read_session_key,
    responses_key,
    session_key,
)

TITLE = 80  # characters
FIRST = 20  # entries in which the first message of a user is looked for
LATEST = 64  # entries in which the state of the run is looked for


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A session of a journal.

    Attributes:
        session: Its name.
        tenant: Whose it is.
        title: The beginning of the first message of a user; empty if there is none.
        status: Of its last run: ``"running"`` (or interrupted), ``"waiting"``, ``"ended"``; or
            ``"idle"`` if there was none; ``"damaged"`` if what would tell is.
        state: The state that the run is in.
        created: When its first entry was written (aware, UTC); None if unknown.
        updated: When its last entry was written.
        entries: The number of its entries, history included.
        wake_at: When its run must be resumed, if it sleeps (aware, UTC).
        resumable: Whether its last run can be resumed: it waits, was interrupted (or is in
            progress), or has ended early.
    """

    session: str
    tenant: str | None
    title: str
    status: str
    state: str | None
    created: datetime | None
    updated: datetime | None
    entries: int
    wake_at: datetime | None = None
    resumable: bool = False


async def list_sessions(
    journal: Journal, *, tenant: str | EllipsisType | None = ..., limit: int | None = None
) -> list[SessionInfo]:
    """Return the sessions of a journal, those that were written to last first.

    Args:
        journal: The journal.
        tenant: Only the sessions of this tenant; None for those of nobody. Default: all.
        limit: At most this many.
    """
    prefix = "[" if tenant is ... else tenant_prefix(tenant)
    records = [r for r in await journal.records(prefix) if is_session(r.key)]
    records.sort(key=lambda record: record.updated or LONG_AGO, reverse=True)
    return [await _info(journal, record) for record in records[:limit]]


async def delete_session(journal: Journal, session: str, *, tenant: str | None = None) -> int:
    """Remove a session from a journal, with all that it and a server's list have of it.

    Args:
        journal: The journal.
        session: The name of the session.
        tenant: Whose it is.

    Returns:
        How many entries it had; 0 if there is no such session.
    """
    key = session_key(session, tenant)
    for beside in (listed_key(session, tenant), responses_key(key)):
        await journal.delete(beside)
    return await delete_key(journal, key)


async def delete_lists(journal: Journal, tenant: str | None) -> None:
    """Remove what a server's lists have of a tenant: titles of sessions, branches of chats."""
    for prefix in (listed_prefix(tenant), branches_prefix(tenant)):
        for key in await journal.sessions(prefix):
            await journal.delete(key)


def is_session(key: str) -> bool:
    """Return whether a key is that of a conversation.

    Others are of a branch of one, of what is known about a user, or of something else.
    """
    match names_in(key):
        case [str() | None, str() as session]:
            return session != USER_SESSION
    return False


def tenant_prefix(tenant: str | None) -> str:
    """Return what the keys of all sessions of a tenant begin with, and no other key."""
    return session_key("", tenant)[: -len('""]')]


async def sessions_of(journal: Journal, tenant: str | None) -> list[str]:
    """Return the names of the conversations of a tenant in a journal."""
    keys = await journal.sessions(tenant_prefix(tenant))
    return [read_session_key(key)[0] for key in keys if is_session(key)]


async def _info(journal: Journal, record: SessionRecord) -> SessionInfo:
    session, tenant = read_session_key(record.key)
    title = ""
    try:
        async with aclosing(journal.pages(record.key, size=FIRST)) as pages:
            first = [entry for entry in await anext(pages, []) if entry.kind in MESSAGES]
        said = next((m.content for m in map(message_of, first) if m.role == "user"), "")
        title = " ".join(said.split())[:TITLE]
        control = await last_control(journal, record.key)
    except JournalError:
        control = {"status": "damaged"}
    wake_at = control.get("wake_at")
    return SessionInfo(
        session,
        tenant,
        title,
        control.get("status", "idle"),
        control.get("state"),
        record.created,
        record.updated,
        record.entries,
        None if wake_at is None else datetime.fromisoformat(wake_at),
        is_resumable(control),
    )


def is_resumable(control: dict[str, Any]) -> bool:
    """Return whether the run of a session can be resumed; see :func:`last_control`."""
    known = {
        name: control[name] for name in ("run_id", "status", "state", "done") if name in control
    }
    return control.get("status") != "damaged" and Control(**known).resumable


async def last_control(journal: Journal, key: str) -> dict[str, Any]:
    """Return the last state of the run of a session, as it is stored; empty if it had none."""
    rows = checked(as_rows(await journal.rows(key, max(await journal.last(key) - LATEST, 0))))
    for _, kind, line in reversed([*rows]):
        if kind in RUN and kind not in NOTED:
            data = json.loads(line)
            return cast("dict[str, Any]", data["control"] if kind == "amend" else data)
    return {}
