"""A session as lines of JSON, to move it from one journal to another."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import Annotated, Any, Literal

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
from agent_brain.memories.journal.entry import Entry

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


class _End(_Line):
    entries: int


_BODY: TypeAdapter[_EntryLine | _End] = TypeAdapter(_EntryLine | _End)


async def export_session(journal: Journal, session: str) -> AsyncIterator[str]:
    """Yield a session as lines of JSON, history included.

    The first line has the name and the version of the format, the last one the number of entries.

    Args:
        journal: The journal.
        session: The session's key in the journal.

    Raises:
        JournalDamagedError: An entry is not what was written. There is no last line then.
    """
    yield _dump({"format": FORMAT, "version": VERSION, "session": session})
    count = 0
    async for page in journal.pages(session, history=journal.has_history):
        for entry in page:
            count += 1
            yield _dump(
                {
                    "seq": entry.seq,
                    "kind": entry.kind,
                    "version": entry.version,
                    "time": None if entry.time is None else entry.time.isoformat(),
                    "retired": entry.retired,
                    "data": entry.data,
                }
            )
    yield _dump({"entries": count})


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
        JournalError: A line is wrong or missing, or the format is that of a newer version.
    """
    reader = _Reader()
    if isinstance(lines, AsyncIterable):
        async for line in lines:
            reader.take(line)
    else:
        for line in lines:
            reader.take(line)
    exported = reader.finish()
    key = exported if session is None else session
    await journal.load(key, reader.entries)
    return key


class _Reader:
    """Checks the lines of a session in order.

    Attributes:
        entries: The entries.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._number = 0
        self._header: _Header | None = None
        self._ended = False

    def take(self, line: str) -> None:
        """Read the next line."""
        self._number += 1
        if not line.strip():
            return
        if self._ended:
            raise _wrong(self._number, "there is nothing after the number of entries")
        if self._header is None:
            self._header = _read_header(self._number, line)
            return
        found = _read(self._number, line)
        if isinstance(found, _End):
            self._ended = True
            if found.entries != len(self.entries):
                problem = f"the session had {found.entries} entries, and {len(self.entries)} came"
                raise _wrong(self._number, problem)
        else:
            self._add(found)

    def _add(self, found: _EntryLine) -> None:
        if self.entries and found.seq <= self.entries[-1].seq:
            problem = f"number {found.seq} comes after {self.entries[-1].seq}"
            raise _wrong(self._number, problem)
        self.entries.append(
            Entry(found.kind, found.data, found.seq, found.version, found.time, found.retired)
        )

    def finish(self) -> str:
        """Check that the session is whole; return its key."""
        if self._header is None:
            raise JournalError("There is no session: the first line says what it is")
        if not self._ended:
            problem = f"the session is cut off after {len(self.entries)} entries"
            raise _wrong(self._number, problem)
        return self._header.session


def _read_header(number: int, line: str) -> _Header:
    try:
        header = _Header.model_validate_json(line)
    except ValidationError as error:
        raise _wrong(number, f"this is not the start of a session ({_told(error)})") from error
    if header.version > VERSION:
        raise JournalError(
            f"The session was exported in version {header.version} of the format, and this library "
            f"reads versions up to {VERSION}: import it with the library that wrote it, or a newer "
            "one"
        )
    return header


def _read(number: int, line: str) -> _EntryLine | _End:
    try:
        return _BODY.validate_json(line)
    except ValidationError as error:
        raise _wrong(number, f"this is not an entry ({_told(error)})") from error


def _told(error: ValidationError) -> str:
    """Return what is wrong first, without quoting the data."""
    first = error.errors(include_input=False, include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"] if part not in ("_EntryLine", "_End"))
    return f"{place}: {first['msg']}" if place else first["msg"]


def _wrong(number: int, problem: str) -> JournalError:
    return JournalError(f"Line {number}: {problem}. Nothing was written; export the session again")
