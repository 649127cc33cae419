"""A journal in Redis."""

from __future__ import annotations

import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Collection,
    Mapping,
    Sequence,
)
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import anyio
import anyio.to_thread

from agent_brain.memories.errors import JournalError
from agent_brain.memories.journal.base import (
    PAGE,
    Journal,
    SessionRecord,
    conflict,
    damaged,
    held,
    lost,
)
from agent_brain.memories.journal.checks import (
    checked_after,
    checked_entries,
    checked_in_thread,
    checked_loaded,
    checked_seqs,
    checked_session,
    checked_size,
)
from agent_brain.memories.journal.entry import Entry, Rows, to_milliseconds
from agent_brain.memories.journal.lease import Heartbeat, Holder, Lease, Owner
from agent_brain.memories.journal.redis import scripts
from agent_brain.memories.journal.redis.entries import (
    ON_LOOP,
    ON_LOOP_BYTES,
    Columns,
    Page,
    in_thread_if_much,
    pack,
    read_head,
    weigh,
)
from agent_brain.memories.journal.redis.errors import damaged as damaged_session
from agent_brain.memories.journal.redis.errors import is_broken
from agent_brain.memories.journal.redis.keys import Keys, pattern
from agent_brain.memories.journal.redis.opening import check_durability, check_server
from agent_brain.memories.journal.redis.server import Server
from agent_brain.memories.journal.server_options import check_timeout, ttl_milliseconds
from agent_brain.tools.ids import new_id

if TYPE_CHECKING:
    from redis import Redis

T = TypeVar("T")
PAGE_BYTES = 1_000_000
STAGED = 5_000  # entries that load() sends at once
HEADS = 500  # that are read at once
HIGHEST = 2**53  # scores of sorted sets are exact below it


class RedisJournal(Journal):
    """A journal on a Redis server, for processes on several machines. On asyncio only.

    Needs the extra ``redis``. It connects at the first use, and again after a connection broke::

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

    has_history = True
    has_leases = True
    has_exchange = True

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
        self.readonly = readonly
        self._keys = Keys(prefix)
        self._server = Server(url, timeout)
        self._ttl = "" if kept is None else str(kept)
        self._is_open = False
        self._closed = False
        self._starts_after = 0  # where the last new session began, as the next one probably does
        self._heartbeat = Heartbeat(self._renew)
        self._leases: dict[str, Lease] = {}  # those that were asked for and not given back
        self._renewing: Redis | None = None  # used by the thread of the heartbeat alone

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
        entries = await checked_in_thread(entries, checked_entries)
        checked_seqs([] if expect is None else [expect])
        base = expect or self._starts_after
        while True:
            now = _now()
            text = await self._pack(session, entries, now, base)
            token, lasts = ("", 0) if lease is None else (lease.token, _ms(lease.seconds))
            limits = ("" if expect is None else expect, base, token, lasts)
            args = (*limits, now, self._ttl, text)
            try:
                answer = await self._run(scripts.APPEND, session, *args, "")
            except JournalError as error:
                if expect is None or not is_broken(error.__cause__):
                    raise
                answer = await self._run(scripts.APPEND, session, *args, "1")
            if answer[0] != b"again":
                break
            base = answer[1]
            if expect == 0:
                self._starts_after = base
        if answer[0] == b"lost" and lease is not None:
            raise lost(lease)
        if answer[0] == b"held":
            raise held(session, _holder(answer))
        if answer[0] == b"conflict":
            raise conflict(session, expect or 0, answer[1])
        return int(answer[1])

    async def read(self, session: str, after: int = 0, *, history: bool = False) -> list[Entry]:
        """See :meth:`Journal.read`."""
        return [e async for page in self.pages(session, after, history=history) for e in page]

    async def pages(
        self, session: str, after: int = 0, *, history: bool = False, size: int = PAGE
    ) -> AsyncGenerator[list[Entry], None]:
        """See :meth:`Journal.pages`. A page that would be long in bytes has fewer entries."""
        async for page in self._pages(session, after, size, Columns.entries, history=history):
            if page:
                yield page

    async def rows(self, session: str, after: int = 0, *, history: bool = False) -> Rows:
        """See :meth:`Journal.rows`."""
        rows = Rows(as_written=True)
        async for page in self._pages(session, after, PAGE, lambda page: page, history=history):
            page.add_to(rows)
        return rows

    async def _pages(
        self,
        session: str,
        after: int,
        size: int,
        make: Callable[[Columns], T],
        *,
        history: bool,
    ) -> AsyncIterator[T]:
        """Yield what ``make`` makes of each page; raise at the first damage."""
        checked_session(session)
        checked_after(after)
        checked_size(size)
        born: str | None = None
        while True:
            limits = (after, size, PAGE_BYTES, "1" if history else "")
            page = Page.of(await self._run(scripts.PAGE, session, *limits))
            if born not in (None, page.born):
                raise JournalError(
                    f"Session {session!r} in {self!r} was deleted while it was read: read it again"
                )
            born = page.born

            def work(page: Page = page, after: int = after) -> tuple[list[int], T]:
                found = page.read(session, after)
                return found.seqs, make(found)

            seqs, made = await in_thread_if_much(len(page.texts), page.size, work)
            yield made
            if len(seqs) < len(page.texts):
                text = page.texts[len(seqs)]
                raise damaged(session, await self._place(session, text), repr(self))
            if page.is_last:
                break
            after = seqs[-1]
        if page.problem:
            raise damaged_session(session, repr(self), page.problem)

    async def _place(self, session: str, text: bytes) -> int:
        """Return the number under which a damaged entry is stored."""
        _, entries, history, *_ = self._keys.of(session)
        for key in (entries, history):
            if (score := await self._server.ask("ZSCORE", key, text)) is not None:
                return int(float(score))
        return 0

    async def last(self, session: str) -> int:
        """See :meth:`Journal.last`."""
        return int((await self._run(scripts.LAST, checked_session(session)))[1])

    async def delete(
        self, session: str, seqs: Collection[int] | None = None, *, scrub: bool = True
    ) -> int:
        """See :meth:`Journal.delete`; the class says which copies remain."""
        self._writable(session)
        if seqs is None:
            return int((await self._run(scripts.DELETE_SESSION, session))[1])
        return int((await self._run(scripts.DELETE, session, _numbers(seqs)))[1])

    async def retire(self, session: str, seqs: Collection[int]) -> int:
        """See :meth:`Journal.retire`."""
        self._writable(session)
        return int((await self._run(scripts.RETIRE, session, _numbers(seqs)))[1])

    async def trim(self, session: str, before: int | None = None, *, scrub: bool = False) -> int:
        """See :meth:`Journal.trim`."""
        self._writable(session)
        checked_seqs([] if before is None else [before])
        limit = "+inf" if before is None else f"({before}"
        return int((await self._run(scripts.TRIM, session, limit))[1])

    async def load(self, session: str, entries: Sequence[Entry]) -> None:
        """See :meth:`Journal.load`. Long sessions are sent in parts, which become it at once."""
        self._writable(session)
        entries = await checked_in_thread(entries, checked_loaded)
        if found := await self.last(session):
            raise conflict(session, 0, found)
        if not entries:
            return
        keys = self._staging(session)
        try:
            sizes = await self._stage(keys, session, entries)
            answer = await self._server.run(scripts.LOAD, keys, session, *sizes, self._ttl)
        except BaseException:
            await self._unstage(keys[6:])
            raise
        self._check_loaded(session, answer)

    async def exchange(self, remove: Collection[str], add: Mapping[str, Sequence[Entry]]) -> None:
        """See :meth:`Journal.exchange`. What is added is sent in parts before."""
        going = [self._writable(key) for key in remove]
        coming = {
            self._writable(key): await checked_in_thread(some, checked_loaded)
            for key, some in add.items()
        }
        coming = {key: some for key, some in coming.items() if some}
        for key in coming.keys() - {*going}:
            if found := await self.last(key):
                raise conflict(key, 0, found)
        staging = {key: self._staging(key) for key in coming}
        keys = [*self._keys.of(""), *(name for key in going for name in self._keys.of(key)[:4])]
        args: list[str | int] = [self._ttl, len(going), *going]
        try:
            for key, some in coming.items():
                args += [key, *await self._stage(staging[key], key, some)]
                keys += [*staging[key][:4], *staging[key][6:]]
            answer = await self._server.run(scripts.EXCHANGE, keys, "", *args)
        except BaseException:
            await self._unstage([name for names in staging.values() for name in names[6:]])
            raise
        self._check_loaded(answer[2].decode() if len(answer) > 2 else "", answer)

    def _staging(self, session: str) -> list[str]:
        """Return the keys of a session, and two in which its entries are gathered."""
        token = new_id("load")
        return self._keys.of(session, f"{token}:entries", f"{token}:history")

    async def _stage(
        self, keys: Sequence[str], session: str, entries: Sequence[Entry]
    ) -> tuple[int, int, int, int, int]:
        """Send entries; return their last number, how many are live and retired, and the times."""
        parts = [[e for e in entries if not e.retired], [e for e in entries if e.retired]]
        times = [to_milliseconds(e.time) for e in entries if e.time] or [_now()]
        for key, part in zip(keys[6:], parts, strict=True):
            for start in range(0, len(part), STAGED):
                text = await self._pack(session, part[start : start + STAGED], _now())
                await self._server.run(scripts.STAGE, [*keys[:6], key], session, text)
        return entries[-1].seq, len(parts[0]), len(parts[1]), min(times), max(times)

    async def _unstage(self, keys: Sequence[str]) -> None:
        with suppress(JournalError):  # Redis removes them later then
            if keys:
                await self._server.ask("UNLINK", *keys)

    def _check_loaded(self, session: str, answer: Any) -> None:
        self._check(session, answer)
        if answer[0] == b"conflict":
            raise conflict(session, 0, answer[1])
        if answer[0] != b"ok":
            raise JournalError(f"Session {session!r} could not be sent to {self!r}: load it again")

    # Sessions

    async def sessions(self, prefix: str = "") -> list[str]:
        """See :meth:`Journal.sessions`."""
        checked_session(prefix)
        found: set[str] = set()
        cursor = b"0"
        while True:
            _, cursor, *keys = await self._run(scripts.LIST, "", cursor, pattern(prefix))
            found.update(key.decode(errors="replace") for key in keys)
            if cursor == b"0":
                return sorted(found)

    async def records(self, prefix: str = "") -> list[SessionRecord]:
        """See :meth:`Journal.records`."""
        keys = await self.sessions(prefix)
        found = []
        for start in range(0, len(keys), HEADS):
            some = keys[start : start + HEADS]
            heads = await self._server.ask("MGET", *map(self._keys.head, some))
            for key, head in zip(some, heads, strict=True):
                record = None if head is None else read_head(key, head)
                if record is not None:
                    found.append(record)
                elif head is not None:
                    raise damaged_session(key, repr(self), "the checksum of its head is wrong")
        return found

    async def purge(self) -> int:
        """See :meth:`Journal.purge`. Redis has removed their entries before."""
        self._writable()
        removed = 0
        while count := (await self._run(scripts.PURGE, ""))[1]:
            removed += count
        return removed

    # Leases

    async def release(self, lease: Lease) -> None:
        """See :meth:`Journal.release`."""
        self._heartbeat.remove(lease)
        await self._run(scripts.RELEASE, lease.session, lease.token)
        self._leases.pop(lease.token, None)

    async def _take_lease(self, lease: Lease, *, over: str | None = None) -> Holder | None:
        self._writable(lease.session)
        details = (lease.token, lease.owner.to_text(), _ms(lease.seconds), over or "")
        self._leases[lease.token] = lease
        try:
            answer = await self._run(scripts.TAKE, lease.session, *details)
        except JournalError:
            del self._leases[lease.token]
            raise
        except BaseException:  # cancelled, and nobody will give it back
            with anyio.CancelScope(shield=True), suppress(JournalError):
                await self.release(lease)
            raise
        if answer[0] == b"held":
            del self._leases[lease.token]
            return _holder(answer)
        if not self._closed:
            self._heartbeat.add(lease)
        if self._closed:  # meanwhile, perhaps by another thread: aclose() gives it back
            self._heartbeat.remove(lease)
            raise self._is_closed()
        return None

    def _renew(self, leases: Collection[Lease]) -> Collection[str]:
        if self._renewing is None:
            self._renewing = self._server.client()
        gone = []
        for lease in leases:
            keys = self._keys.of(lease.session)
            values = (lease.session, lease.token, _ms(lease.seconds))
            answer: Any = self._renewing.eval(scripts.RENEW.text, len(keys), *keys, *values)
            if answer[0] != b"ok":
                gone.append(lease.token)
        return gone

    # Life

    def same_as(self, other: Journal) -> bool:
        """See :meth:`Journal.same_as`; a server with two names is taken for two."""
        return isinstance(other, RedisJournal) and repr(self) == repr(other)

    async def aclose(self) -> None:
        """Give back all leases, and close the connections, when the running calls have ended.

        A closed journal cannot be used again.
        """
        if not self._closed:
            self._closed = True
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._stop)
                await self._server.settle()
                await self._release_all()
                await self._server.aclose()

    async def _release_all(self) -> None:
        mine = [lease for lease in self._leases.values() if lease.owner == Owner.here()]
        with suppress(JournalError):  # they end by themselves then
            for lease in mine:
                keys = self._keys.of(lease.session)
                await self._server.run(scripts.RELEASE, keys, lease.session, lease.token)
        self._leases.clear()

    def _stop(self) -> None:
        self._heartbeat.stop()
        if self._renewing is not None:
            self._renewing.close()

    async def _run(self, script: scripts.Script, session: str, *args: str | bytes | int) -> Any:
        if self._closed:
            raise self._is_closed()
        keys = self._keys.of(session)
        if not self._is_open:
            await check_server(self._server, self._keys, self.durability, readonly=self.readonly)
            self._is_open = True
        answer = await self._server.run(script, keys, session, *args)
        self._check(session, answer)
        return answer

    def _writable(self, session: str = "") -> str:
        """Check that a session may be written to; return its key.

        Raises:
            JournalError: The journal was opened for reading only.
        """
        if self.readonly:
            raise JournalError(f"{self!r} was opened with readonly=True")
        return checked_session(session)

    def _is_closed(self) -> JournalError:
        return JournalError(f"{self!r} is closed: make a new one")

    def _check(self, session: str, answer: Any) -> None:
        if answer[0] == b"damaged":
            raise damaged_session(session, repr(self), answer[1].decode())

    async def _pack(
        self, session: str, entries: Sequence[Entry], now: int, after: int | None = None
    ) -> bytes:
        size = weigh(entries, ON_LOOP_BYTES) if len(entries) <= ON_LOOP else 0
        return await in_thread_if_much(
            len(entries), size, lambda: pack(session, entries, now, after)
        )


def _holder(answer: Any) -> Holder:
    _, token, owner, left = answer
    return Holder(Owner.from_text(owner.decode(errors="replace")), token.decode(), left / 1000)


def _numbers(seqs: Collection[int]) -> str:
    return " ".join(str(seq) for seq in checked_seqs(seqs) if 0 < seq < HIGHEST)


def _ms(seconds: float) -> int:
    return max(1, round(seconds * 1000))


def _now() -> int:
    return int(time.time() * 1000)
