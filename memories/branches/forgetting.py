"""Forgets messages in the branches of a run that waits or was interrupted. Private."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from agent_brain.memories.branches.kept import kept_branches
from agent_brain.memories.store.filters import Names

if TYPE_CHECKING:
    from agent_brain.memories.base import Memory
    from agent_brain.memories.control import Control
    from agent_brain.memories.stored import StoredMemory


async def forget_in_branches(
    memory: Memory, branches: Iterable[Any], ids: Names | None, which: dict[str, Any]
) -> int:
    """Forget messages in branches of ``memory`` and in those that it keeps in RAM.

    If a branch loses a call or a question that it waits with, or a copy of another memory loses
    anything, the run ends: it cannot continue without it, and must not begin again.

    Args:
        memory: The memory of the run.
        branches: The branches in its journal.
        ids: As for ``forget()``.
        which: The other arguments of ``forget()``.

    Returns:
        How many messages were forgotten.
    """
    if memory.busy:
        return 0
    count, ends = 0, False
    stored = (branch for branch in kept_branches(memory) if hasattr(branch, "forget"))
    kept = cast("list[StoredMemory]", [*stored])
    for branch in (*branches, *kept):
        before = _waiting(branch.control)
        found = await branch.forget(ids, **which)
        count += found
        lost = before - _waiting(branch.control) or branch.control.state is None
        ends = ends or bool(lost) or (bool(found) and not branch.control.branch)
    if ends and memory.control.status != "idle":
        memory.control.abort()
        await memory.checkpoint()
    return count


def _waiting(control: Control) -> set[str]:
    asked = control.human_requests
    return set() if asked is None else {*asked.approvals, *asked.questions}
