"""What a store knows of its turns: from values in RAM, or entries of its session."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeAlias

from pydantic import JsonValue

from agent_brain.memories.control import Control
from agent_brain.memories.journal.entry import Entry
from agent_brain.memories.message import Message, Role
from agent_brain.memories.runs.counts import SPENT, Spent
from agent_brain.memories.runs.turn_notes import (
    TURNS,
    TurnNote,
    added,
    as_value,
    from_value,
    with_current,
)
from agent_brain.memories.store.session import Session, entries_of
from agent_brain.memories.store.store import MessageStore

_Noted: TypeAlias = list[tuple[int, TurnNote]]


def note_turn(store: MessageStore, control: Control, goal: Message) -> None:
    """Note the turn that ends as one with ``goal`` begins, in a store without a journal."""
    if store.goal_id not in (None, goal.id):
        store.values[TURNS] = added(store.values.get(TURNS), store.goal_id, control)


async def turn_notes(store: MessageStore, control: Control) -> list[TurnNote]:
    """Return the notes of the turns of a store that has been read, the current one last.

    Args:
        store: The store.
        control: The state of the last run.
    """
    if store.shared:
        earlier = []
    elif store.session is None:
        earlier = from_value(store.values.get(TURNS))
    else:
        earlier = await _read_notes(store.session, store.session.last)
    return with_current(earlier, store.goal_id, control)


async def values_with_turns(
    store: MessageStore, control: Control, messages: Iterable[Message]
) -> dict[str, JsonValue]:
    """Return a copy of the values of a store, with what its journal has of earlier turns.

    Args:
        store: The store.
        control: The state of the last run.
        messages: The messages of the store, which show whether there may be such turns.
    """
    values, goal_id = copy.deepcopy(store.values), store.goal_id
    if store.session is not None and (
        store.evicted_upto or any(m.role is Role.USER and m.id != goal_id for m in messages)
    ):
        notes = await turn_notes(store, control)
        if earlier := [note for note in notes if note.goal_id != goal_id]:
            values[TURNS] = as_value(earlier)
    return values


async def _read_notes(session: Session, upto: int) -> list[TurnNote]:
    """Return the notes of the turns that the entries of a session tell, in order.

    Args:
        session: The session.
        upto: The number of the last entry that counts.
    """
    earlier = []
    if session.parent is not None:
        earlier = await _read_notes(session.parent, session.offset)
    reader = _Reader([(0, note) for note in earlier])
    async with aclosing(entries_of(session.journal, session.key)) as entries:
        async for entry in entries:
            if session.offset + entry.seq > upto:
                break
            reader.read(entry, session.offset + entry.seq)
    return reader.notes


class _Reader:
    """Reads entries in order; ``found`` has the notes, with the numbers of the goals' entries."""

    def __init__(self, found: _Noted) -> None:
        self.found = found

    @property
    def notes(self) -> list[TurnNote]:
        """The notes."""
        return [note for _, note in self.found]

    def read(self, entry: Entry, seq: int) -> None:
        """Take what an entry says."""
        data: Any = entry.data
        if entry.kind == "goal" and isinstance(data, str):
            self.found = [pair for pair in self.found if pair[1].goal_id != data]
            self.found.append((seq, TurnNote(data)))
        elif entry.kind == "step":
            self._note_run(data, entry.time)
        elif entry.kind == "clear":
            self.found = []
        elif entry.kind == "rollback":
            to, kept = data["to"], data["kept"]
            self.found = [pair for pair in self.found if pair[0] <= to or pair[0] in kept]
        elif entry.kind == "view" and data["name"] == TURNS:
            known = {note.goal_id for note in self.notes}
            copied = [note for note in from_value(data["value"]) if note.goal_id not in known]
            self.found = [*((0, note) for note in copied), *self.found]

    def _note_run(self, data: Mapping[str, Any], time: datetime | None) -> None:
        run_id = data.get("run_id")
        if run_id is None or not self.found:
            return
        places = [at for at, note in enumerate(self.notes) if note.run_id == run_id]
        at = places[0] if places else len(self.found) - 1
        seq, note = self.found[at]
        stop_reason, spent = data.get("stop_reason"), data.get("spent", {})
        told = replace(
            note,
            run_id=run_id,
            stop_reason=stop_reason,
            steps=data.get("step", 0),
            spent=Spent(**{name: value for name, value in spent.items() if name in SPENT}),
            ended=None if stop_reason is None else time,
        )
        self.found[at] = seq, told
