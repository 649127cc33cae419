"""What the branches of a run have counted, as the journal has it."""

from __future__ import annotations

from functools import reduce
from typing import cast

from agent_brain.memories.control import Control
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.runs.counts import Counts
from agent_brain.memories.store.events import RunChange, effective, read_change
from agent_brain.memories.store.kinds import RUN, checked
from agent_brain.memories.store.run_record import RunRecord
from agent_brain.memories.store.session import as_rows, below, branch_key, branch_place


async def read_branch_counts(journal: Journal, key: str, control: Control) -> dict[str, Counts]:
    """Return what each branch of the current step of a session has counted, by its name.

    Args:
        journal: The journal.
        key: The key of the session.
        control: Its registers.
    """
    found: dict[str, Counts] = {}
    place = branch_key(key, control.run_id or "", str(control.moves))
    for branch in await journal.sessions(below(place)):
        if len(branch_place(place, branch)) > 1:  # below a branch
            continue
        inner = await _read_control(journal, branch)
        if inner is not None and inner.branch and inner.run_id == control.run_id:
            found[inner.branch] = await _counts_of(journal, branch, inner)
    return found


async def _counts_of(journal: Journal, key: str, control: Control) -> Counts:
    """Return what a branch has counted, with what its own branches have stored since."""
    own = Counts(**control.spent.as_data(), step=control.step)
    inside = await read_branch_counts(journal, key, control)
    known = control.counted
    more = (counts.beyond(known.get(name, Counts())) for name, counts in inside.items())
    return reduce(Counts.plus, more, own)


async def _read_control(journal: Journal, key: str) -> Control | None:
    """Return the registers that a branch has stored; None if it has not begun."""
    record = RunRecord()
    for seq, kind, line in effective(checked(as_rows(await journal.rows(key)))):
        if kind in RUN:
            record.take(cast("RunChange", read_change(seq, kind, line)), seq)
    return Control.model_validate(record.whole()) if record.at else None
