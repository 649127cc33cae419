"""A session as lines of JSON, to move it from one journal to another."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable
from contextlib import aclosing
from typing import Annotated, Any, Literal

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


_NAMES = ("_EntryLine", "_BranchLine", "_End")
_BODY: TypeAdapter[_EntryLine | _BranchLine | _End] = TypeAdapter(_EntryLine | _BranchLine | _End)


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
            yield _entry_line(entry)
    yield _dump({"entries": count, "branches": len(branches)})


def _entry_line(entry: Entry) -> str:
    return _dump(
        {
            "seq": entry.seq,
            "kind": entry.kind,
            "version": entry.version,
            "time": None if entry.time is None else entry.time.isoformat(),
            "retired": entry.retired,
            "data": entry.data,
        }
    )


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
    if isinstance(lines, AsyncIterable):
        exported, copy = await _read_session(lines)
    else:
        async with aclosing(_each(lines)) as each:
            exported, copy = await _read_session(each)
    key = exported if session is None else session
    if copy.branches and not is_session_key(key):
        raise JournalError(
            f"The session has branches, and {key!r} is not what session_key() returns: give such a "
            "key. Nothing was written"
        )
    await copy.write(journal, key)
    return key


async def _each(lines: Iterable[str]) -> AsyncGenerator[str, None]:
    for line in lines:
        yield line


async def _read_session(lines: AsyncIterable[str]) -> tuple[str, SessionCopy]:
    """Return the key of an exported session, and the session.

    Raises:
        JournalError: A line is wrong or missing.
    """
    entries: list[Line] = []
    branches: dict[tuple[str, ...], list[Line]] = {}
    header: _Header | None = None
    into, number, end = entries, 0, None
    async for line in lines:
        number += 1
        if number % SLICE == 0:
            await checkpoint()
        if not line.strip():
            continue
        if end is not None:
            raise _wrong(number, "there is nothing after the number of entries")
        if header is None:
            header = _read_header(number, line)
            continue
        found = _read(number, line)
        if isinstance(found, _End):
            end = number, found
        elif isinstance(found, _BranchLine):
            into = _begin_branch(number, tuple(found.branch), branches)
        else:
            into += to_lines([_entry_of(number, found, into)], timed=True)
    if header is None:
        raise JournalError("There is no session: the first line says what it is")
    came = len(entries) + sum(map(len, branches.values()))
    if end is None:
        raise _wrong(number, f"the session is cut off after {came} entries")
    _check_end(*end, came, len(branches))
    inside = {place: Lines(some) for place, some in branches.items()}
    return header.session, SessionCopy(Lines(entries), inside)


def _begin_branch(
    number: int, place: tuple[str, ...], branches: dict[tuple[str, ...], list[Line]]
) -> list[Line]:
    if place in branches:
        raise _wrong(number, f"branch {'/'.join(place)!r} comes twice")
    return branches.setdefault(place, [])


def _entry_of(number: int, found: _EntryLine, before: list[Line]) -> Entry:
    if before and found.seq <= before[-1][0]:
        raise _wrong(number, f"number {found.seq} comes after {before[-1][0]}")
    return Entry(found.kind, found.data, found.seq, found.version, found.time, found.retired)


def _check_end(number: int, end: _End, entries: int, branches: int) -> None:
    for what, had, came in (
        ("entries", end.entries, entries),
        ("branches", end.branches, branches),
    ):
        if had != came:
            raise _wrong(number, f"the session had {had} {what}, and {came} came")


def _read_header(number: int, line: str) -> _Header:
    try:
        header = _Header.model_validate_json(line)
    except ValidationError as error:
        raise _wrong(number, f"this is not the start of a session ({_told(error)})") from error
    if header.version != VERSION:
        raise JournalError(
            f"The session was exported in version {header.version} of the format, and this library "
            f"reads version {VERSION}: import it with the library that wrote it"
        )
    return header


def _read(number: int, line: str) -> _EntryLine | _BranchLine | _End:
    try:
        return _BODY.validate_json(line)
    except ValidationError as error:
        raise _wrong(number, f"this is not an entry ({_told(error)})") from error


def _told(error: ValidationError) -> str:
    """Return what is wrong first, without quoting the data."""
    first = error.errors(include_input=False, include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"] if part not in _NAMES)
    return f"{place}: {first['msg']}" if place else first["msg"]


def _wrong(number: int, problem: str) -> JournalError:
    return JournalError(f"Line {number}: {problem}. Nothing was written; export the session again")
