"""Copy a session as of a step into a new one. Private."""

from __future__ import annotations

import sys
from typing import Any, cast

from agent_brain.cli.options import Options
from agent_brain.cli.screen import Screen
from agent_brain.cli.sessions.as_of import find_step
from agent_brain.cli.sessions.places import (
    describe,
    entries,
    find_session,
    how_to_continue,
    make_key,
    refuse_taken,
    use_journal,
)
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.sessions.copies import (
    read_branches,
    read_calls_after,
    step_place,
    write_copy,
)
from agent_brain.memories.sessions.history import copied_journal


def fork_session(options: Options, number: int, to: str, to_tenant: str | None) -> None:
    """Copy a session as of a step into a new one, whatever memory it is of."""
    tenant = options.tenant if to_tenant is None else to_tenant
    target = make_key(to, tenant)

    async def fork(journal: Journal) -> int:
        source = (await find_session(journal, options.session or "", options.tenant)).key
        await find_step(journal, source, number)
        copied = await copied_journal(journal, source, lambda entry: entry.seq <= number)
        found = await copied.read(source)
        place = step_place(cast("dict[str, Any]", found[-1].data))
        branches = await read_branches(journal, source, *place)
        if branches:
            found += await read_calls_after(journal, source, number)
        with refuse_taken(target, "--to"):
            await write_copy(journal, target, found, branches)
        return len(found)

    copied = use_journal(options, fork, write=True)
    screen = Screen(sys.stdout)
    screen.line(f"{describe(target)} has {entries(copied)}, up to step {number}. Continue with")
    screen.line(f"  {how_to_continue(options, to, tenant)}")
