"""What is known of the turns of a session beside their messages.

A journal has it in its entries. Without one, and in copies of a session, what is known of earlier
turns is a value of the store; that of the current turn is in the control.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from typing import cast

from pydantic import JsonValue, TypeAdapter

from agent_brain.memories.control import Control
from agent_brain.memories.runs.counts import Spent

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

    def of_run(self, control: Control, ended: datetime | None = None) -> TurnNote:
        """Return the note with what a control says of the run."""
        return replace(
            self,
            run_id=control.run_id,
            stop_reason=control.stop_reason,
            steps=control.step,
            spent=replace(control.spent),
            ended=None if control.stop_reason is None else ended,
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
            notes[at] = note.of_run(control, note.ended)
    if goal_id is None or (notes and notes[-1].goal_id == goal_id):
        return notes
    current = TurnNote(goal_id)
    of_earlier = control.run_id in {note.run_id for note in notes}
    return [*notes, current if of_earlier else current.of_run(control)]


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
