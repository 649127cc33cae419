"""Copy a session as of a step, or what can be read of a damaged journal."""

from __future__ import annotations

import sys

from agent_brain.cli.exit_codes import ExitCode, UserError, notify
from agent_brain.cli.options import Options
from agent_brain.cli.screen import Screen
from agent_brain.cli.sessions.places import (
    describe,
    entries,
    find_step,
    how_to_continue,
    is_session,
    make_key,
    open_place,
    refuse_taken,
    run_async,
    use_session,
)
from agent_brain.cli.sessions.tables import print_table
from agent_brain.memories.journal.base import Journal, SessionRecord
from agent_brain.memories.journal.salvage import Salvage, SalvagedSession, salvage
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


def salvage_journal(source: str, target: str, options: Options) -> ExitCode:
    """Copy of every session what stands before the damage; print what was copied and what not."""

    async def run() -> Salvage:
        async with (
            open_place(source) as damaged,
            open_place(target, write=True, create=True) as whole,
        ):
            if whole.same_as(damaged):
                raise UserError("TARGET is SOURCE: give the place of another journal")
            return await salvage(damaged, whole)

    found = run_async(run)
    print_table(("session", "copied", "lost"), map(_row, found.sessions), long="session")
    problems = [found.problem, *(each.problem for each in found.sessions)]
    for problem in filter(None, problems):
        notify(problem, kind="Note")
    return ExitCode.FAILED if any(problems) else ExitCode.ANSWERED


def _row(session: SalvagedSession) -> tuple[str, str, str]:
    name = (
        describe(session.key).removeprefix("session ") if is_session(session.key) else session.key
    )
    lost = f"all after entry {session.last}" if session.last else "all"
    return name, entries(session.entries), lost if session.problem else ""
