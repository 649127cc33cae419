"""The list of sessions of each owner, in the journal that holds them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime

from pydantic import JsonValue, TypeAdapter

from agent_brain.errors import BrainUseError
from agent_brain.memories.errors import JournalConflictError, JournalError, LeaseHeldError
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.journal.entry import Entry
from agent_brain.memories.sessions.listing import is_resumable, last_control
from agent_brain.memories.store.session import (
    branches_key,
    listed_key,
    listed_prefix,
    responses_key,
    session_key,
)

TITLE_LENGTH = 80


@dataclass(frozen=True, slots=True)
class Origin:
    """What a session was copied from.

    Attributes:
        session: The ID of the session.
        step: The number of the step that it was copied as of.
        chat: The first session of the chat that both are branches of; None for a copy that is a
            chat of its own.
    """

    session: str
    step: int
    chat: str | None = None


@dataclass(frozen=True, slots=True)
class Branch:
    """A session in which the turn of a message was taken another way.

    Attributes:
        session: The ID of the session.
        of: The session that the message was first recorded in.
        message: The ID of the message there.
        step: The number of the step that the message was recorded with.
        own: The ID of the message in this session: another one if it says something else.
    """

    session: str
    of: str
    message: str
    step: int
    own: str


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A session in a list.

    Attributes:
        id: The ID of the session.
        title: The beginning of its first question, or what a person has named it.
        updated_at: When it was last changed: its last run began or ended, or it was renamed.
        status: ``"idle"``, ``"running"``, ``"waiting"`` for a person, or ``"interrupted"`` if its
            run ended with its process; ``"closed"`` if it is not open and its run has ended.
        failed: Whether its last run failed.
        resumable: Whether its last run can be resumed, as it waits, was interrupted or has ended
            early.
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


_INFO = TypeAdapter(SessionInfo)
_BRANCH = TypeAdapter(Branch)


@asynccontextmanager
async def nobody_runs(journal: Journal, key: str) -> AsyncIterator[bool]:
    """Yield whether no process has a run in a session; none begins one meanwhile."""
    try:
        lease = await journal.acquire(key, seconds=1)
    except LeaseHeldError:
        yield False
        return
    try:
        yield True
    finally:
        await journal.release(lease)


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
        records = await self._journal.records(listed_prefix(owner))
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

    async def as_of_now(self, owner: str | None, info: SessionInfo) -> SessionInfo:
        """Return a session of which no run is known here with what has become of its last run."""
        if info.status != "running":
            return info
        key = session_key(info.id, owner)
        try:
            control = await last_control(self._journal, key)
            if control.get("status") == "running":
                async with nobody_runs(self._journal, key) as nobody:
                    if not nobody:
                        return info
                    control = await last_control(self._journal, key)  # it may have ended meanwhile
        except JournalError:  # the session is damaged, and the list has others
            control = {}
        left = {"running": "interrupted", "waiting": "waiting"}
        status = left.get(str(control.get("status")), "closed")
        return replace(info, status=status, resumable=is_resumable(control))

    async def get(self, owner: str | None, session: str) -> SessionInfo | None:
        """Return the session of that ID, if ``owner`` has one."""
        return await self._read(listed_key(session, owner))

    async def note(
        self,
        owner: str | None,
        info: SessionInfo,
        *,
        changes: Collection[str] = (),
        again: bool = False,
    ) -> SessionInfo:
        """Record a session; return it as it is recorded.

        Args:
            owner: Whose it is.
            info: The session. If it is known, its title and its origin stay.
            changes: The fields of a session that is known to change, and nothing else.
            again: Whether it was recorded before: one that is gone was deleted, and stays so.
        """
        key = listed_key(info.id, owner)
        last = 0
        while True:
            old = await self._journal.read(key)
            if again and not old:
                return info
            noted = _changed(_info(old[-1]), info, changes) if old else info
            if not old and info.origin is None:  # a program may have deleted one of that ID
                await self._end_chat(owner, info.id)
            entry = Entry("session", info_data(noted))
            try:
                expect = max(
                    [last, *(each.seq for each in old)]
                )  # entries may be replaced in place
                await self._journal.append(key, [entry], expect=expect)
            except JournalConflictError as error:  # changed meanwhile: read it again
                last = error.found
                continue
            if old:
                await self._journal.delete(key, [entry.seq for entry in old], scrub=False)
            return noted

    async def remove(self, owner: str | None, session: str) -> None:
        """Remove the session from the list. A chat that began with it begins with the next one."""
        info = await self.get(owner, session)
        chat = session if info is None else chat_of(info)
        if chat == session:
            await self._end_chat(owner, chat)
        await self._journal.delete(listed_key(session, owner))
        await self._journal.delete(responses_key(session_key(session, owner)))
        if chat != session and not await self.chat(owner, chat):
            await self._journal.delete(branches_key(chat, owner))

    async def _end_chat(self, owner: str | None, chat: str) -> None:
        """Let the branches of a chat, if it has any, be a chat without its first session."""
        if not await self.branches(owner, chat):
            return
        if others := [each for each in await self.chat(owner, chat) if each != chat]:
            await self._begin_with(owner, others, chat)
        await self._journal.delete(branches_key(chat, owner))

    async def _begin_with(self, owner: str | None, sessions: list[str], chat: str) -> None:
        """Let the sessions of a chat be those of one that begins with the first of them."""
        first = sessions[0]
        if not await self.branches(owner, first):  # else it was interrupted
            for branch in await self.branches(owner, chat):
                await self.add_branch(owner, first, branch)
        for each in sessions:
            info = await self.get(owner, each)
            if info is not None and info.origin is not None:
                moved = replace(info, origin=replace(info.origin, chat=first))
                await self.note(owner, moved, changes=["origin"])

    async def add_branch(self, owner: str | None, chat: str, branch: Branch) -> None:
        """Record a branch of a chat."""
        entry = Entry("branch", _BRANCH.dump_python(branch, mode="json"))
        await self._journal.append(branches_key(chat, owner), [entry])

    async def branches(self, owner: str | None, chat: str) -> list[Branch]:
        """Return the branches of a chat in order, also those that were deleted."""
        entries = await self._journal.read(branches_key(chat, owner))
        return [_BRANCH.validate_python(entry.data) for entry in entries]

    async def chat(self, owner: str | None, chat: str) -> list[str]:
        """Return the sessions of a chat, in the order in which they were made."""
        known = dict.fromkeys([chat, *(b.session for b in await self.branches(owner, chat))])
        return [each for each in known if await self.get(owner, each) is not None]

    async def _read(self, key: str) -> SessionInfo | None:
        entries = await self._journal.read(key)
        return _info(entries[-1]) if entries else None


def chat_of(info: SessionInfo) -> str:
    """Return the first session of the chat that a session belongs to."""
    return (info.origin and info.origin.chat) or info.id


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
        BrainUseError: It is not a cursor.
    """
    moment, _, session = cursor.partition(".")
    if not (moment.isascii() and moment.isdecimal() and len(moment) < 18 and session):
        raise BrainUseError(f"after={cursor[:100]!r}: give the cursor of a session in the list")
    return int(moment), listed_key(session, owner)


def _changed(known: SessionInfo, info: SessionInfo, fields: Collection[str]) -> SessionInfo:
    if fields:
        return replace(known, **{field: getattr(info, field) for field in fields})
    return replace(info, title=known.title, origin=known.origin)


def info_data(info: SessionInfo) -> dict[str, JsonValue]:
    """Return a session in a list as JSON values."""
    data: dict[str, JsonValue] = _INFO.dump_python(info, mode="json", exclude={"cursor"})
    return data


def _info(entry: Entry) -> SessionInfo:
    return _INFO.validate_python(entry.data)
