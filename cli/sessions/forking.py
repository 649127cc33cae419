"""Copy a session as of a step into a new one."""

from __future__ import annotations

import sys

from agent_brain.cli.options import Options
from agent_brain.cli.screen import Screen
from agent_brain.cli.sessions.places import (
    describe,
    entries,
    find_step,
    how_to_continue,
    make_key,
    refuse_taken,
    use_session,
)
from agent_brain.memories.journal.base import Journal, SessionRecord
from agent_brain.memories.sessions.copies import copy_at


def fork_session(options: Options, number: int, to: str, to_tenant: str | None) -> None:
    """Copy a session as of a step into a new one, whatever memory it is of."""
    tenant = options.tenant if to_tenant is None else to_tenant
    target = make_key(to, tenant)

    async def fork(journal: Journal, record: SessionRecord) -> int:
        source = record.key
        await find_step(journal, source, number)
        copied = await copy_at(journal, source, number)
        with refuse_taken(target, "--to"):
            await copied.write(journal, target)
        return len(copied.entries)

    copied = use_session(options, fork, write=True)
    screen = Screen(sys.stdout)
    screen.line(f"{describe(target)} has {entries(copied)}, up to step {number}. Continue with")
    screen.line(f"  {how_to_continue(options, to, tenant)}")
