"""Checks of what journals are given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from itertools import compress
from operator import not_
from typing import Any

from agent_brain.common.text import clean
from agent_brain.memories.errors import MemoryDefinitionError, MemoryUseError
from agent_brain.memories.journal.entry import Entry, Line, Lines, encode, to_milliseconds
from agent_brain.memories.store.expiry import as_duration

LONGEST = 1_000_000  # seconds to wait for an answer
NESTED = 200  # how deep data may be nested: the parser of messages reads no more
_MILLISECOND, _LONGEST_TTL = timedelta(milliseconds=1), timedelta(seconds=10**10)
_HAS_PARTS = (dict, list, tuple)
_PLAIN = frozenset((str, int, float, bool, type(None)))


def checked_session(session: object) -> str:
    """Return the key of a session.

    Raises:
        MemoryUseError: It is not a text.
    """
    if not isinstance(session, str):
        raise MemoryUseError(f"The key of a session is a text, not {session!r}")
    return session


def as_list(entries: Iterable[Entry]) -> Sequence[Entry]:
    """Return entries to append or load, which the caller may change meanwhile.

    Raises:
        MemoryUseError: They are not several.
    """
    if isinstance(entries, Lines):
        return entries
    if type(entries) is not list and not isinstance(entries, Iterable):
        raise MemoryUseError(f"Entries are given in a list, [Entry(…)], not {entries!r:.200}")
    return [*entries]


def to_lines(entries: Iterable[Entry], *, timed: bool = False) -> list[Line]:
    """Return entries to append, with their data as text that any database can store.

    Args:
        entries: The entries.
        timed: With their times.

    Raises:
        MemoryUseError: One is not an entry, its kind or version cannot be stored, or its data is
            not JSON, or nested too deeply to be read again.
    """
    if isinstance(entries, Lines):
        return entries.lines
    lines: list[Line] = []
    for place, entry in enumerate(entries):
        if not isinstance(entry, Entry):
            raise MemoryUseError(f"Entry {place} to append is not an Entry: {entry!r:.200}")
        if not isinstance(entry.kind, str):
            raise MemoryUseError(f"The kind of entry {place} is a text, not {entry.kind!r}")
        if type(entry.version) is not int or not 0 < entry.version < 2**31:
            raise MemoryUseError(
                f"The version of entry {place} is a whole number from 1, not {entry.version!r}"
            )
        level: Iterable[Any] = (entry.data,) if isinstance(entry.data, _HAS_PARTS) else ()
        for _ in range(NESTED):  # Python's own limit depends on who calls whom
            inside: dict[int, Any] = {}  # each once: data may contain itself
            for whole in level:
                parts = whole.values() if isinstance(whole, dict) else whole
                plain = map(_PLAIN.__contains__, map(type, parts))  # most are: a loop is slow
                for part in compress(parts, map(not_, plain)):
                    if isinstance(part, _HAS_PARTS):
                        inside[id(part)] = part
            if not inside:
                break
            level = inside.values()
        else:
            raise MemoryUseError(
                f"The data of entry {place} contains itself, or is nested more than {NESTED} deep"
            )
        try:
            line = encode(entry.data)
        except (TypeError, ValueError) as error:  # the latter of a number with too many digits
            raise MemoryUseError(
                f"The data of entry {place} ({entry.kind!r}) is not JSON: {error}. Give text, "
                "numbers, True, False, None, lists, and dicts whose keys are texts"
            ) from error
        time = to_milliseconds(entry.time) if timed and entry.time else None
        text = line if line.isascii() else clean(line)
        lines.append((entry.seq, entry.kind, entry.version, time, entry.retired, text))
    return lines


def to_loaded_lines(entries: Iterable[Entry]) -> list[Line]:
    """Return entries to load, with the numbers that they have; see :func:`to_lines`.

    Raises:
        MemoryUseError: As :func:`to_lines`, or the numbers do not grow.
    """
    lines = to_lines(entries, timed=True)
    before = 0
    for seq, *_ in lines:
        if type(seq) is not int or not before < seq < 2**53:
            raise MemoryUseError(
                f"load() takes entries whose numbers grow from 1, and {seq!r} follows {before}"
            )
        before = seq
    return lines


def check_reading(session: object, after: object, size: object = 1) -> None:
    """Check what is to be read.

    Raises:
        MemoryUseError: The session's key is not a text, the sequence number to read after not a
            whole number, or the size of a page not one from 1.
    """
    checked_session(session)
    if type(after) is not int:
        raise MemoryUseError(f"after= is a sequence number, not {after!r}")
    if type(size) is not int or size < 1:
        raise MemoryUseError(f"size= is a number of entries from 1, not {size!r}")


def checked_seconds(what: str, seconds: float, *, least: float, most: float = 10**9) -> float:
    """Return a number of seconds.

    Raises:
        MemoryUseError: It is not a number from ``least`` to ``most``.
    """
    number = isinstance(seconds, int | float) and type(seconds) is not bool
    if not number or not least <= seconds <= most:
        raise MemoryUseError(
            f"{what}= is a number of seconds from {least:g} to {most:g}, not {seconds!r}"
        )
    return seconds


def checked_seqs(seqs: Iterable[int]) -> Sequence[int]:
    """Return sequence numbers.

    Raises:
        MemoryUseError: One is not a whole number.
    """
    found = list(seqs)
    for seq in found:
        if type(seq) is not int:
            raise MemoryUseError(f"A sequence number is a whole number, not {seq!r}")
    return found


def ttl_milliseconds(ttl: timedelta | float | None) -> int | None:
    """Return how long sessions are kept, in milliseconds; None for ever.

    Raises:
        MemoryDefinitionError: It is not a duration of at least a millisecond.
    """
    duration = as_duration("ttl", ttl)
    if duration is None:
        return None
    if not _MILLISECOND <= duration <= _LONGEST_TTL:
        raise MemoryDefinitionError(f"ttl={ttl!r}: give from 0.001 to 10,000,000,000 seconds")
    return duration // _MILLISECOND


def check_timeout(name: str, seconds: float, *, least: float = 0.001) -> None:
    """Check how long to wait for an answer.

    Raises:
        MemoryDefinitionError: It is not a number of seconds from ``least`` to :data:`LONGEST`.
    """
    if type(seconds) not in (int, float) or not least <= seconds <= LONGEST:
        raise MemoryDefinitionError(
            f"{name}={seconds!r}: give a number of seconds from {least} to {LONGEST}"
        )
