"""What happened in a session, step by step. Private."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, cast

from agent_brain.cli.sessions.tables import added
from agent_brain.memories import Message
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.journal.entry import Entry
from agent_brain.memories.store.events import MESSAGES
from agent_brain.memories.store.history import SavedStep, step_of
from agent_brain.memories.store.kinds import STEPS
from agent_brain.memories.store.log import decode


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a session: a step with what happened in it, or what is before or after the steps.

    Attributes:
        entries: What was written in it, in order.
        step: The step that it ends with; None if it is not one.
        before: The step before it; None if there is none.
    """

    entries: list[Entry]
    step: SavedStep | None
    before: SavedStep | None

    @property
    def messages(self) -> list[Message]:
        """The messages of the part."""
        return [message_of(entry) for entry in self.entries if entry.kind in MESSAGES]

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
        return added(step.spent, before.spent if before is not None and same_run else {})

    @property
    def control(self) -> dict[str, Any]:
        """The last state of the run that was written in the part, as far as its entry has it."""
        for entry in reversed(self.entries):
            data = cast("dict[str, Any]", entry.data)
            if entry.kind in STEPS:
                return data
            if entry.kind == "amend":
                return cast("dict[str, Any]", data.get("control", data))
        return {}


async def read_parts(journal: Journal, key: str) -> AsyncIterator[Part]:
    """Yield the parts of a session: what is before the steps that are kept, each step, the rest."""
    entries: list[Entry] = []
    before: SavedStep | None = None
    async for page in journal.pages(key, history=True):
        for entry in page:
            entries.append(entry)
            if entry.kind not in STEPS:
                continue
            step = step_of(entry)
            if before is None:
                earlier, entries = _split_first(entries, step)
                if earlier:
                    yield Part(earlier, None, None)
            yield Part(entries, step, before)
            entries, before = [], step
    if entries:
        yield Part(entries, None, before)


def _split_first(entries: list[Entry], step: SavedStep) -> tuple[list[Entry], list[Entry]]:
    """Split what precedes the first step that is kept from what belongs to it: its run's goal."""
    begins = step.step == 0 and step.status == "running"
    goals = [at for at, entry in enumerate(entries) if entry.kind == "goal"] if begins else []
    at = goals[-1] if goals else len(entries) - 1
    return entries[:at], entries[at:]


def message_of(entry: Entry) -> Message:
    """Return the message that an entry holds.

    Raises:
        JournalError: It holds none.
    """
    return decode(json.dumps(entry.data), entry.seq)
