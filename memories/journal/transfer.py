"""A session as lines of JSON, to move it from one journal to another."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import Annotated, Any, Literal, TypeVar

from anyio.lowlevel import checkpoint
from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    TypeAdapter,
    ValidationError,
)

from agent_brain.memories.errors import JournalError
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.journal.checks import to_lines
from agent_brain.memories.journal.entry import Entry, Line, Lines
from agent_brain.memories.sessions.copies import SessionCopy, branch_keys
from agent_brain.memories.store.many import SLICE
from agent_brain.memories.store.session import branch_place, entries_of, is_session_key

T = TypeVar("T")
FORMAT = "agent-brain session"
VERSION = 1


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Header(_Line):
    format: Literal["agent-brain session"]
    version: int
    session: str


class _EntryLine(_Line):
    seq: Annotated[int, Field(ge=1)]
    kind: str
    version: Annotated[int, Field(ge=1)]
    time: AwareDatetime | None
    retired: bool
    data: JsonValue


class _BranchLine(_Line):
    branch: Annotated[list[str], Field(min_length=1)]


class _End(_Line):
    entries: int
    branches: int


_HEADER = TypeAdapter(_Header)
_BODY: TypeAdapter[_EntryLine | _BranchLine | _End] = TypeAdapter(_EntryLine | _BranchLine | _End)
_NAMES = ("_EntryLine", "_BranchLine", "_End")


async def export_session(journal: Journal, session: str) -> AsyncIterator[str]:
    """Yield a session as lines of JSON, with its history and the branches of a step under way.

    The first line has the name and the version of the format, the last one the number of entries.
    The entries of a branch follow a line with its place below the session.

    Args:
        journal: The journal.
        session: The session's key in the journal.

    Raises:
        JournalDamagedError: An entry is not what was written. There is no last line then.
    """
    branches = await branch_keys(journal, session)
    yield _dump({"format": FORMAT, "version": VERSION, "session": session})
    count = 0
    for key in (session, *branches):
        if key != session:
            yield _dump({"branch": branch_place(session, key)})
        async for entry in entries_of(journal, key):
            count += 1
            line = {name: getattr(entry, name) for name in _EntryLine.model_fields}
            yield _dump(line | {"time": None if entry.time is None else entry.time.isoformat()})
    yield _dump({"entries": count, "branches": len(branches)})


def _dump(line: dict[str, Any]) -> str:
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"))


async def import_session(
    journal: Journal, lines: AsyncIterable[str] | Iterable[str], session: str | None = None
) -> str:
    """Write a session from the lines of :func:`export_session`, all or nothing.

    Args:
        journal: The journal. It keeps numbers, versions, times, and what is retired.
        lines: The lines, with or without line ends; empty ones are ignored.
        session: The session's key in the journal, which must not have entries; None for the key
            that it had.

    Returns:
        The session's key.

    Raises:
        JournalConflictError: The session has entries.
        JournalError: A line is wrong or missing, the format is that of a newer version, or the
            session has branches and ``session`` is not a key of a memory.
    """
    reader = _Reader()
    if isinstance(lines, AsyncIterable):
        async for line in lines:
            await reader.add(line)
    else:
        for line in lines:
            await reader.add(line)
    exported, copy = reader.finish()
    key = exported if session is None else session
    if copy.branches and not is_session_key(key):
        raise JournalError(
            f"The session has branches, and {key!r} is not what session_key() returns: give such a "
            "key. Nothing was written"
        )
    await copy.write(journal, key)
    return key


class _Reader:
    """Reads the lines of an exported session; each method raises a JournalError if one is wrong."""

    def __init__(self) -> None:
        self._session: str | None = None
        self._entries: list[Line] = []
        self._branches: dict[tuple[str, ...], list[Line]] = {}
        self._into = self._entries
        self._number = 0  # of the line
        self._has_ended = False

    async def add(self, line: str) -> None:
        """Read the next line."""
        self._number += 1
        if self._number % SLICE == 0:
            await checkpoint()
        if not line.strip():
            return
        if self._has_ended:
            raise self._wrong("there is nothing after the number of entries")
        if self._session is None:
            self._session = self._read_header(line)
            return
        found = self._parse(_BODY, line, "an entry")
        if isinstance(found, _End):
            self._check_count("entries", found.entries, self._count)
            self._check_count("branches", found.branches, len(self._branches))
            self._has_ended = True
        elif isinstance(found, _BranchLine):
            place = tuple(found.branch)
            if place in self._branches:
                raise self._wrong(f"branch {'/'.join(place)!r} comes twice")
            self._into = self._branches[place] = []
        else:
            if self._into and found.seq <= self._into[-1][0]:
                raise self._wrong(f"number {found.seq} comes after {self._into[-1][0]}")
            details = found.seq, found.version, found.time, found.retired
            self._into += to_lines([Entry(found.kind, found.data, *details)], timed=True)

    def finish(self) -> tuple[str, SessionCopy]:
        """Return the key of the session, and the session."""
        if self._session is None:
            raise JournalError("There is no session: the first line says what it is")
        if not self._has_ended:
            raise self._wrong(f"the session is cut off after {self._count} entries")
        branches = {place: Lines(some) for place, some in self._branches.items()}
        return self._session, SessionCopy(Lines(self._entries), branches)

    @property
    def _count(self) -> int:
        return len(self._entries) + sum(map(len, self._branches.values()))

    def _check_count(self, what: str, had: int, came: int) -> None:
        if had != came:
            raise self._wrong(f"the session had {had} {what}, and {came} came")

    def _read_header(self, line: str) -> str:
        header = self._parse(_HEADER, line, "the start of a session")
        if header.version != VERSION:
            raise JournalError(
                f"The session was exported in version {header.version} of the format, and this "
                f"library reads version {VERSION}: import it with the library that wrote it"
            )
        return header.session

    def _parse(self, form: TypeAdapter[T], line: str, what: str) -> T:
        try:
            return form.validate_json(line)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]  # not quoting the data
            place = ".".join(str(part) for part in first["loc"] if part not in _NAMES)
            problem = f"{place}: {first['msg']}" if place else first["msg"]
            raise self._wrong(f"this is not {what} ({problem})") from error

    def _wrong(self, problem: str) -> JournalError:
        return JournalError(
            f"Line {self._number}: {problem}. Nothing was written; export the session again"
        )
