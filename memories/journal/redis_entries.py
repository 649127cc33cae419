"""Entries and heads of sessions, as a journal in Redis stores them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha1
from typing import Any, NamedTuple, TypeVar

import anyio.to_thread

from agent_brain.memories.errors import JournalError
from agent_brain.memories.journal.base import SessionRecord
from agent_brain.memories.journal.entry import (
    Entry,
    checksum,
    from_line,
    from_milliseconds,
    seal,
    to_line,
    to_milliseconds,
)

T = TypeVar("T")
ON_LOOP = 50  # entries; more are for a worker thread
ON_LOOP_BYTES = 50_000


class Stored(NamedTuple):
    """An entry as it is stored, without its checksum."""

    seq: int
    kind: str
    version: int
    time: int
    line: str
    retired: bool

    def to_entry(self) -> Entry:
        """Return the entry."""
        time = from_milliseconds(self.time)
        return Entry(self.kind, from_line(self.line), self.seq, self.version, time, self.retired)


@dataclass(frozen=True, slots=True)
class Page:
    """Entries of a session as Redis returned them.

    Attributes:
        problem: What is wrong with the session; empty if nothing is.
        born: Identifies the session among all that had its key; empty if there is none.
        is_last: Whether no entries follow.
        retired: A digit for each entry, 1 if it is retired.
        texts: The entries.
    """

    problem: str
    born: str
    is_last: bool
    retired: bytes
    texts: Sequence[bytes]

    @classmethod
    def of(cls, answer: Any) -> Page:
        """Return the page in an answer of the script PAGE."""
        _, problem, born, is_last, retired, *texts = answer
        return cls(problem.decode(), born.decode(), bool(is_last), retired, texts)

    @property
    def size(self) -> int:
        """The size of the entries in bytes."""
        return sum(map(len, self.texts))

    def read(self, session: str) -> list[Stored]:
        """Return the entries up to the first one that is not what was written."""
        start, at = checksum(session), 0
        found: list[Stored] = []
        for text, flag in zip(self.texts, self.retired, strict=True):
            stored = _read(start, text, retired=flag == ord("1"))
            if stored is None or stored.seq <= at:
                break
            at = stored.seq
            found.append(stored)
        return found


def _read(start: int, text: bytes, *, retired: bool) -> Stored | None:
    try:
        seq, version, time, check, line, kind = text.decode().split("\0", 5)
        stored = Stored(int(seq), kind, int(version), int(time), line, retired)
        if int(check) == seal(start, stored.seq, kind, stored.version, stored.time, line):
            return stored
    except ValueError:
        pass
    return None


def pack(session: str, entries: Iterable[Entry], now: int, after: int | None = None) -> bytes:
    """Return entries as one text, each after its length.

    Args:
        session: The session's key.
        entries: The entries.
        now: The time of those that have none, in milliseconds.
        after: The number before that of the first one, for new entries; others keep their own
            numbers and times.

    Raises:
        JournalError: A kind is no text that can be stored.
    """
    start = checksum(session)
    parts = []
    for place, entry in enumerate(entries, 1):
        seq = entry.seq if after is None else after + place
        time = now if after is not None or entry.time is None else to_milliseconds(entry.time)
        line = to_line(entry.data)
        check = seal(start, seq, entry.kind, entry.version, time, line)
        # JSON text has no NUL; a kind may have one, so it is the last
        text = f"{seq}\0{entry.version}\0{time}\0{check}\0{line}\0{entry.kind}"
        try:
            data = text.encode()
        except UnicodeEncodeError as error:
            raise JournalError(f"The kind {entry.kind!r} cannot be encoded: {error}") from None
        parts += [len(data).to_bytes(4, "big"), data]
    return b"".join(parts)


async def in_thread_if_much(count: int, size: int, work: Callable[[], T]) -> T:
    """Return ``work()``, called in a worker thread if it handles many entries or bytes."""
    if count <= ON_LOOP and size <= ON_LOOP_BYTES:
        return work()
    return await anyio.to_thread.run_sync(work)


def read_head(session: str, text: bytes) -> SessionRecord | None:
    """Return what the head of a session says; None if it is not what was written.

    The scripts write it, see ``save_head`` in :mod:`agent_brain.memories.journal.redis_scripts`.
    """
    digest, _, body = text.partition(b" ")
    if sha1(body, usedforsecurity=False).hexdigest().encode() != digest:
        return None
    _, _, live, retired, created, updated, _, key = body.split(b" ", 7)
    if key != session.encode():
        return None
    first, last = from_milliseconds(int(created)), from_milliseconds(int(updated))
    return SessionRecord(session, first, last, int(live) + int(retired))
