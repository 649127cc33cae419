"""Copy what can be read of a damaged journal."""

from __future__ import annotations

from agent_brain.cli.exit_codes import ExitCode, UserError, notify
from agent_brain.cli.options import Options
from agent_brain.cli.sessions.places import describe, entries, is_session, open_place, run_async
from agent_brain.cli.sessions.tables import print_table
from agent_brain.memories.journal.salvage import Salvage, SalvagedSession, salvage


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
