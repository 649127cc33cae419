"""A journal in Redis."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, Literal

from agent_brain.common.ids import new_id
from agent_brain.memories.errors import JournalError
from agent_brain.memories.journal.base import (
    Journal,
    SessionRecord,
    conflict,
    damaged,
    damaged_session,
    held_error,
    lost,
)
from agent_brain.memories.journal.checks import check_timeout, ttl_milliseconds
from agent_brain.memories.journal.entry import Line, Lines
from agent_brain.memories.journal.lease import Lease, Owner
from agent_brain.memories.journal.redis import scripts
from agent_brain.memories.journal.redis.entries import Keys, pack, pattern, read_head, unpack
from agent_brain.memories.journal.redis.server import Server, check_durability, check_server
from agent_brain.memories.journal.threaded import Change, ThreadedJournal

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
    with ``expect=``, which is recognised if it was done. Any other, and one without an answer in
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
        check_timeout("timeout", timeout)
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

    def same_as(self, other: Journal) -> bool:
        """See :meth:`Journal.same_as`; a server with two names is taken for two."""
        return isinstance(other, RedisJournal) and repr(self) == repr(other)

    def _open(self) -> None:
        check_server(self._server, self._keys, self.durability, readonly=self.readonly)

    def _disconnect(self) -> None:
        self._server.close()

    # Entries

    def _append(
        self, session: str, lines: Sequence[Line], expect: int | None, lease: Lease | None
    ) -> int:
        base = expect or self._starts_after
        while True:
            now = _now()
            text = pack(session, lines, now, base)
            token, lasts = ("", 0) if lease is None else (lease.token, _ms(lease.seconds))
            limits = ("" if expect is None else expect, base, token, lasts)
            answer = self._run(scripts.APPEND, session, *limits, now, self._ttl, text)
            if answer[0] == b"lost" and lease is not None:
                raise lost(lease)
            if answer[0] == b"held":
                raise held_error(_holder(session, answer[2]))
            if answer[0] == b"conflict":
                raise conflict(session, expect or 0, answer[2])
            if answer[0] == b"ok":
                return int(answer[1])
            base = answer[1]
            if expect == 0:
                self._starts_after = base

    def _pages(
        self, session: str, after: int, size: int, *, history: bool, whole: bool
    ) -> Iterator[Lines]:
        """Yield pages; one that would be long in bytes has fewer entries."""
        known: bytes | None = None
        while True:
            limits = (after, size, PAGE_BYTES, "1" if history else "")
            _, problem, born, is_last, retired, *texts = self._run(scripts.PAGE, session, *limits)
            if known not in (None, born):
                raise JournalError(
                    f"Session {session!r} in {self!r} was deleted while it was read: read it again"
                )
            known, lines = born, unpack(session, texts, retired, after)
            if lines:
                yield Lines(lines)
            if len(lines) < len(texts):
                number = self._number_of(session, texts[len(lines)])
                raise damaged(session, number, repr(self))
            if is_last:
                break
            after = lines[-1][0]
        if problem:
            raise damaged_session(session, repr(self), problem.decode())

    def _number_of(self, session: str, text: bytes) -> int:
        """Return the number under which a damaged entry is stored."""
        _, entries, history, *_ = self._keys.of(session)
        for key in (entries, history):
            if (score := self._server.ask("ZSCORE", key, text)) is not None:
                return int(float(score))
        return 0

    def _last(self, session: str) -> int:
        return int(self._run(scripts.LAST, session)[1])

    def _change(self, session: str, change: Change, seqs: Sequence[int], *, scrub: bool) -> int:
        if change == "clear":
            return int(self._run(scripts.DELETE_SESSION, session)[1])
        if change == "trim":
            numbers = "".join(f"({seq}" for seq in seqs) or "+inf"
        else:
            numbers = " ".join(str(seq) for seq in seqs if 0 < seq < HIGHEST)
        return int(self._run(scripts.CHANGE, session, change, numbers)[1])

    def _exchange(self, remove: Sequence[str], add: Mapping[str, Sequence[Line]]) -> None:
        """What is added is sent in parts before."""
        for key in add.keys() - {*remove}:
            if last := self._last(key):
                raise conflict(key, 0, last)
        staging = {key: self._staging(key) for key, lines in add.items() if lines}
        keys = [*self._keys.of(""), *(name for key in remove for name in self._keys.of(key)[:4])]
        args: list[str | int] = [self._ttl, len(remove), *remove]
        try:
            for key, names in staging.items():
                args += [key, *self._stage(names, key, add[key])]
                keys += [*names[:4], *names[6:]]
            outcome, *details = self._check(self._server.run(scripts.EXCHANGE, keys, "", *args))
            if outcome == b"conflict":
                raise conflict(details[0].decode(), 0, details[1])
            if outcome == b"unstaged":
                name = details[0].decode()
                raise JournalError(f"Session {name!r} could not be sent to {self!r}: load it again")
        except BaseException:
            with suppress(JournalError):  # Redis removes them later then
                if staging:
                    names_of = staging.values()
                    self._server.ask("UNLINK", *(name for names in names_of for name in names[6:]))
            raise

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

    # Sessions

    def _names(self, prefix: str) -> list[str]:
        found: set[str] = set()
        cursor = b""
        while cursor != b"0":
            _, cursor, *keys = self._run(scripts.LIST, "", cursor or b"0", pattern(prefix))
            found.update(key.decode(errors="replace") for key in keys)
        return sorted(found)

    def _records(self, prefix: str) -> list[SessionRecord]:
        keys = self._names(prefix)
        records: list[SessionRecord] = []
        for start in range(0, len(keys), HEADS):
            some = keys[start : start + HEADS]
            heads = self._server.ask("MGET", *map(self._keys.head, some))
            for key, head in zip(some, heads, strict=True):
                record = None if head is None else read_head(key, head)
                if record is not None:
                    records.append(record)
                elif head is not None:
                    raise damaged_session(key, repr(self), "the checksum of its head is wrong")
        return records

    def _purge(self) -> int:
        """See :meth:`Journal.purge`. Redis has removed their entries before."""
        removed = 0
        while count := int(self._run(scripts.PURGE, "")[1]):
            removed += count
        return removed

    # Leases

    def _take(self, lease: Lease, over: str | None) -> Lease | None:
        details = (lease.token, lease.owner.to_text(), _ms(lease.seconds), over or "")
        answer = self._run(scripts.TAKE, lease.session, *details)
        return _holder(lease.session, answer[2]) if answer[0] == b"held" else None

    def _give(self, lease: Lease) -> None:
        self._run(scripts.RENEW, lease.session, lease.token, 0)

    def _renew(self, leases: Collection[Lease]) -> Collection[str]:
        lost_tokens = []
        for lease in leases:
            details = (lease.token, _ms(lease.seconds))
            if self._run(scripts.RENEW, lease.session, *details)[0] != b"ok":
                lost_tokens.append(lease.token)
        return lost_tokens

    # Calls

    def _run(self, script: scripts.Script, session: str, *args: str | bytes | int) -> Any:
        return self._check(self._server.run(script, self._keys.of(session), session, *args))

    def _check(self, answer: Any) -> Any:
        if answer[0] == b"damaged":
            raise damaged_session(answer[1].decode(), repr(self), answer[2].decode())
        return answer


def _holder(session: str, details: Any) -> Lease:
    token, owner, left = details
    return Lease(
        session, Owner.from_text(owner.decode(errors="replace")), left / 1000, token.decode()
    )


def _ms(seconds: float) -> int:
    return max(1, round(seconds * 1000))


def _now() -> int:
    return int(time.time() * 1000)
