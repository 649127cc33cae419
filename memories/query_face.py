"""The query face that built-in memories share: look up, tag, delete, forget, export, load."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from os import PathLike
from typing import Any, cast

from pydantic import JsonValue

from agent_brain.memories.changes import (
    Added,
    Change,
    Checkpointed,
    Cleared,
    Kept,
    Removed,
    Tagged,
    told,
)
from agent_brain.memories.control import Control
from agent_brain.memories.errors import MemoryUseError
from agent_brain.memories.expiry import as_duration
from agent_brain.memories.groups import with_partners
from agent_brain.memories.message import Message, Role
from agent_brain.memories.portable import read_portable, write_portable
from agent_brain.memories.query import Names, Query, Where, moment, names
from agent_brain.memories.record_core import RecordCore, is_dead
from agent_brain.memories.snapshot import Snapshot
from agent_brain.memories.striking import Gone, deleted, forgotten, strike, texts_of

EXPIRED = Gone(for_good=True)  # a run that waits keeps what it needs


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

        Args:
            last: At most this many, the newest; 0 and less is none, None is all.
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
        if last is None:
            return found
        return found[-last:] if last > 0 else []

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
        return await self._retag(ids, add=tags)

    async def untag(self, ids: Names, *tags: str) -> int:
        """Take ``tags`` from messages; otherwise as :meth:`tag`."""
        return await self._retag(ids, remove=tags)

    async def _retag(
        self, ids: Names, *, add: Sequence[str] = (), remove: Sequence[str] = ()
    ) -> int:
        await self._write("tag()" if add else "untag()")
        wanted = names("ids", ids)
        known = [message_id for message_id in wanted if message_id in self._record]
        if known:
            await self._change(lambda: [Tagged(known, [*names("tags", add)], remove)])
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
        if all(given is None for given in (ids, where, older_than, role, name, tags, text)):
            raise MemoryUseError("Say which messages to forget; clear() removes all of them")
        until = self._clock() - older_than if isinstance(older_than, timedelta) else older_than
        if isinstance(older_than, timedelta):
            as_duration("older_than", older_than)
        elif until is not None:
            moment("older_than", until)
        fits = Query(where=where, until=until, role=role, name=name, tags=tags).predicate()
        part = (text or "").casefold()
        wanted = None if ids is None else names("ids", ids)
        await self._write("forget()")
        everything = await self._everything()
        everything += [c.result for c in self.control.pending.values() if c.result is not None]
        chosen = [
            m.id
            for m in everything
            if (wanted is None or m.id in wanted)
            and fits(m)
            and any(part in said.casefold() for said in texts_of(m))
        ]
        unseen = wanted is None or any(message_id not in self._record for message_id in wanted)
        ids_gone = dict.fromkeys(with_partners(chosen, everything))
        gone = forgotten((m for m in everything if m.id in ids_gone), text)
        return await self._forget([*ids_gone], unseen=unseen, gone=gone)

    async def _forget_ids(self, ids: Sequence[str]) -> int:
        everything = await self._everything()
        unseen = any(message_id not in self._record for message_id in ids)
        return await self._forget(with_partners(ids, everything), unseen=unseen, gone=EXPIRED)

    async def _everything(self) -> list[Message]:
        """Every message in the record or still in the journal, with its tags."""
        session = self._session
        if session is None:
            return list(self._record)
        entries = await session.journal.read(session.key)
        return list(told(entries, removed=True).values())

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
            *(self._struck(gone) if ids or unseen else []),
        ]
        if ids or unseen:
            await self._change(lambda: changes, lambda: self._strike(gone))
        session = self._session
        if session is not None and changes:
            entries = await session.journal.read(session.key)
            standing = {session.control_at, *self._kept_at.values()}
            await session.remove(e.seq for e in entries if is_dead(e, forgotten_ids, standing))
        return len(forgotten_ids)

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
        data: Snapshot | Mapping[str, Any] | Iterable[Message | Mapping[str, Any]] | None = None,
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
        snapshot = await read_portable(data, path=path, text=text)
        if merge:
            await self.update(snapshot.messages)
        else:
            if not isinstance(data, Snapshot | Mapping) and path is None and text is None:
                snapshot.control = self.control.model_copy(deep=True)  # of the session, not the run
                strike(snapshot.control, Gone(everything=True, for_good=True), live=False)
            await self.restore(snapshot)
        return await self.count()
