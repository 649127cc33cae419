"""Entries and heads of sessions, as a journal in Redis stores them."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from hashlib import sha1

from agent_brain.memories.errors import JournalError
from agent_brain.memories.journal.base import SessionRecord
from agent_brain.memories.journal.entry import (
    Line,
    Lines,
    Rows,
    checksum,
    from_milliseconds,
    seal,
)

RETIRED = ord("1")


class Columns:
    """Entries as columns: an object for each entry would make the garbage collector run.

    Args:
        session: The session's key.
        texts: The entries as they are stored; those after one that is not what was written there
            are left out.
        retired: A digit for each, 1 if it is retired.
        after: The number that they come after.
    """

    def __init__(self, session: str, texts: Iterable[bytes], retired: bytes, after: int) -> None:
        self.seqs: list[int] = []
        self.kinds: list[str] = []
        self.versions: list[int] = []
        self.times: list[int] = []
        self.lines: list[str] = []
        self.retired = retired
        start = checksum(session)
        for text in texts:
            if not self._add(start, text, after):
                break

    def _add(self, start: int, text: bytes, after: int) -> bool:
        """Add an entry; return whether it is what was written, and is after all others."""
        try:
            number, version, time, check, line, kind = text.decode().split("\0", 5)
            seq, versions, times = int(number), int(version), int(time)
            sound = int(check) == seal(start, seq, kind, versions, times, line)
        except ValueError:
            return False
        if not sound or seq <= (self.seqs[-1] if self.seqs else after):
            return False
        self.seqs.append(seq)
        self.kinds.append(kind)
        self.versions.append(versions)
        self.times.append(times)
        self.lines.append(line)
        return True

    def as_lines(self) -> Lines:
        """Return the entries."""
        columns = (self.seqs, self.kinds, self.versions, self.times, self.retired, self.lines)
        return Lines(
            [
                (seq, kind, version, time, flag == RETIRED, line)
                for seq, kind, version, time, flag, line in zip(*columns, strict=False)
            ]
        )

    def add_to(self, rows: Rows) -> None:
        """Append the entries to rows."""
        rows.seqs.extend(self.seqs)
        rows.kinds.extend(map(sys.intern, self.kinds))
        rows.lines.extend(self.lines)
        versions = zip(self.seqs, self.versions, strict=True)
        rows.versions.update((seq, version) for seq, version in versions if version != 1)


def pack(session: str, lines: Iterable[Line], now: int, after: int | None = None) -> bytes:
    """Return entries as one text, each after its length.

    Args:
        session: The session's key.
        lines: The entries, with their data as text.
        now: The time of those that have none, in milliseconds.
        after: The number before that of the first one, for new entries; others keep their own
            numbers and times.

    Raises:
        JournalError: A kind is not a text that can be stored.
    """
    start = checksum(session)
    parts = []
    for place, (own, kind, version, written, _, line) in enumerate(lines, 1):
        seq = own if after is None else after + place
        time = now if after is not None or written is None else written
        check = seal(start, seq, kind, version, time, line)
        # JSON text has no NUL; a kind may have one, so it is the last
        text = f"{seq}\0{version}\0{time}\0{check}\0{line}\0{kind}"
        try:
            data = text.encode()
        except UnicodeEncodeError as error:
            raise JournalError(f"The kind {kind!r} cannot be encoded: {error}") from None
        parts += [len(data).to_bytes(4, "big"), data]
    return b"".join(parts)


def read_head(session: str, text: bytes) -> SessionRecord | None:
    """Return what the head of a session says; None if it is not what was written.

    The scripts write it, see ``save_head`` in :mod:`agent_brain.memories.journal.redis.scripts`.
    """
    digest, body = text[:41], text[41:]
    if sha1(body, usedforsecurity=False).hexdigest().encode() + b" " != digest:
        return None
    _, last, live, retired, created, updated, _, key = body.split(b" ", 7)
    if key != session.encode():
        return None
    first, newest = from_milliseconds(int(created)), from_milliseconds(int(updated))
    return SessionRecord(session, first, newest, int(live) + int(retired), int(last))
