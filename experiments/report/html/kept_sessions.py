"""The sessions of an experiment's cases, as they were kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from agent_brain.experiments.case import CaseResult
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.sessions.timeline import Part, split_parts
from agent_brain.memories.store.events import RECORDED_CALL
from agent_brain.memories.store.session import session_key
from agent_brain.memories.trace.chunks import ChunkReader
from agent_brain.memories.trace.recorded_call import RecordedCall


@dataclass(frozen=True, slots=True)
class KeptSession:
    """A session of a case.

    Attributes:
        name: Its name.
        parts: Its steps, and what is before and after them.
        calls: Its calls of models and tools, in order.
    """

    name: str
    parts: Sequence[Part]
    calls: Sequence[RecordedCall]

    def calls_of(self, part: Part) -> list[RecordedCall]:
        """Return the model calls that were made in a part of the session."""
        numbers = {entry.seq for entry in part.entries if entry.kind == RECORDED_CALL}
        return [c for c in self.calls if c.number in numbers and c.action is None]


class KeptRun(NamedTuple):
    """A run of a session.

    Attributes:
        run_id: The run.
        parts: Its steps.
        calls: Its calls of models and tools.
    """

    run_id: str
    parts: Sequence[Part]
    calls: Sequence[RecordedCall]


def last_run(sessions: Sequence[KeptSession]) -> KeptRun | None:
    """Return the run that was begun last; None if no beginning of a run is kept."""
    begun = [
        (step.time, session, step.run_id)
        for session in sessions
        for part in session.parts
        if part.begins_run and (step := part.step) is not None and step.time and step.run_id
    ]
    if not begun:
        return None
    _, session, run = max(begun, key=lambda found: found[0])
    parts = [part for part in session.parts if part.step is not None and part.step.run_id == run]
    return KeptRun(run, parts, [call for call in session.calls if call.run_id == run])


async def read_sessions(journal: Journal, case: CaseResult) -> list[KeptSession]:
    """Return the sessions of a case; empty if they are not kept."""
    found = []
    for name in case.sessions:
        entries = await journal.read(session_key(name, case.id), history=True)
        parts, calls = [*split_parts(entries)], [*ChunkReader().read(entries)]
        found.append(KeptSession(name, parts, calls))
    return [session for session in found if session.parts]
