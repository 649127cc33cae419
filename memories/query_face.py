"""The query face that built-in memories share: look up, tag, delete, forget, export, load."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from os import PathLike
from typing import Any, TypeAlias

from agent_brain.memories.base import Memory
from agent_brain.memories.changes import (
    Added,
    Change,
    Cleared,
    Kept,
    Removed,
    Tagged,
    told,
)
from agent_brain.memories.errors import MemoryUseError
from agent_brain.memories.expiry import as_duration
from agent_brain.memories.groups import newest, with_partners
from agent_brain.memories.journal.entry import Entry
from agent_brain.memories.message import Message, Role
from agent_brain.memories.portable import read_portable, write_portable
from agent_brain.memories.query import Names, Query, Where, Which, moment, names
from agent_brain.memories.record_core import RecordCore, concerns
from agent_brain.memories.snapshot import Snapshot

Loadable: TypeAlias = Snapshot | Mapping[str, Any] | Iterable[Message | Mapping[str, Any]] | None


class QueryFace(RecordCore):
    """What can be asked of a record, besides what every memory answers."""

    async def messages(
        self,
        last: int | None = None,
        *,
        role: Names | None = None,
        cause_by: Names | None = None,
        name: Names | None = None,
        sent_from: Names | None = None,
        tags: Names | None = None,
        without_tags: Names | None = None,
        text: str | None = None,
        where: Where | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> list[Message]:
        """Messages in order, the goals at their places: first filtered, then the ``last`` of them.

        They are what is stored, calls that have no results (yet) included; what a model may be
        sent is :meth:`context`.

        Args:
            last: At most this many, the newest; 0 and less is none, None is all. A call is not cut
                off from its results: whole groups count, and the newest one comes in any case.
            role: Of one of these roles.
            cause_by: Brought about by one of these.
            name: Said by one of these speakers.
            sent_from: Sent by one of these.
            tags: With at least one of these tags.
            without_tags: With none of these tags.
            text: Containing this text; case does not matter.
            where: A function of a message, or a dict of values that its metadata must have.
            since: Not older than this moment (aware).
            until: Older than this moment (aware).

        Raises:
            MemoryUseError: A filter that no message could fit, such as an unknown role.
        """
        if self._due is not None:
            await self._settle()
        query = Query(
            role=role, cause_by=cause_by, name=name, sent_from=sent_from, tags=tags,
            without_tags=without_tags, text=text, where=where, since=since, until=until,
        )  # fmt: skip
        fits = query.predicate()
        found = [message for message in self._candidates(role, cause_by) if fits(message)]
        return found if last is None else newest(found, last)

    def _candidates(self, role: Names | None, cause_by: Names | None) -> Iterable[Message]:
        """The shortest list at hand that has all messages of a role and a cause."""
        if isinstance(cause_by, str):
            return self._record.with_cause(cause_by)
        if isinstance(role, str):
            return self._record.with_role(Role(role))
        return self._record

    async def get(self, message_id: str) -> Message | None:
        """The message of that id, or None."""
        if self._due is not None:
            await self._settle()
        return self._record.get(message_id)

    async def count(self) -> int:
        """How many messages the memory holds."""
        if self._due is not None:
            await self._settle()
        return len(self._record)

    async def find_news(self, after: int = 0) -> tuple[list[Message], int]:
        """The messages that came after a cursor, and the cursor for the next time.

        Costs only as much as there is new. Each reader keeps a cursor of its own::

            news, cursor = await memory.find_news(cursor)
        """
        if self._due is not None:
            await self._settle()
        return self._record.after(after), max(after, self._record.last)

    async def tag(self, ids: Names, *tags: str) -> int:
        """Add ``tags`` to messages; unknown ids are passed over. Returns how many are here."""
        return await self._retag(ids, add=tags)

    async def untag(self, ids: Names, *tags: str) -> int:
        """Take ``tags`` from messages; otherwise as :meth:`tag`."""
        return await self._retag(ids, remove=tags)

    async def pin(self, ids: Names) -> int:
        """Pin messages, so that they leave neither a window nor a summary nor by ``ttl``.

        What has left already does not come back. Unknown ids are ignored.

        Returns:
            How many of the messages are here.
        """
        return await self._retag(ids, pinned=True)

    async def unpin(self, ids: Names) -> int:
        """Let messages leave like others again; otherwise as :meth:`pin`."""
        return await self._retag(ids, pinned=False)

    async def _retag(
        self,
        ids: Names,
        *,
        add: Sequence[str] = (),
        remove: Sequence[str] = (),
        pinned: bool | None = None,
    ) -> int:
        await self._settle()
        wanted = names("ids", ids)
        known = [message_id for message_id in wanted if message_id in self._record]
        if known:
            await self._change(lambda: [Tagged(known, [*names("tags", add)], remove, pinned)])
        return len(known)

    async def delete(self, ids: Names) -> int:
        """Take messages out of the record.

        A call takes its results along, and a result its call and the other results, so that no
        half of them stays. Unknown ids are passed over. A journal may keep the text for a while;
        :meth:`forget` removes that too.

        Returns:
            How many messages went, partners included.
        """
        await self._settle()
        wanted = names("ids", ids)
        going: list[str] = []

        def plan() -> list[Change]:
            going.extend(with_partners(wanted, self._record))
            return [Removed(going)] if going else []

        if any(message_id in self._record for message_id in wanted):
            await self._change(plan)
        return len(going)

    async def strike(self, ids: Iterable[str]) -> None:
        """Note that messages are gone, wherever they are: partners are not looked for."""
        gone = list(ids)
        await self._settle()
        await self._change(lambda: [Removed(gone)])

    async def clear(self, *, keep_pinned: bool = False) -> int:
        """Take out everything, the goal, summaries and lists included; physically, too.

        Args:
            keep_pinned: Keep pinned messages.

        Returns:
            How many messages went.
        """
        await self._settle()
        before = len(self._record)
        kept = [m for m in self._record if m.pinned and keep_pinned]
        await self._replace_all([Cleared(), *([Added(kept)] if kept else [])])
        return before - len(kept)

    async def _replace_all(self, changes: Sequence[Change]) -> None:
        """Carry out ``changes``, the first of which clears, and remove what was before them."""
        session = self._session
        if session is None:
            await self._change(lambda: changes)
            return
        before = [entry.seq for entry in await session.journal.read(session.key)]
        await self._change(lambda: changes)
        self._kept_at = {name: at for name, at in self._kept_at.items() if at not in before}
        if session.control_at in before:  # where the run stands goes on to count
            control = session.control
            session.forget_control()
            await session.append_control(control)
        await session.remove(before)

    async def forget(
        self,
        ids: Names | None = None,
        *,
        where: Where | None = None,
        older_than: datetime | timedelta | None = None,
        role: Names | None = None,
        name: Names | None = None,
        tags: Names | None = None,
        text: str | None = None,
    ) -> int:
        """Remove messages for good: from the record, its views and summaries, and the journal.

        Their partners go along as in :meth:`delete`. A summary that may tell of them is dropped. In
        a journal the text is overwritten, not only marked; what had left a window is found there,
        too. Nothing is spared: neither the goal nor pinned messages.

        Args:
            ids: These messages; the other arguments then narrow the choice.
            where: A function of a message, or a dict of values that its metadata must have.
            older_than: Made before this moment, or longer ago than this.
            role: Of one of these roles.
            name: Said by one of these speakers.
            tags: With at least one of these tags.
            text: Containing this text; case does not matter.

        Returns:
            How many messages were forgotten, partners included.

        Raises:
            MemoryUseError: Nothing says which messages; :meth:`clear` removes all.
        """
        which = Which(
            where=where, older_than=older_than, role=role, name=name, tags=tags, text=text
        )
        fits = forgettable(ids, which, self._clock())
        await self._settle()
        everything = await self.everything()
        chosen = [message.id for message in everything if fits(message)]
        unseen = self._may_miss(None if ids is None else names("ids", ids), everything)
        return await self._forget(with_partners(chosen, everything), unseen=unseen)

    async def _forget_ids(self, ids: Sequence[str]) -> int:
        everything = await self.everything()
        unseen = self._may_miss(frozenset(ids), everything)
        return await self._forget(with_partners(ids, everything), unseen=unseen)

    def _may_miss(self, ids: AbstractSet[str] | None, everything: Sequence[Message]) -> bool:
        """Whether messages may be meant that something kept tells of, and nothing holds any more.

        Args:
            ids: Only messages of these ids are meant; None if it can be any.
            everything: What is held.
        """
        return False

    def now(self) -> datetime:
        """The time by the memory's clock."""
        return self._clock()

    async def everything(self) -> list[Message]:
        """Every message in the record or still in the journal, with its tags."""
        session = self._session
        if session is None:
            return list(self._record)
        entries = await session.journal.read(session.key)
        return list(told(entries, removed=True).values())

    async def _forget(self, ids: Sequence[str], *, unseen: bool) -> int:
        """Remove messages for good.

        Args:
            ids: Which, partners included.
            unseen: Others may be meant too, which this memory has let go of already.
        """
        gone = set(ids)
        stale = [Kept(n, None) for n in self._tells_of(gone, unseen=unseen) if n in self._kept]
        changes: list[Change] = [*([Removed(ids, forgotten=True)] if ids else []), *stale]
        if changes:
            await self._change(lambda: changes)
        if gone:
            self._forget_last_run()
        session = self._session
        if session is not None and changes:
            if self.control.status in ("idle", "ended") and session.control_at:
                await session.append_control(self.control.model_dump(mode="json"))
            await self._scrub(gone)
        return len(gone)

    async def _scrub(self, gone: AbstractSet[str]) -> None:
        """Remove what the journal still has of forgotten messages and of outdated values."""
        session = self._session
        if session is not None:
            entries = await session.journal.read(session.key)
            standing = {session.control_at, *self._kept_at.values()}
            await session.remove(e.seq for e in entries if is_dead(e, gone, standing))

    def _forget_last_run(self) -> None:
        """Empty the registers that may quote messages, unless a run still needs them."""
        if self.control.status in ("idle", "ended"):
            self.control.output = None
            self.control.scratch = {}
            self.control.next_actions = []
            self.control.pending = {}
            self.control.asked = None

    def _tells_of(self, ids: set[str], *, unseen: bool) -> Iterable[str]:
        """The names under which something is kept that may tell of forgotten messages."""
        return ()

    async def export(self, path: str | PathLike[str] | None = None) -> dict[str, Any]:
        """All that the memory holds as plain data; also into a file, whole or not at all.

        Args:
            path: A JSON file to write; one that is there is replaced.
        """
        return await write_portable(await self.snapshot(), path)

    async def load(
        self,
        data: Loadable = None,
        *,
        path: str | PathLike[str] | None = None,
        text: str | None = None,
        merge: bool = False,
    ) -> int:
        """Hold what was exported. Nothing changes unless all of it can be read.

        Args:
            data: What :meth:`export` returned, or messages, or dicts of their fields.
            path: A file that :meth:`export` wrote, instead of ``data``.
            text: Such a file's content, instead of ``data``.
            merge: Add the messages that are not here yet, instead of replacing everything.

        Returns:
            How many messages the memory holds now.

        Raises:
            SnapshotError: It is nothing that was exported.
            MemoryUseError: Not exactly one of ``data``, ``path`` and ``text`` is given.
        """
        await load_into(self, data, path=path, text=text, merge=merge)
        return await self.count()


def forgettable(ids: Names | None, which: Which, now: datetime) -> Callable[[Message], bool]:
    """What ``forget()`` is asked for, as a function of a message.

    Raises:
        MemoryUseError: Nothing says which messages, or something makes no sense.
    """
    if ids is None and all(given is None for given in which.values()):
        raise MemoryUseError("Say which messages to forget; clear() removes all of them")
    older_than = which.get("older_than")
    until = now - older_than if isinstance(older_than, timedelta) else older_than
    if isinstance(older_than, timedelta):
        as_duration("older_than", older_than)
    elif until is not None:
        moment("older_than", until)
    fits = Query(
        where=which.get("where"),
        until=until,
        role=which.get("role"),
        name=which.get("name"),
        tags=which.get("tags"),
        text=which.get("text"),
    ).predicate()
    if ids is None:
        return fits
    wanted = names("ids", ids)
    return lambda message: message.id in wanted and fits(message)


async def load_into(
    memory: Memory,
    data: Loadable = None,
    *,
    path: str | PathLike[str] | None = None,
    text: str | None = None,
    merge: bool = False,
) -> None:
    """Have ``memory`` hold what was exported; see :meth:`QueryFace.load`."""
    snapshot = await read_portable(data, path=path, text=text)
    if merge:
        await memory.update(snapshot.messages)
        return
    if not isinstance(data, Snapshot | Mapping) and path is None and text is None:
        snapshot.control = memory.control
    await memory.restore(snapshot)


def is_dead(entry: Entry, forgotten: AbstractSet[str], standing: set[int]) -> bool:
    """Whether an entry may hold, or quote, something forgotten and is not needed any more."""
    if entry.kind in ("control", "view"):
        return entry.seq not in standing
    return concerns(entry, forgotten)
