"""Entries of a session in a SQLite file: reading and checking them, adding and removing them.

The checksum of an entry covers the session's key, the entry, and the number of the one before it in
its table. So an entry that is missing is noticed at the next one, or at the session's row, which
has the number of the last one.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
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
    to_line,
    to_milliseconds,
)
from agent_brain.memories.journal.sqlite.errors import is_damage
from agent_brain.memories.journal.sqlite.layout import MOST
from agent_brain.memories.journal.sqlite.sessions import ADVICE, Identity, SessionRow

PAGE = 250  # rows that are read at once, so few that they do not make the garbage collector run
LIVE, HISTORY = "entry", "history"
_COLUMNS = "id, kind, version, time, checksum, data"
# A column less takes less time, and in most sessions every version is 1.
_TO_CHECK = "id, kind, checksum - version - time, data"

Checked: TypeAlias = tuple[int, str, int, str]  # the columns to check


def _seal(session_start: int, entry: Entry, line: str, before: int, time: int) -> int:
    """Return the checksum of an entry.

    The numbers are added, and not part of the text as in :func:`entry.seal`: checking the entries
    of a session takes half the time.
    """
    start = _start(session_start, entry.kind)
    return crc32(line.encode(), start) + entry.seq + before + entry.version + time


def _start(session_start: int, kind: str) -> int:
    return crc32(kind.encode() + b"\0", session_start)


class _Chain:
    """Checks rows of one table in order: that each is what was written, and that none is missing.

    Attributes:
        at: The number of the last row that was checked.
    """

    def __init__(self, session: SessionRow, at: int, name: str, after: int = 0) -> None:
        self.at = at
        self._after = after  # rows have numbers above this
        self._session = session
        self._name = name  # of the journal
        self._start = checksum(session.key)
        self._starts: dict[str, int] = {}  # by kind

    def check(self, rows: Sequence[Checked]) -> None:
        """Check the next rows.

        Raises:
            JournalDamagedError: One is damaged; ``at`` is the number of the one before it.
        """
        base, at, starts = self._session.base, self.at, self._starts
        if rows[0][0] - base <= self._after:  # a damaged tree leads elsewhere
            raise self.broken()
        for number, kind, found, line in rows:
            if kind not in starts:
                starts[kind] = _start(self._start, kind)
            seq = number - base
            if crc32(line.encode(), starts[kind]) + seq + at != found:
                self.at = at
                raise damaged(self._session.key, seq, self._name)
            at = seq
        self.at = at

    def check_end(self, tail: int) -> None:
        """Check that the last row was the last one of the session."""
        if self.at != tail:
            raise self.broken()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Raise the errors of a damaged file as those of this session."""
        try:
            yield
        except sqlite3.Error as error:
            if not is_damage(error):
                raise
            raise self.broken() from error
        except (ValueError, OverflowError, TypeError, AttributeError) as error:  # other types
            raise self.broken() from error

    def broken(self) -> JournalDamagedError:
        return JournalDamagedError(
            f"Session {self._session.key!r} in {self._name} is damaged: what comes after entry "
            f"{self.at} is missing or cannot be read. {ADVICE}",
            session=self._session.key,
        )


def live_rows(db: sqlite3.Connection, session: SessionRow, after: int, name: str) -> Rows:
    """Return the entries in use above ``after``.

    Raises:
        JournalDamagedError: One is not what was written.
    """
    found, base = Rows(as_written=True), session.base
    chain = _Chain(session, _highest(db, LIVE, session, after), name, after)
    with chain.reading(), closing(_select(db, _TO_CHECK, LIVE, session, after)) as cursor:
        while page := cursor.fetchmany(PAGE):
            chain.check(page)
            ids, kinds, _, lines = zip(*page, strict=True)
            found.seqs.extend([number - base for number in ids])
            found.kinds.extend(map(sys.intern, kinds))
            found.lines.extend(lines)
        if session.version > 1:
            versions = _select(db, "id, version", LIVE, session, after)
            found.versions = {number - base: version for number, version in versions if version > 1}
    chain.check_end(session.tail)
    return found


def _highest(db: sqlite3.Connection, table: str, session: SessionRow, upto: int = MOST) -> int:
    """Return the highest number up to ``upto`` that is in a table, 0 if there is none."""
    if upto <= 0:
        return 0
    bounds = session.base, session.base + min(upto, MOST)
    found = db.execute(f"SELECT max(id) FROM {table} WHERE id > ? AND id <= ?", bounds).fetchone()
    if found[0] is None:
        return 0
    if not bounds[0] < found[0] <= bounds[1]:  # a damaged tree leads elsewhere
        raise _Chain(session, upto, "the journal").broken()
    return int(found[0]) - session.base


def _select(
    db: sqlite3.Connection, columns: str, table: str, session: SessionRow, after: int
) -> sqlite3.Cursor:
    start = session.base + min(max(after, 0), MOST)
    return db.execute(
        f"SELECT {columns} FROM {table} WHERE id > ? AND id < ? ORDER BY id", (start, session.end)
    )


@dataclass
class Page:
    """Some entries of a session, and what is wrong with those after them.

    Attributes:
        entries: The entries.
        error: What is wrong.
        session: The session; None if there is none.
    """

    entries: list[Entry]
    error: JournalDamagedError | None = None
    session: Identity | None = None


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
    tables = (LIVE, HISTORY) if history else (LIVE,)
    page = Page([], session=session.identity)
    with ExitStack() as scans:
        sources = [
            scans.enter_context(closing(_scan(db, table, session, after, name))) for table in tables
        ]
        try:
            for entry in islice(merge(*sources, key=lambda entry: entry.seq), size):
                page.entries.append(entry)
        except JournalDamagedError as error:
            page.error = error
    return page


def _scan(
    db: sqlite3.Connection, table: str, session: SessionRow, after: int, name: str
) -> Generator[Entry, None, None]:
    chain = _Chain(session, _highest(db, table, session, after), name, after)
    columns = f"{_TO_CHECK}, version, time"
    with chain.reading(), closing(_select(db, columns, table, session, after)) as cursor:
        for number, kind, found, line, version, time in cursor:
            chain.check([(number, kind, found, line)])
            when = from_milliseconds(time) if time else None
            yield Entry(kind, from_line(line), chain.at, version, when, table == HISTORY)
    chain.check_end(session.tail if table == LIVE else session.history_tail)


def add(
    db: sqlite3.Connection, session: SessionRow, lines: Sequence[tuple[Entry, str]], now: int
) -> SessionRow:
    """Add new entries with their data as text; return the session as it is then, to be written.

    Raises:
        JournalDamagedError: The session's last entry is missing.
        JournalError: There are no numbers left.
    """
    _Chain(session, _highest(db, LIVE, session), "the journal").check_end(session.tail)
    if session.last + len(lines) > MOST:
        raise JournalError(f"Session {session.key!r} has no numbers left: use another session")
    numbered = [
        (replace(e, seq=seq), line) for seq, (e, line) in enumerate(lines, session.last + 1)
    ]
    tail = insert(db, LIVE, session, [(entry, line, now) for entry, line in numbered])
    return replace(
        session,
        last=tail,
        tail=tail,
        entries=session.entries + len(lines),
        version=max(session.version, *(entry.version for entry, _ in lines)),
        updated=now,
        touched=now,
    )


def add_as_they_were(
    db: sqlite3.Connection, session: SessionRow, entries: Sequence[Entry]
) -> SessionRow:
    """Add the entries of another journal; return the session as it is then, to be written.

    A writer that knows a session that was deleted under this key sees that its number is another.
    """
    timed = [(e, to_line(e.data), to_milliseconds(e.time) if e.time else 0) for e in entries]
    times = [time for _, _, time in timed if time]
    return replace(
        session,
        last=max(session.last + 1, entries[-1].seq),
        tail=insert(db, LIVE, session, [one for one in timed if not one[0].retired]),
        history_tail=insert(db, HISTORY, session, [one for one in timed if one[0].retired]),
        entries=len(entries),
        version=max(entry.version for entry in entries),
        created=min(times, default=None),
        updated=max(times, default=None),
    )


def insert(
    db: sqlite3.Connection,
    table: str,
    session: SessionRow,
    entries: Iterable[tuple[Entry, str, int]],
) -> int:
    """Add entries with their data as text and their times; return the highest number."""
    start, before, rows = checksum(session.key), _highest(db, table, session), []
    for entry, line, time in entries:
        check = _seal(start, entry, line, before, time)
        rows.append((session.base + entry.seq, entry.kind, entry.version, time, check, line))
        before = entry.seq
    db.executemany(f"INSERT INTO {table} ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)", rows)
    return before


def retire(
    db: sqlite3.Connection, session: SessionRow, seqs: Collection[int]
) -> tuple[SessionRow, int]:
    """Move entries to the history.

    Returns:
        The session as it is then, to be written, and the number of entries.
    """
    ids = _present(db, LIVE, session, seqs)
    if not ids:
        return session, 0
    live, history = (_befores(db, table, session, ids) for table in (LIVE, HISTORY))
    db.executemany(
        f"INSERT INTO {HISTORY} ({_COLUMNS}) SELECT {_COLUMNS} FROM {LIVE} WHERE id = ?",
        [(number,) for number in ids],
    )
    history |= {number: live.pop(number) for number in ids}
    _delete(db, LIVE, ids)
    _link(db, LIVE, session, live)
    _link(db, HISTORY, session, history)
    return with_tails(db, session), len(ids)


def remove(db: sqlite3.Connection, session: SessionRow, seqs: Collection[int]) -> SessionRow:
    """Remove entries, retired ones too; return the session as it is then, to be written."""
    left = session
    for table in (LIVE, HISTORY):
        ids = _present(db, table, session, seqs)
        if ids:
            befores, gone = _befores(db, table, session, ids), {*ids}
            _delete(db, table, ids)
            _link(db, table, session, {n: at for n, at in befores.items() if n not in gone})
            left = replace(with_tails(db, left), entries=left.entries - len(ids))
    return left


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
    ids = [session.base + seq for seq in sorted({*seqs}) if 0 < seq <= session.last]
    select = f"SELECT 1 FROM {table} WHERE id = ?"
    return [number for number in ids if db.execute(select, (number,)).fetchone()]


def _delete(db: sqlite3.Connection, table: str, ids: Iterable[int]) -> None:
    db.executemany(f"DELETE FROM {table} WHERE id = ?", [(number,) for number in ids])


def _befores(
    db: sqlite3.Connection, table: str, session: SessionRow, ids: Iterable[int]
) -> dict[int, int]:
    """Return the numbers before the rows at ``ids``, and before those that follow them.

    Raises:
        JournalDamagedError: One of them is damaged or missing, which a change would hide.
    """
    tail = session.tail if table == LIVE else session.history_tail
    _Chain(session, _highest(db, table, session), "the journal").check_end(tail)
    found: dict[int, int] = {}
    for number in ids:
        with closing(_select(db, _TO_CHECK, table, session, number - session.base - 1)) as cursor:
            rows = cursor.fetchmany(2)
        before = None
        for row in rows:
            if row[0] not in found:
                if before is None:
                    before = _highest(db, table, session, row[0] - session.base - 1)
                chain = _Chain(session, before, "the journal")
                with chain.reading():
                    chain.check([row])
                found[row[0]] = before
            before = row[0] - session.base
    return found


def _link(
    db: sqlite3.Connection, table: str, session: SessionRow, befores: Mapping[int, int]
) -> None:
    """Change the checksums of rows which had other rows before them."""
    changes = []
    for number, before in befores.items():
        now = _highest(db, table, session, number - session.base - 1)
        if now != before:
            changes.append((now - before, number))
    db.executemany(f"UPDATE {table} SET checksum = checksum + ? WHERE id = ?", changes)


def with_tails(db: sqlite3.Connection, session: SessionRow) -> SessionRow:
    """Return a session with the highest numbers that are in its tables."""
    tail, history = (_highest(db, table, session) for table in (LIVE, HISTORY))
    return replace(session, tail=tail, history_tail=history)
