"""The steps of a session that a journal has, and the entries as of one of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from agent_brain.memories.errors import MemoryUseError
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.journal.entry import Entry
from agent_brain.memories.journal.ram import RamJournal
from agent_brain.memories.store.session import entries_of


@dataclass(frozen=True, slots=True)
class SavedStep:
    """A step of a run that a journal has: a point to which a session can be taken back.

    Attributes:
        number: Identifies it in the session; it grows from step to step.
        time: When it was written (aware, UTC); None if the journal does not know.
        run_id: The run.
        step: How many steps the run had completed.
        state: The state that comes next, or that was the last one.
        status: ``"running"``, ``"waiting"`` for a person, or ``"ended"``.
        stop_reason: Why the run had stopped, if it had.
        spent: What the run had spent: tokens, cost, calls.
    """

    number: int
    time: datetime | None
    run_id: str | None
    step: int
    state: str | None
    status: str
    stop_reason: str | None
    spent: dict[str, Any]


class CopiedJournal(RamJournal):
    """A copy of a session's entries; memories treat it like the journal that it was copied from."""

    persistent = True


async def saved_steps(journal: Journal, key: str) -> list[SavedStep]:
    """Return the steps that a journal has of a session, in order."""
    return [step_of(entry) async for entry in entries_of(journal, key) if entry.kind == "step"]


def step_of(entry: Entry) -> SavedStep:
    """Return the step that an entry of kind ``"step"`` holds."""
    control = cast("dict[str, Any]", entry.data)
    return SavedStep(
        entry.seq,
        entry.time,
        control.get("run_id"),
        control.get("step", 0),
        control.get("state"),
        control.get("status", "idle"),
        control.get("stop_reason"),
        control.get("spent", {}),
    )


def no_step(session: str | None, number: int, steps: list[SavedStep]) -> MemoryUseError:
    """Return the error for a step that the journal does not have."""
    numbers = [step.number for step in steps]
    known = f"{numbers[0]} to {numbers[-1]}" if numbers else "none"
    if session is None:
        return MemoryUseError("A memory without a journal has no steps: give it journal=")
    return MemoryUseError(
        f"Session {session!r} has no step {number!r}. steps() lists those that are kept: {known}; "
        "how many are kept is set with history="
    )
