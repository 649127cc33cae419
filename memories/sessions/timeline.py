"""The steps of a session that a journal has, and what happened in each."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from agent_brain.memories.errors import MemoryUseError
from agent_brain.memories.journal.base import PAGE, Journal
from agent_brain.memories.journal.entry import Entry
from agent_brain.memories.journal.ram import RamJournal
from agent_brain.memories.message import Message
from agent_brain.memories.store.events import LASTING, MESSAGES
from agent_brain.memories.store.log import decode
from agent_brain.memories.store.session import entries_of

WINDOW = 8  # entries per step that are read at first, looking back


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


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a session: a step with what happened in it, or what is before or after the steps.

    Attributes:
        entries: What was written in it, in order.
        step: The step that it ends with; None if it is not one.
        before: The step before it; None if there is none.
        start: The state of the run when it began, as the entry of ``before`` has it.
    """

    entries: list[Entry]
    step: SavedStep | None
    before: SavedStep | None
    start: Mapping[str, Any] = field(default_factory=dict)

    @property
    def messages(self) -> list[Message]:
        """The messages of the part, also those that a rollback has removed."""
        return [message_of(entry) for entry in self.entries if entry.kind in MESSAGES]

    @property
    def undone(self) -> set[int]:
        """The sequence numbers of what rollbacks have removed."""
        found: set[int] = set()
        for rollback in self.entries:
            if rollback.kind != "rollback":
                continue
            data: Any = rollback.data
            found |= {
                entry.seq
                for entry in self.entries
                if data["to"] < entry.seq < rollback.seq and entry.kind not in LASTING
            }.difference(data["kept"])
        return found

    @property
    def begins_run(self) -> bool:
        """Whether a run begins with it."""
        step, before = self.step, self.before
        return step is not None and (before is None or before.run_id != step.run_id)

    @property
    def spent(self) -> dict[str, Any]:
        """What the step has spent."""
        step, before = self.step, self.before
        if step is None:
            return {}
        same_run = before is not None and before.run_id == step.run_id
        known = before.spent if before is not None and same_run else {}
        return {name: value - known.get(name, 0) for name, value in step.spent.items()}

    @property
    def control(self) -> dict[str, Any]:
        """The last state of the run that was written in the part, as far as its entry has it."""
        for entry in reversed(self.entries):
            data = cast("dict[str, Any]", entry.data)
            if entry.kind == "step":
                return data
            if entry.kind == "amend":
                return cast("dict[str, Any]", data["control"])
        return {}


async def read_parts(journal: Journal, key: str, *, after: int = 0) -> AsyncGenerator[Part, None]:
    """Yield the parts of a session: what is before the steps that are kept, each step, the rest.

    Who leaves it early closes it.

    Args:
        journal: The journal.
        key: The session's key.
        after: The number of a step: only what is after it.
    """
    entries: list[Entry] = []
    mark: Entry | None = None
    async with aclosing(entries_of(journal, key, max(after - 1, 0))) as walk:
        async for entry in walk:
            if entry.seq <= after:
                mark = entry if entry.kind == "step" else None
                continue
            entries.append(entry)
            if entry.kind == "step":
                for part in _parts(entries, mark):
                    yield part
                entries, mark = [], entry
    for part in _parts(entries, mark):
        yield part


async def read_last_parts(
    journal: Journal, key: str, limit: int, *, before: int | None = None
) -> tuple[list[Part], bool]:
    """Return the last parts of a session, and whether there are more before them.

    It reads from the end, however long the session is.

    Args:
        journal: The journal.
        key: The session's key.
        limit: The number of steps.
        before: The number of a step: only those before it. Default: all, and what is after them.
    """
    end = (await journal.last(key) if before is None else before - 1) + 1
    span = WINDOW * (limit + 1)
    while True:
        start = max(end - 1 - span, 0)
        entries = await _between(journal, key, start, end)
        steps = [at for at, entry in enumerate(entries) if entry.kind == "step"]
        if len(steps) > limit or start == 0:
            break
        span *= 4
    if before is not None:
        entries = entries[: steps[-1] + 1] if steps else []
    if len(steps) <= limit:
        return [*split_parts(entries)], False
    first = steps[-limit - 1]
    return [*split_parts(entries[first + 1 :], entries[first])], True


async def find_part(journal: Journal, key: str, number: int) -> Part | None:
    """Return the part that ends with the step of a number; None if the journal has none."""
    end = number + 1
    found, _ = await read_last_parts(journal, key, 1, before=end)
    part = found[-1] if found else None
    return part if part is not None and part.step and part.step.number == number else None


async def _between(journal: Journal, key: str, start: int, end: int) -> list[Entry]:
    """Return the entries with numbers above ``start`` and below ``end``."""
    found: list[Entry] = []
    size = min(max(end - start - 1, 1), PAGE)
    async with aclosing(entries_of(journal, key, start, size=size)) as entries:
        async for entry in entries:
            if entry.seq >= end:
                break
            found.append(entry)
    return found


def split_parts(entries: Iterable[Entry], mark: Entry | None = None) -> Iterator[Part]:
    """Yield the parts that entries consist of; ``mark`` is the step before them."""
    gathered: list[Entry] = []
    for entry in entries:
        gathered.append(entry)
        if entry.kind == "step":
            yield from _parts(gathered, mark)
            gathered, mark = [], entry
    yield from _parts(gathered, mark)


def _parts(entries: list[Entry], mark: Entry | None) -> Iterator[Part]:
    """Yield the part that ``entries`` are, and before it what is not of the first step."""
    if not entries:
        return
    before = None if mark is None else step_of(mark)
    start: Mapping[str, Any] = {} if mark is None else cast("dict[str, Any]", mark.data)
    last = entries[-1]
    if last.kind != "step":
        yield Part(entries, None, before, start)
        return
    step = step_of(last)
    if before is None:  # what precedes the first step that is kept, up to the goal of its run
        begins = step.step == 0 and step.status == "running"
        goals = [at for at, entry in enumerate(entries) if entry.kind == "goal"] if begins else []
        at = goals[-1] if goals else len(entries) - 1
        if at:
            yield Part(entries[:at], None, None)
        entries = entries[at:]
    yield Part(entries, step, before, start)


def message_of(entry: Entry) -> Message:
    """Return the message that an entry holds.

    Raises:
        JournalError: It holds none.
    """
    return decode(json.dumps(entry.data), entry.seq)
