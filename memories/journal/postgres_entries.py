"""The entries of a journal in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from agent_brain.memories.errors import JournalDamagedError, JournalError
from agent_brain.memories.journal.base import damaged
from agent_brain.memories.journal.entry import (
    Entry,
    checksum,
    from_line,
    from_milliseconds,
    seal,
)
from agent_brain.memories.journal.postgres_layout import Layout
from agent_brain.memories.journal.postgres_sessions import Key, Record

if TYPE_CHECKING:
    from agent_brain.memories.journal.postgres_connections import Transaction

# An entry as it is stored: seq, kind, version, time, data, retired
Stored: TypeAlias = tuple[int, str, int, int, str, bool]
RETIRED = 0x52455449  # changes the checksum of an entry that is retired
PAGE = 1000  # rows that are read at once
DECODED = 250  # rows that are decoded at once, so few that they do not start the garbage collector
SENT = 4_000_000  # characters that are sent at once, about


def write_entries(tx: Transaction, layout: Layout, key: Key, entries: Sequence[Stored]) -> None:
    """Add entries to a locked session."""
    sql = (
        f"INSERT INTO {layout.entries} SELECT '{key.id}', * FROM unnest(%s::bigint[], %s::text[], "
        "%s::bigint[], %s::bigint[], %s::text[], %s::bigint[], %s::boolean[])"
    )
    start = checksum(key.text)
    for part in _parts(entries):
        seqs, kinds, versions, times, lines, retired = map(list, zip(*part, strict=True))
        texts = [_to_text(kind, key) for kind in kinds]
        seals = [_seal(start, entry) for entry in part]
        tx.execute(sql, [seqs, texts, versions, times, lines, seals, retired])


def read_entries(
    tx: Transaction, layout: Layout, key: Key, record: Record, after: int, *, history: bool
) -> Iterator[Stored]:
    """Yield the entries of a session with a number above ``after``, in order.

    Args:
        tx: A transaction that sees one state of the journal.
        layout: The tables.
        key: The session's key.
        record: The session.
        after: A sequence number.
        history: Include retired entries.

    Raises:
        JournalDamagedError: An entry is not what was written; those before it have been yielded.
    """
    at, count = after, 0
    while True:
        page = 0
        for entry in read_page(tx, layout, key, record, at, PAGE, history=history):
            yield entry
            at = entry[0]
            page += 1
        count += page
        if page < PAGE:
            break
    if after <= 0:
        check_count(key, record, count, history=history)


def read_page(
    tx: Transaction,
    layout: Layout,
    key: Key,
    record: Record,
    after: int,
    size: int,
    *,
    history: bool,
) -> Iterator[Stored]:
    """Yield at most ``size`` entries as :func:`read_entries` does, without counting them."""
    if not record.last:
        return
    cursor = tx.execute(
        "SELECT seq, kind, version, time, data, retired, checksum "
        f"FROM {layout.entries if history else layout.live} "
        f"WHERE session = '{key.id}' AND seq > %s ORDER BY seq LIMIT %s",
        [min(max(after, 0), record.last), size],
    )
    start = checksum(key.text)
    while rows := cursor.fetchmany(DECODED):
        for seq, kind, version, time, data, retired, stored in rows:
            if "\\" in kind:
                kind = _from_text(kind)
            entry = seq, kind, version, time, data, retired
            if stored != _seal(start, entry) or seq > record.last:
                raise damaged(key.text, seq, f"the {key.place}")
            yield entry


def check_count(key: Key, record: Record, count: int, *, history: bool) -> None:
    """Check how many entries of a session were found.

    Raises:
        JournalDamagedError: Somebody else has removed or added some.
    """
    wanted = record.live + (record.retired if history else 0)
    if count != wanted:
        raise key.damaged(f"it has {count} of the {wanted} entries that were written")


def to_entry(stored: Stored) -> Entry:
    """Return an entry as it was written."""
    seq, kind, version, time, data, retired = stored
    return Entry(kind, from_line(data), seq, version, from_milliseconds(time), retired)


def collect(entries: Iterator[Stored]) -> tuple[list[Entry], JournalDamagedError | None]:
    """Return the entries up to the damage, and its error."""
    found = []
    try:
        for entry in entries:
            found.append(to_entry(entry))  # noqa: PERF401 - keeps those before the damage
    except JournalDamagedError as error:
        return found, error
    return found, None


def _seal(start: int, entry: Stored) -> int:
    seq, kind, version, time, data, retired = entry
    return seal(start, seq, kind, version, time, data) ^ (RETIRED if retired else 0)


def _to_text(kind: str, key: Key) -> str:
    """Return a kind as PostgreSQL can store it: without the character NUL."""
    try:
        kind.encode()
    except UnicodeEncodeError as error:
        raise JournalError(
            f"The kind {kind!r} of an entry has half of a character ({error.reason}), which "
            f"the {key.place} cannot hold"
        ) from error
    return kind.replace("\\", "\\\\").replace("\0", "\\0")


def _from_text(text: str) -> str:
    return "\\".join(part.replace("\\0", "\0") for part in text.split("\\\\"))


def _parts(entries: Sequence[Stored]) -> Iterator[list[Stored]]:
    """Split entries into parts that a server takes at once."""
    part: list[Stored] = []
    size = 0
    for entry in entries:
        part.append(entry)
        size += len(entry[4])
        if size > SENT or len(part) >= PAGE:
            yield part
            part, size = [], 0
    if part:
        yield part
