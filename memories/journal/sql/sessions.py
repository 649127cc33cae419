"""The table of sessions of a journal in a SQL database."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import astuple, dataclass, fields, replace
from functools import cached_property
from hashlib import sha256
from zlib import crc32

from agent_brain.memories.errors import JournalDamagedError, JournalError
from agent_brain.memories.journal.base import damaged_session
from agent_brain.memories.journal.entry import checksum
from agent_brain.memories.journal.lease import Lease, Owner
from agent_brain.memories.journal.sql.database import Row, Transaction

INDEXED = 256  # bytes of a key: some databases have no index of long ones
FETCHED = 250  # rows at once, so few that they do not start the garbage collector


@dataclass(frozen=True)
class Key:
    """The key of a session.

    Attributes:
        text: The key.
        place: The journal, for people.
        ttl: How long the session is kept after the last write to it, in milliseconds; None for
            ever.
    """

    text: str
    place: str
    ttl: int | None = None

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
    def id(self) -> int:
        """The number of the session in the tables."""
        return int.from_bytes(sha256(self.stored).digest()[:8], "big", signed=True)

    def damaged(self, why: str) -> JournalDamagedError:
        """Return the error of a damaged session."""
        return damaged_session(self.text, f"the {self.place}", why)


@dataclass(frozen=True, slots=True)
class Counts:
    """What is stored of a session; times are in milliseconds since 1970.

    Attributes:
        base: The number that its entries come after.
        last: The number of its last entry; 0 before it has had one.
        live: How many entries it has, without the history.
        retired: How many entries its history has.
        version: The highest version of its entries.
        created: The time of its first entry.
        updated: The time of its last one.
        written: When it was last written to.
    """

    base: int = 0
    last: int = 0
    live: int = 0
    retired: int = 0
    version: int = 1
    created: int = 0
    updated: int = 0
    written: int = 0

    def seal(self, key: str) -> int:
        """Return the checksum of the session's row."""
        return crc32("\0".join(map(str, astuple(self))).encode(), checksum(key))


COUNTS = [field.name for field in fields(Counts)]
_COLUMNS = f"key, checksum, lease, owner, {', '.join(COUNTS)}"


@dataclass(frozen=True, slots=True)
class Record:
    """A session.

    Attributes:
        counts: What is stored of it.
        holder: Who has its lease; with the seconds that it still lasts, which may be negative.
        now: The time of the database; 0 for a session that is not stored.
        has_expired: Whether nobody wrote to it for as long as it is kept.
    """

    counts: Counts = Counts()
    holder: Lease | None = None
    now: int = 0
    has_expired: bool = False

    @property
    def shown(self) -> Counts:
        """What others see of it: an expired session has nothing."""
        return Counts() if self.has_expired else self.counts

    @property
    def leased(self) -> Lease | None:
        """Who has the lease, if it has not ended."""
        return self.holder if self.holder is not None and self.holder.seconds > 0 else None


def find(tx: Transaction, key: Key) -> Record:
    """Return a session; an unknown one is an empty record.

    Raises:
        JournalDamagedError: Its row is not what was written, or is missing.
    """
    record = _select(tx, key, "")
    if not record.counts.last:
        _check_no_entries(tx, key)
    return record


def lock(tx: Transaction, key: Key) -> Record:
    """Return a session; nobody else writes to a known one until the transaction ends."""
    return _select(tx, key, tx.lock)


def claim(tx: Transaction, key: Key) -> Record:
    """Lock a session, which is added without entries if it is unknown."""
    while not (record := lock(tx, key)).now:  # unless it is removed in between
        row = [key.id, key.stored, *astuple(Counts()), Counts().seal(key.text)]
        tx.execute(
            f"INSERT INTO sessions (id, key, {', '.join(COUNTS)}, checksum) "
            f"VALUES ({', '.join('?' * len(row))}) ON CONFLICT DO NOTHING",
            row,
        )
    return record


def begin(tx: Transaction, key: Key, record: Record) -> Record:
    """Return a locked session without entries as its first ones find it.

    Raises:
        JournalDamagedError: It has entries.
    """
    _check_no_entries(tx, key)
    base = int(tx.get_one("SELECT deleted FROM journal")[0])
    return replace(record, counts=Counts(base=base, last=base))


def save(
    tx: Transaction, key: Key, counts: Counts, lease: Lease | None = None, *, more: bool = False
) -> None:
    """Store what has changed in a locked session, and let its lease last from now on.

    Args:
        tx: The transaction.
        key: The session's key.
        counts: What to store.
        lease: The lease of the writer.
        more: Whether the transaction continues.
    """
    sets = [f"{name} = ?" for name in (*COUNTS, "checksum")]
    values = [*astuple(counts), counts.seal(key.text)]
    if lease is not None:
        sets.append(f"ends = {tx.lease_clock} + ?")
        values.append(milliseconds(lease))
    run = tx.execute if more else tx.at_end
    run(f"UPDATE sessions SET {', '.join(sets)} WHERE id = ?", [*values, key.id])


def remove(tx: Transaction, key: Key) -> None:
    """Remove the row of a session, with its lease."""
    tx.execute("DELETE FROM sessions WHERE id = ?", [key.id])


def every(tx: Transaction, prefix: Key) -> Iterator[tuple[Key, Record]]:
    """Yield the sessions whose keys start with that text, sorted by key.

    Raises:
        JournalDamagedError: A row is not what was written, or is missing.
    """
    tx.check_sessions()
    start = prefix.stored
    where, params = "last > 0", list[object]()
    if start:
        head = start[:INDEXED]
        after = head[:-1] + bytes([head[-1] + 1])  # UTF-8 has no byte 255
        part = f"substr(key, 1, {INDEXED})"
        where += f" AND {part} >= ? AND {part} < ? AND substr(key, 1, ?) = ?"
        params += [head, after, len(start), start]
    sql = f"SELECT {_COLUMNS}, {tx.lease_left}, {tx.clock} FROM sessions WHERE {where} ORDER BY key"
    cursor = tx.execute(sql, params)
    while rows := cursor.fetchmany(FETCHED):
        for row in rows:
            yield read_row(row, prefix)


def lock_expired(tx: Transaction, ttl: int, most: int) -> list[Row]:
    """Lock some sessions that nobody wrote to for ``ttl`` milliseconds, and nobody has a lease of.

    Returns:
        Their rows, for :func:`read_row`.
    """
    found = tx.execute(
        f"SELECT {_COLUMNS}, {tx.lease_left}, {tx.clock} FROM sessions WHERE last > 0 "
        f"AND written <= {tx.clock} - ? AND (lease IS NULL OR {tx.lease_left} <= 0) "
        f"ORDER BY id LIMIT ?{tx.lock_free}",
        [ttl, most],
    )
    return [*found]


def read_row(row: Row, like: Key) -> tuple[Key, Record]:
    """Return a session of the journal that another key is of.

    Raises:
        JournalDamagedError: Its row is not what was written.
    """
    key = replace(like, text=bytes(row[0]).decode(errors="replace"))
    return key, _read(row, key)


def remove_unused(tx: Transaction) -> None:
    """Remove sessions that had a lease, which has ended, and never an entry."""
    tx.execute(f"DELETE FROM sessions WHERE last = 0 AND (lease IS NULL OR {tx.lease_left} <= 0)")


# Leases


def milliseconds(lease: Lease) -> int:
    """Return how long a lease lasts."""
    return round(lease.seconds * 1000)


def take_lease(tx: Transaction, key: Key, lease: Lease, over: str | None) -> Lease | None:
    """Store a lease; see :meth:`Journal._take_lease`."""
    holder = claim(tx, key).leased
    if holder is not None and holder.token not in (over, lease.token):
        return holder
    lasts = milliseconds(lease)
    tx.execute(
        f"UPDATE sessions SET lease = ?, owner = ?, lasts = ?, ends = {tx.lease_clock} + ? "
        "WHERE id = ?",
        [lease.token, lease.owner.to_text(), lasts, lasts, key.id],
    )
    return None


def release_lease(tx: Transaction, key: Key, lease: Lease) -> None:
    """Remove a lease, unless it was taken over."""
    where, params = "WHERE id = ? AND lease = ?", [key.id, lease.token]
    tx.execute(f"DELETE FROM sessions {where} AND last = 0", params)
    sets = "lease = NULL, owner = NULL, lasts = NULL, ends = NULL"
    tx.execute(f"UPDATE sessions SET {sets} {where}", params)


def renew_leases(tx: Transaction, place: str, leases: Collection[Lease]) -> list[str]:
    """Renew leases; return the tokens of those that were lost.

    A session that is being written to is left out: its writer renews the lease.
    """
    tokens = {Key(lease.session, place).id: lease.token for lease in leases}
    sql = f"SELECT id, lease FROM sessions WHERE id IN ({', '.join('?' * len(tokens))})"
    stored: dict[int, str] = dict([*tx.execute(sql, [*tokens])])
    free = [*tx.execute(f"{sql}{tx.lock_free}", [*tokens])]
    if mine := [number for number, token in free if token == tokens[number]]:
        tx.execute(
            f"UPDATE sessions SET ends = {tx.lease_clock} + lasts "
            f"WHERE id IN ({', '.join('?' * len(mine))})",
            mine,
        )
    return [token for number, token in tokens.items() if stored.get(number) != token]


def _select(tx: Transaction, key: Key, ending: str) -> Record:
    sql = f"SELECT {_COLUMNS}, {tx.lease_left}, {tx.clock} FROM sessions WHERE id = ?{ending}"
    row = tx.get(sql, [key.id])
    return Record() if row is None else _read(row, key)


def _read(row: Row, key: Key) -> Record:
    stored, seal, lease, owner, *values, left, now = row
    counts = Counts(*values)
    if stored != key.stored or seal != counts.seal(key.text):
        raise key.damaged("the checksum of its row is wrong")
    holder = None
    if lease is not None:
        holder = Lease(key.text, Owner.from_text(owner), left / 1000, lease)
    expired = key.ttl is not None and counts.last > 0 and now - counts.written >= key.ttl
    return Record(counts, holder, now, expired)


def _check_no_entries(tx: Transaction, key: Key) -> None:
    if tx.get("SELECT 1 FROM entries WHERE session = ? LIMIT 1", [key.id]):
        raise key.damaged("its row is missing, and its entries are there")
