"""The list of sessions of each owner, in the journal that holds them. Private."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pydantic import JsonValue

from agent_brain.errors import BrainUseError
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.journal.entry import Entry

TITLE_LENGTH = 80


@dataclass(frozen=True, slots=True)
class Origin:
    """What a session was copied from.

    Attributes:
        session: The ID of the session.
        step: The number of the step that it was copied as of.
    """

    session: str
    step: int


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A session in a list.

    Attributes:
        id: The ID of the session.
        title: The beginning of its first question, or what a person has named it.
        updated_at: When its last run began.
        status: ``"idle"``, ``"running"`` or ``"waiting"`` for a person; ``"closed"`` if it is not
            open, so that its state is only in the journal.
        failed: Whether its last run failed.
        resumable: Whether its last run can be resumed, as it waits or has ended early. Of a session
            that is not open it is what was known when the run ended.
        origin: What it was copied from; None if it was not.
        cursor: Its place in the list: ``after`` of :meth:`Sessions.list`; empty if it was not
            listed.
    """

    id: str
    title: str
    updated_at: datetime
    status: str = "closed"
    failed: bool = False
    resumable: bool = False
    origin: Origin | None = None
    cursor: str = ""


class Catalog:
    """Which sessions a journal holds, with title and time.

    Each session has an entry under a key of its own, which no memory can have.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def sessions(
        self, owner: str | None, *, limit: int | None, after: str | None, search: str
    ) -> list[SessionInfo]:
        """Return sessions of ``owner``, the last changed first; see :meth:`Sessions.list`."""
        records = await self._journal.records(_key(owner, "")[: -len('""]}')])
        places = sorted((_milliseconds(record.updated), record.key) for record in records)
        last = None if after is None else _place(owner, after)
        found: list[SessionInfo] = []
        for place in reversed(places):
            if limit is not None and len(found) >= limit:
                break
            if last is not None and place >= last:
                continue
            info = await self._read(place[1])
            if info is not None and matches(info, search):
                found.append(replace(info, cursor=f"{place[0]}.{info.id}"))
        return found

    async def get(self, owner: str | None, session: str) -> SessionInfo | None:
        """Return the session of that ID, if ``owner`` has one."""
        return await self._read(_key(owner, session))

    async def note(
        self, owner: str | None, info: SessionInfo, *, rename: bool = False
    ) -> SessionInfo:
        """Record a session; return it as it is recorded.

        Args:
            owner: Whose it is.
            info: The session. If it is known, its title and its origin stay.
            rename: Change the title too.
        """
        key = _key(owner, info.id)
        old = await self._journal.read(key)
        if old:
            known = _info(old[-1])
            title = info.title if rename else known.title
            info = replace(info, title=title, origin=known.origin)
        data: dict[str, JsonValue] = {
            "id": info.id,
            "title": info.title,
            "at": info.updated_at.isoformat(),
        }
        data |= {name: True for name in ("failed", "resumable") if getattr(info, name)}
        if info.origin is not None:
            data["origin"] = {"session": info.origin.session, "step": info.origin.step}
        await self._journal.append(key, [Entry("session", data)])
        if old:
            await self._journal.delete(key, [entry.seq for entry in old], scrub=False)
        return info

    async def remove(self, owner: str | None, session: str) -> None:
        """Remove the session from the list."""
        await self._journal.delete(_key(owner, session))

    async def _read(self, key: str) -> SessionInfo | None:
        entries = await self._journal.read(key)
        return _info(entries[-1]) if entries else None


def make_title(question: str) -> str:
    """Return the beginning of ``question`` on one line."""
    line = " ".join(question.split())
    return line if len(line) <= TITLE_LENGTH else f"{line[: TITLE_LENGTH - 1].rstrip()}…"


def matches(info: SessionInfo, search: str) -> bool:
    """Return whether the title of a session contains ``search``, in any case."""
    return search.casefold() in info.title.casefold()


def _milliseconds(moment: datetime | None) -> int:
    return 0 if moment is None else round(moment.timestamp() * 1000)


def _place(owner: str | None, cursor: str) -> tuple[int, str]:
    """Return what a cursor stands for: when a session was changed, and its key.

    Raises:
        BrainUseError: It is no cursor.
    """
    moment, _, session = cursor.partition(".")
    if not (moment.isascii() and moment.isdecimal() and len(moment) < 18 and session):
        raise BrainUseError(f"after={cursor[:100]!r}: give the cursor of a session in the list")
    return int(moment), _key(owner, session)


def _key(owner: str | None, session: str) -> str:
    return json.dumps({"session": [owner, session]}, ensure_ascii=False)  # memories' keys are lists


def _info(entry: Entry) -> SessionInfo:
    data: Any = entry.data
    origin = data.get("origin")
    return SessionInfo(
        data["id"],
        data["title"],
        datetime.fromisoformat(data["at"]),
        failed=data.get("failed", False),
        resumable=data.get("resumable", False),
        origin=None if origin is None else Origin(origin["session"], origin["step"]),
    )
