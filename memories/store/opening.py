"""Fills a store with the entries of its session.

Views are notified of the newest messages one by one. Older ones are loaded as JSON text and decoded
when they are used; a window needs only those that never leave it.
"""

from __future__ import annotations

import json
import sys
from bisect import bisect_left, bisect_right
from itertools import islice
from typing import TYPE_CHECKING, Any

from agent_brain.memories.journal.entry import Rows
from agent_brain.memories.message import Role
from agent_brain.memories.store.events import (
    MESSAGES,
    RUN,
    Change,
    GoalSet,
    read_change,
    read_changes,
)
from agent_brain.memories.store.log import CALLS, EXPIRES, PINNED, id_of, unreadable
from agent_brain.memories.store.many import in_thread_if_much

if TYPE_CHECKING:
    from agent_brain.memories.store.session import Session
    from agent_brain.memories.store.store import MessageStore

LOCAL = RUN | {"goal"}  # of the run of one memory; ignored in a shared session
SYSTEM = Role.SYSTEM
_ASSISTANT = '"role":"assistant"'
_SYSTEM = '"role":"system"'


async def replay_session(store: MessageStore, session: Session, rows: Rows) -> None:
    """Fill the log and the views with ``rows``; older messages are only loaded as text."""
    rows = rows.without(LOCAL if store.shared else ["beside"])
    tails = [view.tail for view in store.views]
    tail = None if None in tails else max((t for t in tails if t is not None), default=0)
    session.reading.resumes_at, held = _mark(rows)
    older = None
    if tail is not None:
        older = await in_thread_if_much(rows.lines, _Older, store, session, rows, held)
    session.reading.in_progress, keeps_old = True, store.keeps_old
    goal_id, start = store.goal_id, 0
    leaving, store.log.leaving = store.log.leaving, None  # it has left before
    try:
        while True:
            store.reset()
            if older is not None:
                start = await in_thread_if_much(rows.lines, older.load, tail or 0)
            recent = rows[start:]
            for seq, change in await in_thread_if_much(recent.lines, _decode, recent):
                await store.carry_out_parts(change, seq)
            left = [view.left for view in store.views if view.left is not None]
            upto = min(left, default=None) if keeps_old else store.evicted_upto
            if not start or upto is None:
                break
            if upto >= rows.seqs[(start + len(rows)) // 2]:
                if not keeps_old:
                    store.evicted_upto = max(upto, rows.seqs[start] - 1)
                break
            tail = 4 * (tail or 1)  # the window was not full: it reaches further back
    finally:
        session.reading.in_progress, session.reading.resumes_at = False, 0
        store.log.leaving = leaving
    session.reading.evicted, store.evicted = store.evicted, []
    if store.shared and goal_id in store.log:
        store.carry_out(GoalSet(goal_id), None)


def _decode(rows: Rows) -> list[tuple[int, Change]]:
    return [*read_changes(rows)]


def _mark(rows: Rows) -> tuple[int, frozenset[int]]:
    """Return the place of the last entry about what has left, and the places that had not left."""
    if "evicted" not in rows.kinds:
        return 0, frozenset()
    at = len(rows) - 1 - rows.kinds[::-1].index("evicted")
    return rows.seqs[at], frozenset(json.loads(rows.lines[at])["staying"])


class _Older:
    """Loads the older part of a session as text; a window needs only what never leaves it.

    Args:
        store: The store.
        session: Its session.
        rows: The entries.
        held: The places of messages that had not left when the session was marked.

    Attributes:
        others: The indexes of the entries that are not messages.
        messages: Those that are messages.
        ids: The ID of each message.

    Raises:
        JournalError: A message has no ID.
    """

    def __init__(
        self, store: MessageStore, session: Session, rows: Rows, held: frozenset[int]
    ) -> None:
        self.store, self.session, self.rows, self.held = store, session, rows, held
        kinds = {*rows.kinds}.difference(MESSAGES)
        self.others = [at for at, kind in enumerate(rows.kinds) if kind in kinds] if kinds else []
        self.messages = rows.without(kinds)
        self.ids = []
        for at, line in enumerate(self.messages.lines):
            try:
                self.ids.append(id_of(line))
            except ValueError as error:
                raise unreadable(self.messages.seqs[at], error) from error

    def load(self, tail: int) -> int:
        """Load what is before the ``tail`` messages that views must see one by one.

        Returns:
            The index of the entry that the tail begins with; 0 if nothing can be left out.
        """
        store, rows, kinds = self.store, self.rows, self.rows.kinds
        start, held = self._start(tail), self.held
        if start and rows.seqs[start - 1] >= self.session.reading.resumes_at:
            held = frozenset()  # what had not left then has been replaced by the tail
        shows = any(view.tail for view in store.views)
        named = self._named(start) if shows else set()
        staying = self._staying(start, named, held) if shows else []
        others = self.others[: bisect_left(self.others, start)]
        first = 0
        for at in [*others, start]:
            if at < start and kinds[at] in LOCAL:
                continue
            upto = self._count(at)
            within = slice(bisect_left(staying, first), bisect_left(staying, upto))
            self._load_messages(range(first, upto), staying[within])
            if at < start:
                evicting, store.evicting = store.evicting, store.evicting and kinds[at] != "tag"
                store.carry_out(read_change(*rows[at]), rows.seqs[at])
                store.evicting = evicting or store.evicting
            first = upto
        self._load_run([at for at in others if kinds[at] in LOCAL])
        for view in store.views if named else ():
            view.update_pins()  # of the messages that were pinned: once, and not at each tag
        stayed = [m for m in (store.log.get(self.ids[at]) for at in staying) if m is not None]
        if any(m.pinned and (m.tool_calls or m.tool_call_id) for m in stayed):
            store.reset()  # their groups stay with them
            return 0
        if not store.keeps_old:
            stays = named.union(m.id for m in stayed if m.pinned or m.role == SYSTEM)
            going = [m.id for m in stayed if m.id not in stays]
            store.drop([i for i in going if store.log.place(i) not in held], outdated=False)
        return start

    def _count(self, start: int) -> int:
        """Return how many messages there are before an entry."""
        seqs = self.rows.seqs
        return bisect_left(self.messages.seqs, seqs[start] if start < len(seqs) else sys.maxsize)

    def _load_run(self, entries: list[int]) -> None:
        """Carry out what still counts of the entries about goals and runs, given by indexes."""
        rows, kinds = self.rows, self.rows.kinds
        goals = [at for at in entries if kinds[at] == "goal"]
        step = max((at for at in entries if kinds[at] == "step"), default=-1)
        old = [at for at in entries if at < step and kinds[at] in ("step", "amend")]
        for at in sorted({*entries} - {*goals[:-1], *old}):
            self.store.carry_out(read_change(*rows[at]), rows.seqs[at])
        self.session.run.outdated += [rows.seqs[at] for at in old]

    def _start(self, tail: int) -> int:
        """Return the index of the entry that the tail begins with.

        A window needs the last message that asked for calls, the current turn, where no durable
        journal has it, and what came after the place in the value ``marker``, if that is set.
        """
        store, rows = self.store, self.rows
        seqs, lines = self.messages.seqs, self.messages.lines
        start = len(rows)
        if tail:
            start = bisect_left(rows.seqs, seqs[-tail]) if tail <= len(seqs) else 0
        if not start or not (tail or (store.in_ram and store.evicts)):
            return start
        if store.in_ram and not store.keeps_old and not store.shared:
            return 0  # what has left is removed from the journal
        if store.in_ram:
            goals = (at for at in reversed(self.others) if rows.kinds[at] == "goal")
            start = min(start, next(goals, start))
        if (marker := self.session.marker) is not None:
            upto = 0
            for at in self.others:
                if rows.kinds[at] == "view" and marker in rows.lines[at]:
                    data = json.loads(rows.lines[at])
                    if data["name"] == marker:
                        upto = (data["value"] or {"upto": 0})["upto"]
            start = min(start, bisect_right(rows.seqs, upto))
        for at in reversed(range(self._count(start))):
            if _ASSISTANT in lines[at]:
                return bisect_left(rows.seqs, seqs[at]) if '"tool_calls":' in lines[at] else start
        return start

    def _staying(self, start: int, named: set[str], held: frozenset[int]) -> list[int]:
        """Return the indexes of the messages before ``start`` that may never leave a window."""
        rows = zip(self.messages.seqs, self.messages.lines, self.ids, strict=True)
        return [
            at
            for at, (seq, line, message_id) in enumerate(islice(rows, self._count(start)))
            if PINNED in line or _SYSTEM in line or seq in held or message_id in named
        ]

    def _load_messages(self, span: range, staying: list[int]) -> None:
        """Load the messages of ``span``, or only the ``staying`` ones among them."""
        store, ids, lines = self.store, self.ids, self.messages.lines
        if removed := self.session.reading.removed:
            for message_id in ids[span.start : span.stop]:
                removed.pop(message_id, None)  # it was added again
        columns: list[list[Any]] = [ids, self.messages.seqs, lines]
        if store.keeps_old:
            columns = [column[span.start : span.stop] for column in columns]
        else:
            columns = [[column[at] for at in staying] for column in columns]
        loaded, places, texts = columns
        calls = [at for at, text in enumerate(texts) if CALLS in text]
        store.log.load(loaded, places, texts, calls)
        expiring = loaded
        if store.ttl is None:
            expiring = [i for i, text in zip(loaded, texts, strict=True) if EXPIRES in text]
        if expiring:
            store.watch(store.log[i] for i in expiring)
        if staying:
            told = [store.log[ids[at]] for at in staying]
            for view in store.views:
                view.add(told)

    def _named(self, start: int) -> set[str]:
        """Return the IDs of messages that may count although they are before ``start``.

        Those that were pinned, and those that were made the goal when they were known already.
        """
        named: set[str] = set()
        before = "null"
        for at in self.others:
            _, kind, line = self.rows[at]
            if kind == "tag" and '"pinned"' in line:
                named.update(json.loads(line)["ids"])
            elif kind == "goal" and at < start:
                before = line
            elif kind == "goal":
                named.add(json.loads(line))
        return {*named, json.loads(before)} - {None}
