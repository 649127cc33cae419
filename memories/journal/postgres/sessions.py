"""The sessions of a journal in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from uuid import UUID
from zlib import crc32

from agent_brain.memories.errors import JournalDamagedError, JournalError
from agent_brain.memories.journal.entry import checksum
from agent_brain.memories.journal.lease import Holder, Owner
from agent_brain.memories.journal.postgres.layout import SORTED, Layout

if TYPE_CHECKING:
    from agent_brain.memories.journal.postgres.connections import Transaction

NOW = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
_COLUMNS = "key, last, live, retired, created, updated, written, checksum, lease, owner, ends"


@dataclass(frozen=True)
class Key:
    """The key of a session.

    Attributes:
        text: The key.
        place: The journal, for people.
    """

    text: str
    place: str

    @cached_property
    def stored(self) -> bytes:
        """The key as it is stored."""
        try:
            return self.text.encode()
        except UnicodeEncodeError as error:
            raise JournalError(
                f"The session's key {self.text!r} has half of a character ({error.reason}), which "
                f"the {self.place} cannot hold"
            ) from error

    @cached_property
    def id(self) -> UUID:
        """What identifies the session in the tables."""
        return UUID(bytes=sha256(self.stored).digest()[:16])

    def damaged(self, why: str) -> JournalDamagedError:
        """Return the error of a damaged session."""
        return JournalDamagedError(
            f"Session {self.text!r} in the {self.place} is damaged: {why}. Restore the journal "
            "from a backup, or copy what can be read into a new one with 'agent-brain sessions "
            "salvage'. Nothing was changed",
            session=self.text,
        )


@dataclass(frozen=True, slots=True)
class Record:
    """A session, as it is stored; times are in milliseconds since 1970.

    Attributes:
        last: The number of its last entry; 0 before it has had one.
        live: How many entries it has, without the history.
        retired: How many entries its history has.
        created: The time of its first entry.
        updated: The time of its last one.
        written: When it was last written to.
        holder: Who has its lease; with the seconds that it still lasts, which may be negative.
        now: The server's time.
    """

    last: int = 0
    live: int = 0
    retired: int = 0
    created: int = 0
    updated: int = 0
    written: int = 0
    holder: Holder | None = None
    now: int = 0

    def seal(self, key: str) -> int:
        """Return the checksum of the session's row."""
        counts = (self.last, self.live, self.retired, self.created, self.updated, self.written)
        return crc32("\0".join(map(str, counts)).encode(), checksum(key))

    def has_expired(self, ttl: int | None) -> bool:
        """Return whether nobody wrote to it for ``ttl`` milliseconds."""
        return ttl is not None and self.last > 0 and self.now - self.written >= ttl

    def shown(self, ttl: int | None) -> Record:
        """Return it as others see it: an expired session is none."""
        return Record(holder=self.holder, now=self.now) if self.has_expired(ttl) else self

    @property
    def leased(self) -> Holder | None:
        """Who has the lease, if it has not ended."""
        return self.holder if self.holder is not None and self.holder.seconds > 0 else None


def find(tx: Transaction, layout: Layout, key: Key) -> Record:
    """Return a session as it is; an unknown one is an empty record."""
    row = tx.get(f"SELECT {_COLUMNS}, {NOW} FROM {layout.sessions} WHERE id = '{key.id}'")
    if row is None or not row[1]:
        _check_no_entries(tx, layout, key)
    return Record() if row is None else _read(row, key)


def lock(tx: Transaction, layout: Layout, key: Key) -> Record:
    """Return a session as :func:`find` does; nobody else writes to a known one meanwhile."""
    sql = f"SELECT {_COLUMNS}, {NOW} FROM {layout.sessions} WHERE id = '{key.id}' FOR UPDATE"
    row = tx.get(sql)
    return Record() if row is None else _read(row, key)


def claim(tx: Transaction, layout: Layout, key: Key) -> Record:
    """Lock a session, which is added without entries if it is unknown."""
    values = f"'{key.id}', %s, 0, 0, 0, 0, 0, 0, {Record().seal(key.text)}"
    while not (record := lock(tx, layout, key)).now:  # unless it is removed in between
        tx.execute(
            f"INSERT INTO {layout.sessions} VALUES ({values}) ON CONFLICT DO NOTHING", [key.stored]
        )
    return record


def begin(tx: Transaction, layout: Layout, key: Key) -> int:
    """Return the number that the entries of a locked session without any come after.

    Raises:
        JournalDamagedError: It has entries.
    """
    _check_no_entries(tx, layout, key)
    return int(tx.get_one(f"SELECT deleted FROM {layout.layout}")[0])


def save(layout: Layout, key: Key, record: Record, lasts: float | None = None) -> str:
    """Return the SQL that stores what has changed in a locked session.

    Args:
        layout: The tables.
        key: The session's key.
        record: What to store.
        lasts: How long the lease lasts from now on, in seconds; None changes nothing in it.
    """
    lease = "" if lasts is None else f", ends = {NOW} + {round(lasts * 1000)}"
    return (
        f"UPDATE {layout.sessions} SET last = {record.last}, live = {record.live}, "
        f"retired = {record.retired}, created = {record.created}, updated = {record.updated}, "
        f"written = {record.written}, checksum = {record.seal(key.text)}{lease} "
        f"WHERE id = '{key.id}'; "
    )


def changed(record: Record, *, live: int = 0, retired: int = 0) -> Record:
    """Return a session with other numbers of entries."""
    return replace(record, live=record.live + live, retired=record.retired + retired)


def every(
    tx: Transaction, layout: Layout, place: str, prefix: str = ""
) -> Iterator[tuple[Key, Record]]:
    """Yield the sessions whose keys start with ``prefix``, sorted by key."""
    start = Key(prefix, place).stored
    where, params = "last > 0", list[Any]()
    if start:
        head = start[:SORTED]
        after = head[:-1] + bytes([head[-1] + 1])  # UTF-8 has no byte 255
        indexed = f"substr(key, 1, {SORTED})"
        where += f" AND {indexed} >= %s AND {indexed} < %s AND substr(key, 1, %s) = %s"
        params += [head, after, len(start), start]
    cursor = tx.execute(
        f"SELECT {_COLUMNS}, {NOW} FROM {layout.sessions} WHERE {where} ORDER BY key", params
    )
    while rows := cursor.fetchmany(250):
        for row in rows:
            key = Key(row[0].decode(errors="replace"), place)
            yield key, _read(row, key)


def _read(row: tuple[Any, ...], key: Key) -> Record:
    stored, last, live, retired, created, updated, written, seal, lease, owner, ends, now = row
    holder = None
    if lease is not None:
        holder = Holder(Owner.from_text(owner), lease, (ends - now) / 1000)
    record = Record(last, live, retired, created, updated, written, holder, now)
    if stored != key.stored or seal != record.seal(key.text):
        raise key.damaged("the checksum of its row is wrong")
    return record


def _check_no_entries(tx: Transaction, layout: Layout, key: Key) -> None:
    if tx.get(f"SELECT 1 FROM {layout.entries} WHERE session = '{key.id}' LIMIT 1"):
        raise key.damaged("its row is missing, and its entries are there")
