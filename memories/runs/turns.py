"""The turns of a session, and the result of its last run, as a memory has recorded them.

What is known of turns beside their messages is in the entries of a journal. Without one, and in
copies of a session, that of earlier turns is a value of the store; that of the current one is in
the control.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from pydantic import JsonValue, TypeAdapter

from agent_brain.memories.control import SUSPENDED, Control
from agent_brain.memories.journal.entry import Entry
from agent_brain.memories.message import Message, Role
from agent_brain.memories.runs.counts import SPENT, Spent
from agent_brain.memories.runs.human_requests import open_requests
from agent_brain.memories.store.session import Session, entries_of
from agent_brain.tools.action import Action

if TYPE_CHECKING:
    from agent_brain.memories.store.store import MessageStore

TURNS = "earlier_turns"
"""The name of the value with the notes of earlier turns."""
MOST = 1000  # notes of earlier turns that are kept without a journal


@dataclass(frozen=True, slots=True)
class TurnNote:
    """What is known of a turn: its goal, and how its run went, if there was one.

    Attributes:
        goal_id: The ID of the goal.
        run_id: The ID of the run.
        stop_reason: Why it ended, or what it waits for.
        steps: How many steps it has made.
        spent: What it has spent.
        ended: When it ended, or began to wait.
    """

    goal_id: str
    run_id: str | None = None
    stop_reason: str | None = None
    steps: int = 0
    spent: Spent = field(default_factory=Spent)
    ended: datetime | None = None

    def of_run(self, run: Mapping[str, Any], ended: datetime | None = None) -> TurnNote:
        """Return the note with what registers say of the run: those of a control, or stored ones.

        Args:
            run: The registers by name.
            ended: When the run ended, if they say that it has.
        """
        spent, stop_reason = run.get("spent", {}), run.get("stop_reason")
        if not isinstance(spent, Spent):
            spent = Spent(**{name: value for name, value in spent.items() if name in SPENT})
        return replace(
            self,
            run_id=run["run_id"],
            stop_reason=stop_reason,
            steps=run.get("step", 0),
            spent=replace(spent),
            ended=None if stop_reason is None else ended,
        )


@cache
def _notes() -> TypeAdapter[list[TurnNote]]:
    """Return what reads and writes notes; it is made at the first use, as that takes long."""
    return TypeAdapter(list[TurnNote])


def with_current(
    earlier: Iterable[TurnNote], goal_id: str | None, control: Control
) -> list[TurnNote]:
    """Return the notes of all turns, the current one last.

    Args:
        earlier: Those of earlier turns, or of all.
        goal_id: The ID of the current goal.
        control: The state of the last run.
    """
    notes = list(earlier)
    for at, note in enumerate(notes):
        if note.run_id is not None and note.run_id == control.run_id:
            notes[at] = note.of_run(vars(control), note.ended)
    if goal_id is None or (notes and notes[-1].goal_id == goal_id):
        return notes
    current = TurnNote(goal_id)
    of_earlier = control.run_id in {note.run_id for note in notes}
    return [*notes, current if of_earlier else current.of_run(vars(control))]


def as_value(notes: Sequence[TurnNote]) -> JsonValue:
    """Return notes as a JSON value."""
    return cast("JsonValue", _notes().dump_python(list(notes[-MOST:]), mode="json"))


def added(value: JsonValue, goal_id: str | None, control: Control) -> JsonValue:
    """Return such a value with the note of a turn that ends, which was the current one."""
    notes = value if isinstance(value, list) else []
    note = with_current(from_value(notes[-1:]), goal_id, control)[-1]
    return [*notes[-MOST + 1 :], *cast("list[JsonValue]", as_value([note]))]


def from_value(value: JsonValue) -> list[TurnNote]:
    """Return the notes in a value; none if it is not one."""
    return _notes().validate_python(value) if isinstance(value, list) else []


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRecord:
    """A turn of a session: a goal, and what was recorded until the next one.

    Attributes:
        goal: The message that set the goal.
        messages: The goal and the other messages of the turn, in order, as far as the memory still
            has them.
        answer: The answer of the run; of earlier turns, the last text of the model for the reader.
        run_id: The ID of the run; None if there was none, or it is not known any more.
        stop_reason: Why the run ended, or what it waits for; None if it is in progress, was
            interrupted, or is not known.
        steps: How many steps the run has made.
        spent: What the run has spent: tokens, cost, calls, seconds.
        began: When the goal was created (aware).
        ended: When the run ended, or began to wait, by the journal (aware, UTC); None if it has
            not, or the session has no journal.
    """

    goal: Message
    messages: tuple[Message, ...]
    answer: str
    run_id: str | None = None
    stop_reason: str | None = None
    steps: int = 0
    spent: Spent
    began: datetime
    ended: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredResult:
    """The result of a run, as a memory has it; :meth:`Brain.stored_result` makes it a ``Result``.

    Attributes:
        answer: The text of the last state that said anything, without thoughts.
        output: The output of the net, if it makes one: JSON if a journal has it.
        output_class: The name of its class.
        stop_reason: Why the run ended, such as ``"done"``, ``"failed"`` or ``"approval"``.
        failure: The text of the error of a run that failed.
        steps: Number of steps.
        usage: What the run has spent: tokens, cost, calls, seconds.
        messages: The goal of its turn and what was recorded since, in order.
        run_id: The ID of the run.
        finish_reason: Why the model response that gave the answer ended, if the provider said so.
        wake_at: When a run that sleeps must be resumed (aware, UTC).
        approvals: The calls that wait for a person's decision.
        questions: The questions that wait for a person's answer, by their IDs.
    """

    answer: str
    output: Any
    stop_reason: str
    failure: str | None
    steps: int
    usage: Spent
    messages: list[Message]
    run_id: str
    finish_reason: str | None
    wake_at: datetime | None
    output_class: str | None = None
    approvals: Sequence[Action] = ()
    questions: Mapping[str, str] = field(default_factory=dict)


def turns_of(
    notes: Iterable[TurnNote], messages: Sequence[Message], control: Control
) -> list[TurnRecord]:
    """Return the turns that messages consist of.

    Args:
        notes: What is known of the turns; those whose goal is gone are left out.
        messages: The messages of the session, in order.
        control: The state of the last run.
    """
    places = {message.id: at for at, message in enumerate(messages)}
    begun = {places[note.goal_id]: note for note in notes if note.goal_id in places}
    starts = sorted(begun)
    return [
        _turn(begun[start], tuple(messages[start:end]), control)
        for start, end in pairwise([*starts, len(messages)])
    ]


def _turn(note: TurnNote, messages: tuple[Message, ...], control: Control) -> TurnRecord:
    is_last = note.run_id is not None and note.run_id == control.run_id
    kept = control.ended.get("") if is_last else None
    return TurnRecord(
        goal=messages[0],
        messages=messages,
        answer=answer_of(messages) if kept is None else kept,
        run_id=note.run_id,
        stop_reason=note.stop_reason,
        steps=note.steps,
        spent=replace(note.spent),
        began=messages[0].created_at,
        ended=note.ended,
    )


def result_of(turns: Sequence[TurnRecord], control: Control) -> StoredResult | None:
    """Return the result of the last run; None if none has ended, or its goal is gone."""
    turn = next((turn for turn in turns if turn.run_id == control.run_id), None)
    if turn is None or turn.run_id is None or control.stop_reason is None:
        return None
    if control.status != "ended" and control.stop_reason not in SUSPENDED:
        return None
    return StoredResult(
        answer=turn.answer,
        output=control.output,
        stop_reason=control.stop_reason,
        failure=control.failure,
        steps=control.step,
        usage=replace(control.spent),
        messages=[*turn.messages],
        run_id=turn.run_id,
        finish_reason=control.finish_reason,
        wake_at=control.wake_at,
        output_class=control.output_class,
        **open_requests(control.human_requests),
    )


def answer_of(messages: Sequence[Message]) -> str:
    """Return the last text for the reader among ``messages``; empty if there is none."""
    for message in reversed(messages):
        if is_answer(message):
            return message.content
    return ""


def is_answer(message: Message) -> bool:
    """Return whether ``message`` is text or pictures of the model for the reader, no thought."""
    return (
        message.role is Role.ASSISTANT
        and bool(message.content or message.attachments)
        and not message.tool_calls
        and not message.metadata.get("thought")
    )


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
        elif entry.kind == "step" and data.get("run_id") is not None and self.found:
            places = [at for at, note in enumerate(self.notes) if note.run_id == data["run_id"]]
            at = places[0] if places else len(self.found) - 1
            began, note = self.found[at]
            self.found[at] = began, note.of_run(data, entry.time)
        elif entry.kind == "clear":
            self.found = []
        elif entry.kind == "rollback":
            to, kept = data["to"], data["kept"]
            self.found = [pair for pair in self.found if pair[0] <= to or pair[0] in kept]
        elif entry.kind == "view" and data["name"] == TURNS:
            known = {note.goal_id for note in self.notes}
            copied = [note for note in from_value(data["value"]) if note.goal_id not in known]
            self.found = [*((0, note) for note in copied), *self.found]
