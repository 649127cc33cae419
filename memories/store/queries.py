"""The query face that built-in memories share: look up, tag, delete, forget, export, load."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from os import PathLike
from typing import Any, TypeAlias, cast

from pydantic import JsonValue

from agent_brain.memories.base import Memory
from agent_brain.memories.control import Control
from agent_brain.memories.errors import MemoryUseError
from agent_brain.memories.message import Message, Role
from agent_brain.memories.snapshot import Snapshot
from agent_brain.memories.store.erasure import Gone, deleted, forgotten, strike, texts_of
from agent_brain.memories.store.events import (
    Added,
    Change,
    Checkpointed,
    Cleared,
    Kept,
    Removed,
    Tagged,
    told,
)
from agent_brain.memories.store.expiry import as_duration
from agent_brain.memories.store.export import read_portable, write_portable
from agent_brain.memories.store.filters import Names, Query, Where, Which, moment, names
from agent_brain.memories.store.store import RecordCore, is_dead
from agent_brain.memories.views.groups import newest, with_partners

NOTHING = Gone()
EXPIRED = Gone(for_good=True)  # a run that waits keeps what it needs

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

        Costs only as much as there is new. Each reader keeps a cursor of its own. After
        :meth:`restore` everything is new, as nobody can tell what was known of it::

            news, cursor = await memory.find_news(cursor)
        """
        if self._due is not None:
            await self._settle()
        if self._session is None and after > self._record.last:
            after = 0  # a cursor of another memory: better twice than not at all
        return self._record.after(after), max(after, self._record.last)

    async def tag(self, ids: Names, *tags: str) -> int:
        """Add ``tags`` to messages; unknown ids are passed over. Returns how many are here."""
        return await self._retag("tag()", ids, add=tags)

    async def untag(self, ids: Names, *tags: str) -> int:
        """Take ``tags`` from messages; otherwise as :meth:`tag`."""
        return await self._retag("untag()", ids, remove=tags)

    async def pin(self, ids: Names) -> int:
        """Pin messages, so that they leave neither a window nor a summary nor by ``ttl``.

        What has left already does not come back. Unknown ids are ignored.

        Returns:
            How many of the messages are here.
        """
        return await self._retag("pin()", ids, pinned=True)

    async def unpin(self, ids: Names) -> int:
        """Let messages leave like others again; otherwise as :meth:`pin`."""
        return await self._retag("unpin()", ids, pinned=False)

    async def _retag(
        self,
        method: str,
        ids: Names,
        *,
        add: Sequence[str] = (),
        remove: Sequence[str] = (),
        pinned: bool | None = None,
    ) -> int:
        await self._write(method)
        wanted = names("ids", ids)
        known = [message_id for message_id in wanted if message_id in self._record]
        if known:
            await self._change(lambda: [Tagged(known, [*names("tags", add)], remove, pinned)])
        return len(known)

    async def delete(self, ids: Names) -> int:
        """Take messages out of the record.

        A call takes its results along, and a result its call and the other results, so that no
        half of them stays. Unknown ids are ignored. A journal may keep the text for a while;
        :meth:`forget` removes that too. Calls that were not answered yet go with the message that
        asked for them: a run that waited for them ends.

        Returns:
            How many messages went, partners included.
        """
        await self._write("delete()")
        wanted = names("ids", ids)
        going: list[str] = []
        gone = Gone()

        def plan() -> list[Change]:
            nonlocal gone
            going.extend(with_partners(wanted, self._record))
            gone = deleted(m for m in map(self._record.get, going) if m is not None)
            return [Removed(going), *self._struck(gone)] if going else []

        if any(message_id in self._record for message_id in wanted):
            await self._change(plan, lambda: self._strike(gone))
        return len(going)

    async def strike(self, ids: Iterable[str], gone: Gone = NOTHING) -> None:
        """Note that messages are gone, wherever they are: partners are not looked for."""
        going = list(ids)
        await self._write("delete()")
        await self._change(
            lambda: [*([Removed(going)] if going else []), *self._struck(gone)],
            lambda: self._strike(gone),
        )

    async def erase(self, ids: Iterable[str], gone: Gone) -> None:
        """Remove messages for good, wherever they are: partners are not looked for."""
        going = list(ids)
        await self._write("forget()")
        unseen = self._may_miss(frozenset(going), await self.everything())
        await self._forget(going, unseen=unseen, gone=gone)

    @property
    def _live(self) -> bool:
        """Whether a run is going on over this memory now."""
        return self.busy or bool(self.control.branch)

    def _strike(self, gone: Gone) -> None:
        strike(self.control, gone, live=self._live)

    def _struck(self, gone: Gone) -> list[Change]:
        """What to record so that the last checkpoint does not hold what is gone either."""
        session = self._session
        registers = self._registers_without(gone)
        if session is None or registers is None or registers == session.control:
            return []
        running = cast("dict[str, JsonValue]", session.control)["status"] == "running"
        return [Checkpointed(registers, session.safe_at if running else None)]

    def _registers_without(self, gone: Gone) -> JsonValue:
        """The last checkpoint without what is gone; None if there is none."""
        session = self._session
        if session is None or not session.control_at:
            return None
        control = Control.model_validate(session.control)
        strike(control, gone, live=self._live)
        return control.model_dump(mode="json")

    async def clear(self, *, keep_pinned: bool = False) -> int:
        """Take out everything, the goal, summaries, lists and session notes; physically, too.

        A run that waits for a person ends.

        Args:
            keep_pinned: Keep pinned messages.

        Returns:
            How many messages went.
        """
        await self._write("clear()")
        before = len(self._record)
        kept = [m for m in self._record if m.pinned and keep_pinned]
        gone = forgotten((m for m in self._record if m not in kept), everything=True)
        registers = self._registers_without(gone)
        changes: list[Change] = [Cleared(), *([Added(kept)] if kept else [])]
        if registers is not None:  # where the run stands goes on to count
            changes.append(Checkpointed(registers))
        await self._replace_all(changes, lambda: self._strike(gone))
        return before - len(kept)

    async def _replace_all(self, changes: Sequence[Change], then: Callable[[], None]) -> None:
        """Carry out ``changes``, the first of which clears, and remove what was before them."""
        session = self._session
        if session is None:
            await self._change(lambda: changes, then)
            return
        before = [entry.seq for entry in await session.journal.read(session.key)]
        await self._change(lambda: changes, then)
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
        too. Nothing is spared: neither the goal nor pinned messages. The registers of a run that
        has ended are emptied; a run that waits ends if they hold a forgotten call or quote a
        forgotten message.

        Args:
            ids: These messages; the other arguments then narrow the choice.
            where: A function of a message, or a dict of values that its metadata must have.
            older_than: Made before this moment, or longer ago than this.
            role: Of one of these roles.
            name: Said by one of these speakers.
            tags: With at least one of these tags.
            text: Containing this text, also in the arguments of a call; case does not matter.

        Returns:
            How many messages were forgotten, partners included.

        Raises:
            MemoryUseError: Nothing says which messages; :meth:`clear` removes all.
        """
        which = Which(
            where=where, older_than=older_than, role=role, name=name, tags=tags, text=text
        )
        fits = forgettable(ids, which, self._clock())
        await self._write("forget()")
        everything = await self.everything()
        going = with_partners([message.id for message in everything if fits(message)], everything)
        unseen = self._may_miss(None if ids is None else names("ids", ids), everything)
        gone = forgotten((m for m in everything if m.id in {*going}), text)
        return await self._forget(going, unseen=unseen, gone=gone)

    async def _forget_ids(self, ids: Sequence[str]) -> int:
        everything = await self.everything()
        unseen = self._may_miss(frozenset(ids), everything)
        return await self._forget(with_partners(ids, everything), unseen=unseen, gone=EXPIRED)

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
        """Every message in the record, still in the journal, or held by a run, with its tags."""
        session = self._session
        if session is None:
            found = {message.id: message for message in self._record}
        else:
            found = told(await session.journal.read(session.key), removed=True)
        for call in self.control.pending.values():
            if call.result is not None:
                found.setdefault(call.result.id, call.result)
        return list(found.values())

    async def _forget(self, ids: Sequence[str], *, unseen: bool, gone: Gone) -> int:
        """Remove messages for good.

        Args:
            ids: Which, partners included.
            unseen: Others may be meant too, which this memory has let go of already.
            gone: What goes from the registers of a run.
        """
        forgotten_ids = set(ids)
        kept = [n for n in self._tells_of(forgotten_ids, unseen=unseen) if n in self._kept]
        changes: list[Change] = [
            *([Removed(ids, forgotten=True)] if ids else []),
            *(Kept(name, None) for name in kept),
            *self._struck(gone),
        ]
        await self._change(lambda: changes, lambda: self._strike(gone))
        session = self._session
        if session is not None and changes:
            await self._scrub(forgotten_ids)
        return len(forgotten_ids)

    async def _scrub(self, gone: AbstractSet[str]) -> None:
        """Remove what the journal still has of forgotten messages and of outdated values."""
        session = self._session
        if session is not None:
            entries = await session.journal.read(session.key)
            standing = {session.control_at, *self._kept_at.values()}
            await session.remove(e.seq for e in entries if is_dead(e, gone, standing))

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
    ).predicate()
    part = (which.get("text") or "").casefold()
    wanted = None if ids is None else names("ids", ids)
    return lambda message: (
        (wanted is None or message.id in wanted)
        and fits(message)
        and any(part in said.casefold() for said in texts_of(message))
    )


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
        snapshot.control = memory.control.model_copy(deep=True)  # of the session, not the run
        strike(snapshot.control, Gone(everything=True, for_good=True), live=False)
    await memory.restore(snapshot)
