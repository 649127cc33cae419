"""Entries, heads and keys of sessions, as a journal in Redis stores them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha1
from urllib.parse import quote

from agent_brain.memories.errors import JournalError, MemoryDefinitionError
from agent_brain.memories.journal.base import SessionRecord
from agent_brain.memories.journal.entry import Line, checksum, from_milliseconds, seal

RETIRED = ord("1")


@dataclass(frozen=True, slots=True)
class Keys:
    """The names of the keys of a journal; all of them begin with its prefix.

    The keys of a session have its key in braces, without anything that means something to Redis,
    so that they are together on one node of whatever distributes keys by such tags.
    """

    prefix: str

    def __post_init__(self) -> None:
        if not self.prefix or {*self.prefix} & {*"{}"}:
            raise MemoryDefinitionError(
                f"prefix={self.prefix!r}: give a text without braces that is not empty"
            )

    @property
    def layout(self) -> str:
        """The key of the version of the layout."""
        return f"{self.prefix}:layout"

    def of(self, session: str, *more: str) -> list[str]:
        """Return the keys that every script gets, and ``more`` keys of the session.

        Raises:
            JournalError: The session's key is not a text that can be stored.
        """
        names = ("head", "entries", "history", "lease", *more)
        head, entries, history, lease, *others = [self._name(session, name) for name in names]
        common = [f"{self.prefix}:deleted", f"{self.prefix}:sessions"]
        return [head, entries, history, lease, *common, *others]

    def head(self, session: str) -> str:
        """Return the key of a session's head."""
        return self._name(session, "head")

    def _name(self, session: str, name: str) -> str:
        try:
            return f"{self.prefix}:{{s:{quote(session, safe='')}}}:{name}"
        except UnicodeEncodeError as error:
            raise JournalError(
                f"The session's key {session!r} cannot be encoded: {error}"
            ) from None


def pattern(prefix: str) -> str:
    """Return a pattern of Redis for what starts with ``prefix``."""
    return "".join(f"\\{letter}" if letter in "\\*?[]^" else letter for letter in prefix) + "*"


def unpack(session: str, texts: Iterable[bytes], retired: bytes, after: int) -> list[Line]:
    """Return entries up to one that is not what was written there.

    Args:
        session: The session's key.
        texts: The entries as they are stored.
        retired: A digit for each, 1 if it is retired.
        after: The number that they come after.
    """
    lines: list[Line] = []
    start = checksum(session)
    for text, flag in zip(texts, retired, strict=True):
        try:
            number, stored, moment, check, line, kind = text.decode().split("\0", 5)
            seq, version, time = int(number), int(stored), int(moment)
            sound = int(check) == seal(start, seq, kind, version, time, line)
        except ValueError:
            break
        if not sound or seq <= after:
            break
        after = seq
        lines.append((seq, kind, version, time, flag == RETIRED, line))
    return lines


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
