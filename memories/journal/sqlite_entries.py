"""Entries of a session in a SQLite file: reading and checking them, adding and removing them."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from heapq import merge
from itertools import islice
from typing import TypeAlias
from zlib import crc32

from agent_brain.memories.errors import JournalDamagedError, JournalError
from agent_brain.memories.journal.base import damaged
from agent_brain.memories.journal.entry import (
    Entry,
    Rows,
    checksum,
    from_line,
    from_milliseconds,
    seal,
    to_line,
    to_milliseconds,
)
from agent_brain.memories.journal.sqlite_errors import is_damage
from agent_brain.memories.journal.sqlite_layout import MOST
from agent_brain.memories.journal.sqlite_sessions import ADVICE, SessionRow

PAGE = 250  # rows that are read at once, so few that they do not make the garbage collector run
LIVE, HISTORY = "entry", "history"
_COLUMNS = "id, prev, kind, version, time, checksum, data"

Stored: TypeAlias = tuple[int, int, str, int, int, int, str]  # the columns


@dataclass
class _Chain:
    """Checks rows of one table in order: that each is what was written, and that none is missing.

    Attributes:
        at: The number of the last row that was checked.
    """

    session: SessionRow
    name: str  # of the journal, for errors
    at: int

    def check(self, rows: Iterable[Stored]) -> None:
        """Check the next rows.

        Raises:
            JournalDamagedError: One is damaged; ``at`` is the number of the one before it.
        """
        start, base, at = checksum(self.session.key), self.session.base, self.at
        for number, prev, kind, version, time, found, line in rows:
            # As seal() does, without the call: this runs for each entry of a session.
            text = f"{number - base}\0{kind}\0{version}\0{time}\0{line}"
            if found != crc32(text.encode("utf-8", "surrogatepass"), start):
                self.at = at
                raise damaged(self.session.key, number - base, self.name)
            if prev != at:
                self.at = at
                raise self.broken()
            at = number - base
        self.at = at

    def check_end(self, tail: int) -> None:
        """Check that the last row was the last one of the session."""
        if self.at != tail:
            raise self.broken()

    def broken(self) -> JournalDamagedError:
        """Return the error of an entry that is not there or cannot be read."""
        return _broken(self.session, self.at, f" in {self.name}")

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Raise the errors of a damaged file as those of this session."""
        try:
            yield
        except (sqlite3.Error, ValueError, OverflowError) as error:
            if isinstance(error, sqlite3.Error) and not is_damage(error):
                raise
            raise self.broken() from error


def _broken(session: SessionRow, at: int, place: str = "") -> JournalDamagedError:
    return JournalDamagedError(
        f"Session {session.key!r}{place} is damaged: what comes after entry {at} is missing or "
        f"cannot be read. {ADVICE}",
        session=session.key,
    )


def live_rows(db: sqlite3.Connection, session: SessionRow, after: int, name: str) -> Rows:
    """Return the entries in use above ``after``.

    Raises:
        JournalDamagedError: One is not what was written.
    """
    found = Rows(as_written=True)
    chain = _Chain(session, name, _before(db, LIVE, session, after))
    cursor, base = _select(db, LIVE, session, after), session.base
    with chain.reading():
        while page := cursor.fetchmany(PAGE):
            chain.check(page)
            ids, _, kinds, versions, _, _, lines = zip(*page, strict=True)
            seqs = [number - base for number in ids]
            found.seqs.extend(seqs)
            found.kinds.extend(map(sys.intern, kinds))
            found.lines.extend(lines)
            if versions.count(1) != len(versions):
                pairs = zip(seqs, versions, strict=True)
                found.versions.update({seq: version for seq, version in pairs if version != 1})
    chain.check_end(session.tail)
    return found


def _before(db: sqlite3.Connection, table: str, session: SessionRow, after: int) -> int:
    """Return the highest number up to ``after`` that is in a table, 0 if there is none."""
    if after <= 0:
        return 0
    bounds = session.base, session.base + min(after, MOST)
    found = db.execute(f"SELECT max(id) FROM {table} WHERE id > ? AND id <= ?", bounds).fetchone()
    return 0 if found[0] is None else int(found[0]) - session.base


def _select(db: sqlite3.Connection, table: str, session: SessionRow, after: int) -> sqlite3.Cursor:
    start = session.base + min(max(after, 0), MOST)
    return db.execute(
        f"SELECT {_COLUMNS} FROM {table} WHERE id > ? AND id < ? ORDER BY id", (start, session.end)
    )


@dataclass
class Page:
    """Some entries of a session, and what is wrong with those after them."""

    entries: list[Entry]
    error: JournalDamagedError | None = None


def read_page(
    db: sqlite3.Connection,
    session: SessionRow,
    after: int,
    name: str,
    *,
    history: bool,
    size: int | None = None,
) -> Page:
    """Return the next entries above ``after``; no more than ``size``, and none after a damage."""
    live = _scan(db, LIVE, session, after, name)
    retired = _scan(db, HISTORY, session, after, name) if history else iter(())
    page = Page([])
    try:
        for entry in islice(merge(live, retired, key=lambda entry: entry.seq), size):
            page.entries.append(entry)
    except JournalDamagedError as error:
        page.error = error
    return page


def _scan(
    db: sqlite3.Connection, table: str, session: SessionRow, after: int, name: str
) -> Iterator[Entry]:
    chain = _Chain(session, name, _before(db, table, session, after))
    with chain.reading():
        for row in _select(db, table, session, after):
            chain.check([row])
            number, _, kind, version, time, _, line = row
            when = from_milliseconds(time) if time else None
            seq = number - session.base
            yield Entry(kind, from_line(line), seq, version, when, table == HISTORY)
    chain.check_end(session.tail if table == LIVE else session.history_tail)


def add(
    db: sqlite3.Connection, session: SessionRow, lines: Sequence[tuple[Entry, str]], now: int
) -> SessionRow:
    """Add new entries with their data as text; return the session as it is then, to be written.

    Raises:
        JournalDamagedError: The session's last entry is missing.
        JournalError: There are no numbers left.
    """
    _check_tail(db, LIVE, session)
    first = session.last + 1
    if session.last + len(lines) > MOST:
        raise JournalError(f"Session {session.key!r} has no numbers left: use another session")
    start, base, prev, rows = checksum(session.key), session.base, session.tail, []
    for seq, (entry, line) in enumerate(lines, first):
        check = seal(start, seq, entry.kind, entry.version, now, line)
        rows.append((base + seq, prev, entry.kind, entry.version, now, check, line))
        prev = seq
    _insert(db, LIVE, rows)
    count = session.entries + len(rows)
    return replace(session, last=prev, tail=prev, entries=count, updated=now, touched=now)


def add_as_they_were(
    db: sqlite3.Connection, session: SessionRow, entries: Sequence[Entry]
) -> SessionRow:
    """Add the entries of another journal; return the session as it is then, to be written."""
    start, base = checksum(session.key), session.base
    rows: dict[str, list[Stored]] = {LIVE: [], HISTORY: []}
    tails = {LIVE: 0, HISTORY: 0}
    times = []
    for entry in entries:
        table = HISTORY if entry.retired else LIVE
        line, time = to_line(entry.data), to_milliseconds(entry.time) if entry.time else 0
        check = seal(start, entry.seq, entry.kind, entry.version, time, line)
        stored = (base + entry.seq, tails[table], entry.kind, entry.version, time, check, line)
        rows[table].append(stored)
        tails[table] = entry.seq
        times += [time] if time else []
    for table, stored_rows in rows.items():
        _insert(db, table, stored_rows)
    return replace(
        session,
        last=max(session.last, entries[-1].seq),
        tail=tails[LIVE],
        history_tail=tails[HISTORY],
        entries=len(entries),
        created=min(times, default=None),
        updated=max(times, default=None),
    )


def _insert(db: sqlite3.Connection, table: str, rows: Iterable[Stored]) -> None:
    db.executemany(f"INSERT INTO {table} ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", rows)


def retire(
    db: sqlite3.Connection, session: SessionRow, seqs: Collection[int]
) -> tuple[SessionRow, int]:
    """Move entries to the history.

    Returns:
        The session as it is then, to be written, and the number of entries.
    """
    ids = _present(db, LIVE, session, seqs)
    for table in (LIVE, HISTORY) if ids else ():
        _check_tail(db, table, session)
        _check_links(db, table, session, ids)
    db.executemany(
        f"INSERT INTO {HISTORY} SELECT * FROM {LIVE} WHERE id = ?", [(number,) for number in ids]
    )
    _delete(db, LIVE, ids)
    for table in (LIVE, HISTORY):
        _link(db, table, session, ids)
    return _with_tails(db, session) if ids else session, len(ids)


def remove(db: sqlite3.Connection, session: SessionRow, seqs: Collection[int]) -> SessionRow:
    """Remove entries, retired ones too; return the session as it is then, to be written."""
    count = 0
    for table in (LIVE, HISTORY):
        ids = _present(db, table, session, seqs)
        if ids:
            _check_tail(db, table, session)
            _check_links(db, table, session, ids)
            _delete(db, table, ids)
            _link(db, table, session, ids)
            count += len(ids)
    if not count:
        return session
    return replace(_with_tails(db, session), entries=session.entries - count)


def retired(db: sqlite3.Connection, session: SessionRow, before: int | None) -> list[int]:
    """Return the numbers of the retired entries below ``before``."""
    upto = session.end if before is None else session.base + min(max(before, 0), MOST + 1)
    found = db.execute(f"SELECT id FROM {HISTORY} WHERE id > ? AND id < ?", (session.base, upto))
    return [number - session.base for (number,) in found]


def remove_all(db: sqlite3.Connection, session: SessionRow) -> None:
    """Remove all entries of a session."""
    for table in (LIVE, HISTORY):
        db.execute(f"DELETE FROM {table} WHERE id > ? AND id < ?", (session.base, session.end))


def _present(
    db: sqlite3.Connection, table: str, session: SessionRow, seqs: Collection[int]
) -> list[int]:
    """Return the ids of those of ``seqs`` that are in a table, in order."""
    found = []
    for seq in sorted({seq for seq in seqs if 0 < seq <= session.last}):
        number = session.base + seq
        if db.execute(f"SELECT 1 FROM {table} WHERE id = ?", (number,)).fetchone():
            found.append(number)
    return found


def _delete(db: sqlite3.Connection, table: str, ids: Iterable[int]) -> None:
    db.executemany(f"DELETE FROM {table} WHERE id = ?", [(number,) for number in ids])


def _near(
    db: sqlite3.Connection, table: str, session: SessionRow, ids: Iterable[int]
) -> Iterator[tuple[int, int, int]]:
    """Yield the id, ``prev``, and what that should be, of rows and of those that follow them."""
    select = (
        f"SELECT id, prev, coalesce((SELECT max(p.id) FROM {table} p "
        f"WHERE p.id > ? AND p.id < {table}.id), ?) - ? FROM {table} "
        "WHERE id >= ? AND id < ? ORDER BY id LIMIT 2"
    )
    base, done = session.base, 0
    for number in ids:
        if number < done:  # the row that follows was seen already, and it is in between
            continue
        for found in db.execute(select, (base, base, base, number, session.end)).fetchall():
            if found[0] > done:
                yield found
                done = found[0]


def _check_links(
    db: sqlite3.Connection, table: str, session: SessionRow, ids: Iterable[int]
) -> None:
    """Check that nothing is missing around rows, as linking their neighbours would hide it."""
    for _, prev, wanted in _near(db, table, session, ids):
        if prev != wanted:
            raise _broken(session, min(prev, wanted))


def _link(db: sqlite3.Connection, table: str, session: SessionRow, ids: Iterable[int]) -> None:
    """Link the rows around ids that were added or removed."""
    wrong = [
        (wanted, number)
        for number, prev, wanted in _near(db, table, session, ids)
        if prev != wanted
    ]
    db.executemany(f"UPDATE {table} SET prev = ? WHERE id = ?", wrong)


def _check_tail(db: sqlite3.Connection, table: str, session: SessionRow) -> None:
    wanted = session.tail if table == LIVE else session.history_tail
    found = _before(db, table, session, MOST)
    if found != wanted:
        raise _broken(session, min(found, wanted))


def _with_tails(db: sqlite3.Connection, session: SessionRow) -> SessionRow:
    tail, history = (_before(db, table, session, MOST) for table in (LIVE, HISTORY))
    return replace(session, tail=tail, history_tail=history)
