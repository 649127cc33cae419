"""A journal in Redis."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Collection, Generator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, Literal

from agent_brain.common.ids import new_id
from agent_brain.memories.errors import JournalError
from agent_brain.memories.journal.base import (
    PAGE,
    Journal,
    SessionRecord,
    conflict,
    damaged,
    damaged_session,
    held,
    lost,
)
from agent_brain.memories.journal.checks import (
    as_list,
    checked_after,
    checked_seqs,
    checked_session,
    checked_size,
    to_lines,
    to_loaded_lines,
)
from agent_brain.memories.journal.entry import Entry, Line, Rows
from agent_brain.memories.journal.lease import Holder, Lease, Owner
from agent_brain.memories.journal.redis import scripts
from agent_brain.memories.journal.redis.entries import Columns, pack, read_head
from agent_brain.memories.journal.redis.errors import is_broken
from agent_brain.memories.journal.redis.keys import Keys, pattern
from agent_brain.memories.journal.redis.opening import check_durability, check_server
from agent_brain.memories.journal.redis.server import Server
from agent_brain.memories.journal.server_options import check_timeout, ttl_milliseconds
from agent_brain.memories.journal.threaded import ThreadedJournal

AT_ONCE = 20  # calls of an event loop, each in a connection
PAGE_BYTES = 1_000_000
STAGED = 5_000  # entries that load() sends at once
HEADS = 500  # that are read at once
HIGHEST = 2**53  # scores of sorted sets are exact below it


class RedisJournal(ThreadedJournal):
    """A journal on a Redis server, for processes on several machines.

    Needs the extra ``redis``. It connects at the first use, and again after a connection broke;
    calls run in worker threads, on asyncio and trio::

        async with RedisJournal("redis://localhost:6379/0") as journal:
            memory = WindowedMemory(journal=journal, session="alice/42")

    Every call is one script, which Redis does as a whole. A call whose connection breaks is
    repeated once where that is safe: reading, leases, the removal of single entries, and an append
    with ``expect=``, which Redis recognises if it was done. Any other, and one without an answer in
    time, raises a JournalError if it may have been done; a memory then finds out by reading.

    Redis keeps its data in memory. What survives the end of the server is a matter of its settings:

    * ``durability="memory"`` asks nothing of them. **A server that writes nothing to its disk loses
      all sessions when it stops**, and one that saves from time to time the latest entries.
    * ``durability="disk"`` refuses a server that does not have ``appendonly yes``,
      ``appendfsync always`` and ``no-appendfsync-on-rewrite no``. An append is then on the server's
      disk when it returns.

    Neither waits for replicas: a failover may lose the latest entries. A server that may evict keys
    (``maxmemory-policy``) loses sessions without a word; opening it logs a warning. A Redis Cluster
    is refused.

    Deleted entries are gone from the server's memory at once, and from its replicas when they have
    caught up. Copies remain, until the server replaces them, in its append-only file
    (``BGREWRITEAOF``), in its snapshot (``BGSAVE``), in backups, and their first 128 bytes in its
    ``SLOWLOG``. ``scrub`` makes no difference, as those commands concern all data on the server.

    Args:
        url: ``redis://user:password@host:port/0``, ``rediss://…`` for TLS, or ``unix:///path``.
        prefix: What the names of all keys begin with; each prefix is a journal of its own.
        ttl: How long a session is kept after its last append, in seconds or as a timedelta; Redis
            removes it then. An append by a journal without it keeps the session for ever.
        durability: What the server's settings must guarantee.
        timeout: Seconds to wait for a connection, and for an answer.
        readonly: Never write; for viewers, backups and replicas.

    Raises:
        JournalError: The package redis is missing.
        MemoryDefinitionError: Options that make no sense.
    """

    def __init__(
        self,
        url: str,
        *,
        prefix: str = "agent-brain",
        ttl: timedelta | float | None = None,
        durability: Literal["memory", "disk"] = "memory",
        timeout: float = 10.0,
        readonly: bool = False,
    ) -> None:
        check_durability(durability)
        kept = ttl_milliseconds(ttl)
        check_timeout(timeout)
        self.prefix = prefix
        self.durability = durability
        self._keys = Keys(prefix)
        self._server = Server(url, timeout)
        self._ttl = "" if kept is None else str(kept)
        self._starts_after = 0  # where the last new session began, as the next one probably does
        super().__init__(
            f"journal {prefix!r} in Redis at {self._server.place}",
            at_once=AT_ONCE,
            patience=timeout,
            readonly=readonly,
        )

    def __repr__(self) -> str:
        return f"RedisJournal({self._server.place!r}, prefix={self.prefix!r})"

    # Entries

    async def append(
        self,
        session: str,
        entries: Sequence[Entry],
        *,
        expect: int | None = None,
        lease: Lease | None = None,
    ) -> int:
        """See :meth:`Journal.append`."""
        self._writable(session)
        given = as_list(entries)
        checked_seqs([] if expect is None else [expect])
        answer = await self._call(
            lambda: self._append(session, to_lines(given), expect, lease), session
        )
        if answer[0] == b"lost" and lease is not None:
            raise lost(lease)
        if answer[0] == b"held":
            raise held(session, _holder(answer))
        if answer[0] == b"conflict":
            raise conflict(session, expect or 0, answer[1])
        return int(answer[1])

    def _append(
        self, session: str, lines: Sequence[Line], expect: int | None, lease: Lease | None
    ) -> Any:
        base = expect or self._starts_after
        while True:
            now = _now()
            text = pack(session, lines, now, base)
            token, lasts = ("", 0) if lease is None else (lease.token, _ms(lease.seconds))
            limits = ("" if expect is None else expect, base, token, lasts)
            args = (*limits, now, self._ttl, text)
            try:
                answer = self._run(scripts.APPEND, session, *args, "")
            except JournalError as error:
                if expect is None or not is_broken(error.__cause__):
                    raise
                answer = self._run(scripts.APPEND, session, *args, "1")
            if answer[0] != b"again":
                return answer
            base = answer[1]
            if expect == 0:
                self._starts_after = base

    async def read(self, session: str, after: int = 0, *, history: bool = False) -> list[Entry]:
        """See :meth:`Journal.read`."""
        pages = self._pages(session, after, PAGE, history=history)
        return await self._call(lambda: [e for page in pages for e in page.as_lines()], session)

    async def pages(
        self, session: str, after: int = 0, *, history: bool = False, size: int = PAGE
    ) -> AsyncGenerator[Sequence[Entry], None]:
        """See :meth:`Journal.pages`. A page that would be long in bytes has fewer entries."""
        pages = self._pages(session, after, checked_size(size), history=history)
        entries = (page.as_lines() for page in pages if page.seqs)
        while page := await self._call(lambda: next(entries, None), session):
            yield page

    async def rows(self, session: str, after: int = 0, *, history: bool = False) -> Rows:
        """See :meth:`Journal.rows`."""
        pages = self._pages(session, after, PAGE, history=history)

        def read() -> Rows:
            rows = Rows()
            for page in pages:
                page.add_to(rows)
            return rows

        return await self._call(read, session)

    def _pages(
        self, session: str, after: int, size: int, *, history: bool
    ) -> Generator[Columns, None, None]:
        checked_session(session)
        checked_after(after)
        return self._each_page(session, after, size, history=history)

    def _each_page(
        self, session: str, after: int, size: int, *, history: bool
    ) -> Generator[Columns, None, None]:
        """Yield the entries up to a damage, and raise its error."""
        known: bytes | None = None
        while True:
            limits = (after, size, PAGE_BYTES, "1" if history else "")
            _, problem, born, is_last, retired, *texts = self._run(scripts.PAGE, session, *limits)
            if known not in (None, born):
                raise JournalError(
                    f"Session {session!r} in {self!r} was deleted while it was read: read it again"
                )
            known, found = born, Columns(session, texts, retired, after)
            yield found
            if len(found.seqs) < len(texts):
                number = self._number_of(session, texts[len(found.seqs)])
                raise damaged(session, number, repr(self))
            if is_last:
                break
            after = found.seqs[-1]
        if problem:
            raise damaged_session(session, repr(self), problem.decode())

    def _number_of(self, session: str, text: bytes) -> int:
        """Return the number under which a damaged entry is stored."""
        _, entries, history, *_ = self._keys.of(session)
        for key in (entries, history):
            if (score := self._server.ask("ZSCORE", key, text)) is not None:
                return int(float(score))
        return 0

    async def last(self, session: str) -> int:
        """See :meth:`Journal.last`."""
        return await self._count(scripts.LAST, checked_session(session))

    async def delete(
        self, session: str, seqs: Collection[int] | None = None, *, scrub: bool = True
    ) -> int:
        """See :meth:`Journal.delete`; the class says which copies remain."""
        self._writable(session)
        if seqs is None:
            return await self._count(scripts.DELETE_SESSION, session)
        return await self._count(scripts.DELETE, session, _numbers(seqs))

    async def retire(self, session: str, seqs: Collection[int]) -> int:
        """See :meth:`Journal.retire`."""
        return await self._count(scripts.RETIRE, self._writable(session), _numbers(seqs))

    async def trim(self, session: str, before: int | None = None, *, scrub: bool = False) -> int:
        """See :meth:`Journal.trim`."""
        self._writable(session)
        checked_seqs([] if before is None else [before])
        limit = "+inf" if before is None else f"({before}"
        return await self._count(scripts.TRIM, session, limit)

    async def exchange(self, remove: Collection[str], add: Mapping[str, Sequence[Entry]]) -> None:
        """See :meth:`Journal.exchange`. What is added is sent in parts before."""
        going = [self._writable(key) for key in remove]
        coming = {self._writable(key): as_list(some) for key, some in add.items()}
        await self._call(lambda: self._exchange(going, coming), next(iter(add), None))

    def _exchange(self, going: Sequence[str], add: Mapping[str, Sequence[Entry]]) -> None:
        for key in add.keys() - {*going}:
            if found := self._run(scripts.LAST, key)[1]:
                raise conflict(key, 0, found)
        coming = {key: to_loaded_lines(some) for key, some in add.items() if some}
        staging = {key: self._staging(key) for key in coming}
        keys = [*self._keys.of(""), *(name for key in going for name in self._keys.of(key)[:4])]
        args: list[str | int] = [self._ttl, len(going), *going]
        try:
            for key, some in coming.items():
                args += [key, *self._stage(staging[key], key, some)]
                keys += [*staging[key][:4], *staging[key][6:]]
            answer = self._server.run(scripts.EXCHANGE, keys, "", *args)
        except BaseException:
            self._unstage([name for names in staging.values() for name in names[6:]])
            raise
        session = answer[2].decode() if len(answer) > 2 else ""
        self._check(session, answer)
        if answer[0] == b"conflict":
            raise conflict(session, 0, answer[1])
        if answer[0] != b"ok":
            raise JournalError(f"Session {session!r} could not be sent to {self!r}: load it again")

    def _staging(self, session: str) -> list[str]:
        """Return the keys of a session, and two in which its entries are gathered."""
        token = new_id("load")
        return self._keys.of(session, f"{token}:entries", f"{token}:history")

    def _stage(
        self, keys: Sequence[str], session: str, lines: Sequence[Line]
    ) -> tuple[int, int, int, int, int]:
        """Send entries; return their last number, how many are live and retired, and the times."""
        parts = [[line for line in lines if line[4] == retired] for retired in (False, True)]
        times = [time for *_, time, _, _ in lines if time is not None] or [_now()]
        for key, part in zip(keys[6:], parts, strict=True):
            for start in range(0, len(part), STAGED):
                text = pack(session, part[start : start + STAGED], _now())
                self._server.run(scripts.STAGE, [*keys[:6], key], session, text)
        return lines[-1][0], len(parts[0]), len(parts[1]), min(times), max(times)

    def _unstage(self, keys: Sequence[str]) -> None:
        with suppress(JournalError):  # Redis removes them later then
            if keys:
                self._server.ask("UNLINK", *keys)

    # Sessions

    async def sessions(self, prefix: str = "") -> list[str]:
        """See :meth:`Journal.sessions`."""
        checked_session(prefix)
        return await self._call(lambda: self._names(prefix))

    def _names(self, prefix: str) -> list[str]:
        found: set[str] = set()
        cursor = b""
        while cursor != b"0":
            _, cursor, *keys = self._run(scripts.LIST, "", cursor or b"0", pattern(prefix))
            found.update(key.decode(errors="replace") for key in keys)
        return sorted(found)

    async def records(self, prefix: str = "") -> list[SessionRecord]:
        """See :meth:`Journal.records`."""
        checked_session(prefix)

        def read() -> list[SessionRecord]:
            keys = self._names(prefix)
            found: list[SessionRecord] = []
            for start in range(0, len(keys), HEADS):
                some = keys[start : start + HEADS]
                heads = self._server.ask("MGET", *map(self._keys.head, some))
                pairs = zip(some, heads, strict=True)
                found += [self._record(key, head) for key, head in pairs if head is not None]
            return found

        return await self._call(read)

    def _record(self, key: str, head: bytes) -> SessionRecord:
        record = read_head(key, head)
        if record is None:
            raise damaged_session(key, repr(self), "the checksum of its head is wrong")
        return record

    async def purge(self) -> int:
        """See :meth:`Journal.purge`. Redis has removed their entries before."""
        self._writable()
        removed = 0
        while count := await self._count(scripts.PURGE, ""):
            removed += count
        return removed

    # For the base class

    def _open(self) -> None:
        check_server(self._server, self._keys, self.durability, readonly=self.readonly)

    def _take(self, lease: Lease, over: str | None) -> Holder | None:
        details = (lease.token, lease.owner.to_text(), _ms(lease.seconds), over or "")
        answer = self._run(scripts.TAKE, lease.session, *details)
        return _holder(answer) if answer[0] == b"held" else None

    def _give(self, lease: Lease) -> None:
        self._run(scripts.RELEASE, lease.session, lease.token)

    def _renew(self, leases: Collection[Lease]) -> Collection[str]:
        return [lease.token for lease in leases if not self._renewed(lease)]

    def _renewed(self, lease: Lease) -> bool:
        answer = self._run(scripts.RENEW, lease.session, lease.token, _ms(lease.seconds))
        return bool(answer[0] == b"ok")

    def _disconnect(self) -> None:
        self._server.close()

    def same_as(self, other: Journal) -> bool:
        """See :meth:`Journal.same_as`; a server with two names is taken for two."""
        return isinstance(other, RedisJournal) and repr(self) == repr(other)

    # Private

    async def _count(self, script: scripts.Script, session: str, *args: str) -> int:
        """Run a script in a thread; return the number that it answers."""
        return int(await self._call(lambda: self._run(script, session, *args)[1], session))

    def _run(self, script: scripts.Script, session: str, *args: str | bytes | int) -> Any:
        answer = self._server.run(script, self._keys.of(session), session, *args)
        self._check(session, answer)
        return answer

    def _writable(self, session: str = "") -> str:
        """Check that a session may be written to; return its key."""
        self._check_writable()
        return checked_session(session)

    def _check(self, session: str, answer: Any) -> None:
        if answer[0] == b"damaged":
            raise damaged_session(session, repr(self), answer[1].decode())


def _holder(answer: Any) -> Holder:
    _, token, owner, left = answer
    return Holder(Owner.from_text(owner.decode(errors="replace")), token.decode(), left / 1000)


def _numbers(seqs: Collection[int]) -> str:
    return " ".join(str(seq) for seq in checked_seqs(seqs) if 0 < seq < HIGHEST)


def _ms(seconds: float) -> int:
    return max(1, round(seconds * 1000))


def _now() -> int:
    return int(time.time() * 1000)
