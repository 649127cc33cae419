"""Fills a store with the entries of its session. Private.

Views are notified of the newest messages one by one. Older ones are loaded as JSON text and decoded
when they are used; a window needs only those that never leave it.
"""

from __future__ import annotations

import json
import sys
from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

import anyio.to_thread

from agent_brain.memories.journal.entry import Row
from agent_brain.memories.message import Role
from agent_brain.memories.store.events import MESSAGES, GoalSet, read_change, read_changes
from agent_brain.memories.store.log import id_of

if TYPE_CHECKING:
    from agent_brain.memories.store.store import MessageStore

LOCAL = ("goal", "control", "amend")  # of the run of one memory; ignored in a shared session
SYSTEM = Role.SYSTEM
FREED = 5_000  # entries at once


async def replay_session(store: MessageStore, rows: Sequence[Row]) -> None:
    """Fill the log and the views with ``rows``; older messages are only loaded as text."""
    if store.shared:
        rows = [row for row in rows if row[1] not in LOCAL]
    tails = [view.tail for view in store.views]
    tail = None if None in tails else max((t for t in tails if t is not None), default=0)
    keeps_old = store.keeps_old
    marks = [row for row in rows if row[1] == "evicted"][-1:]
    staying = frozenset(json.loads(marks[0][2])["staying"]) if marks else frozenset()
    store.reading, store.resumes_at = True, marks[0][0] if marks else 0
    goal_id, stale, start = store.goal_id, store.stale, 0
    try:
        while True:
            store.reset()
            if tail is not None:
                start = await anyio.to_thread.run_sync(_load, store, rows, tail, staying)
            for seq, change in read_changes(rows[start:]):
                store.carry_out(change, seq)
            left = [view.left for view in store.views if view.left is not None]
            upto = min(left, default=None) if keeps_old else store.evicted_upto
            if not start or upto is None:
                break
            if upto >= rows[(start + len(rows)) // 2][0]:
                if not keeps_old:
                    store.evicted_upto = max(upto, rows[start][0] - 1)
                break
            tail = 4 * (tail or 1)  # the window was not full: it reaches further back
    finally:
        store.reading, store.resumes_at = False, 0
        store.stale = stale
    store.evicted_before, store.evicted = store.evicted, []
    if store.shared and goal_id in store.log:
        store.carry_out(GoalSet(goal_id), None)


def _load(store: MessageStore, rows: Sequence[Row], tail: int, held: frozenset[int]) -> int:
    """Load the older part of a session as text; a window needs only what never leaves it.

    Args:
        store: The store.
        rows: The entries.
        tail: How many messages the views must see one by one.
        held: The places of messages that had not left when the session was marked.

    Returns:
        The index of the entry that the tail begins with; 0 if nothing can be left out.
    """
    keeps_old = store.keeps_old
    start = _tail_start(store, rows, tail, keeps_old=keeps_old)
    if start and rows[start - 1][0] >= store.resumes_at:
        held = frozenset()  # what had not left then has been replaced by the tail
    shows = any(view.tail for view in store.views)
    named = _named(rows, start) if shows else set()
    batch: list[Row] = []
    staying: list[str] = []
    kept = 0
    last: dict[str, Row] = {}
    for row in rows[:start]:
        kind, line = row[1], row[2]
        if kind in MESSAGES:
            if store.removed_before:
                store.removed_before.pop(id_of(line), None)  # it was added again
            stays = shows and (
                '"pinned":true' in line
                or '"role":"system"' in line
                or row[0] in held
                or (named and id_of(line) in named)
            )
            if stays:
                staying.append(id_of(line))
            if stays or keeps_old:
                batch.append(row)
        elif kind in LOCAL:
            last["goal" if kind == "goal" else "control"] = row
        else:
            _load_messages(store, batch, staying[kept:])
            batch, kept = [], len(staying)
            evicting, store.evicting = store.evicting, store.evicting and kind != "tag"
            store.carry_out(read_change(*row), row[0])
            store.evicting = evicting or store.evicting
    _load_messages(store, batch, staying[kept:])
    for row in last.values():
        store.carry_out(read_change(*row), row[0])
    for view in store.views if named else ():
        view.update_pins()  # of the messages that were pinned: once, and not at each tag
    stayed = [m for m in map(store.log.get, staying) if m is not None]
    if any(m.pinned and (m.tool_calls or m.tool_call_id) for m in stayed):
        store.reset()  # their groups stay with them
        return 0
    if not keeps_old:
        going = [
            m.id
            for m in stayed
            if not (m.pinned or m.role == SYSTEM or m.id in named or store.log.place(m.id) in held)
        ]
        store.drop(going, outdated=False)
    return start


def _tail_start(store: MessageStore, rows: Sequence[Row], tail: int, *, keeps_old: bool) -> int:
    """Return the index of the entry that the tail begins with.

    A window needs the last message that asked for calls, the current turn, where no durable
    journal has it, and what came after the place in the value ``marker``, if that is set.
    """
    start, missing = len(rows), tail
    while start and missing:
        start -= 1
        missing -= rows[start][1] in MESSAGES
    if not start or not (tail or (store.in_ram and store.evicts)):
        return start
    if store.in_ram and not keeps_old and not store.shared:
        return 0  # what has left is removed from the journal
    if store.in_ram:
        goals = (i for i in range(len(rows) - 1, -1, -1) if rows[i][1] == "goal")
        start = min(start, next(goals, start))
    if store.marker is not None:
        upto = 0
        for _, kind, line in rows:
            if kind == "view" and store.marker in line:
                data = json.loads(line)
                if data["name"] == store.marker:
                    upto = (data["value"] or {"upto": 0})["upto"]
        start = min(start, bisect_right(rows, upto, key=lambda row: row[0]))
    for index, (_, _, line) in zip(range(start - 1, -1, -1), reversed(rows[:start]), strict=True):
        if '"role":"assistant"' in line:
            return index if '"tool_calls":' in line else start
    return start


def _load_messages(store: MessageStore, rows: list[Row], staying: list[str]) -> None:
    if not rows:
        return
    store.log.load(rows)
    expiring = [r for r in rows if '"expires_at":' in r[2]] if store.ttl is None else rows
    if expiring:
        store.watch(store.log[id_of(row[2])] for row in expiring)
    if staying:
        messages = [store.log[message_id] for message_id in staying]
        for view in store.views:
            view.add(messages)


def free(rows: list[Row]) -> None:
    """Free the entries in slices: one call for all would stop every thread meanwhile."""
    while rows:
        del rows[-FREED:]


def _named(rows: Sequence[Row], start: int) -> set[str]:
    """Return the IDs of messages that may count although they are before ``start``.

    Those that were pinned, and those that were made the goal when they were known already.
    """
    named: set[str] = set()
    first, before = rows[start][0] if start < len(rows) else sys.maxsize, "null"
    for seq, kind, line in [row for row in rows if row[1] not in MESSAGES]:
        if kind == "tag" and '"pinned"' in line:
            named.update(json.loads(line)["ids"])
        elif kind == "goal" and seq < first:
            before = line
        elif kind == "goal":
            named.add(json.loads(line))
    return {*named, json.loads(before)} - {None}
