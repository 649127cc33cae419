"""The commands on sessions and their options."""

from __future__ import annotations

import click

from agent_brain.cli.options import (
    FROM_FILE,
    JOURNAL,
    JSON,
    NET,
    TENANT,
    TO_FILE,
    YES,
    Decorator,
    argument,
    choice,
    count,
    flag,
    named,
    option,
    runs,
    several,
)

FULL = flag("--full", "Shorten nothing.")
SESSION: list[Decorator] = [*JOURNAL, TENANT, argument("session")]


@click.group()
def sessions() -> None:
    """Look at stored sessions, copy, compare and remove them.

    They are in a folder of the other commands (--folder) or in any journal (--journal). A command
    that only reads changes nothing. Exit codes: 0 done, 1 see the command, 2 wrong usage.
    """


@sessions.command("list")
@runs(
    "sessions.showing:show_sessions",
    *JOURNAL,
    named("--tenant", "NAME", "Only the sessions of this tenant."),
    count("--limit", "N", "At most this many."),
    JSON,
)
def list_command() -> None:
    """List the sessions, those that were written to last first."""


@sessions.command()
@runs(
    "sessions.showing:show_session",
    *SESSION,
    count("number --step", "N", "Show the memory as of this step."),
    FULL,
    JSON,
)
def show() -> None:
    """Show what happened in SESSION step by step: what was said, calls, tokens and cost.

    With --step, show all messages as of then and the state of the run. A memory with a window or a
    summary shows a model less of them.
    """


@sessions.command()
@runs("sessions.showing:show_steps", *SESSION, JSON)
def steps() -> None:
    """List the steps of SESSION that are kept, to show, fork or compare it as of one."""


@sessions.command()
@runs(
    "sessions.changing:fork_session",
    *SESSION,
    option("number --step", "N", "The step.", type=click.IntRange(1), required=True),
    named("--to", "NAME", "The new session.", required=True),
    named("--to-tenant", "NAME", "Whose it is. Default: that of SESSION."),
)
def fork() -> None:
    """Copy SESSION as of a step into a new session, which can be resumed from there."""


@sessions.command()
@runs(
    "sessions.showing:diff_sessions",
    *JOURNAL,
    TENANT,
    FULL,
    argument("first", metavar="A[@STEP]"),
    argument("second", metavar="B[@STEP]"),
)
def diff() -> None:
    """Show where two sessions part, or one session at two steps: ann@12 ann@40.

    IDs, times, tokens and cost are not compared. Exit codes: 0 no difference, 1 a difference, 2
    trouble.
    """


RUN = named("run_id --run", "ID", "Only this run.")
REPLAY = [
    NET,
    option("--model -m", "NAME", "The model, if another one. Default: as it was recorded."),
    named(
        "--memory", "NAME", "The kind of the memory. Default: auto; messages for a net in a file."
    ),
    several(
        "tools --tool -t",
        "MODULE:FUNCTION",
        "A tool as it is now. Default: those that models were told of. Can be repeated.",
    ),
]


@sessions.command()
@runs(
    "sessions.showing:show_calls",
    *SESSION,
    count("number --step", "N", "Only those of this step."),
    RUN,
    FULL,
    JSON,
)
def calls() -> None:
    """Show what models were sent in SESSION, and what they returned.

    Model calls are recorded with --trace, or Brain(trace=True).
    """


@sessions.command()
@runs("sessions.replaying:replay_session", *SESSION, RUN, *REPLAY, JSON)
def replay() -> None:
    """Run the last run of SESSION again, with its recorded responses and results of tools.

    No model is asked and no tool runs. Shows where the net does something else now. Exit
    codes: 0 no difference, 1 a difference, 2 trouble.
    """


@sessions.command()
@runs("sessions.changing:remove_session", *SESSION, YES)
def rm() -> None:
    """Remove SESSION with its history, unless a process runs it.

    Exit codes: 0 removed, 1 not confirmed, 2 trouble.
    """


@sessions.command()
@runs(
    "sessions.changing:forget_text",
    *JOURNAL,
    named("--tenant", "NAME", "Whose sessions. Default: nobody's."),
    YES,
    argument("text"),
)
def forget() -> None:
    """Forget TEXT in all sessions of a tenant: messages, history, recorded calls, notes, titles.

    A message that contains it goes as a whole, case is ignored. Vectors are deleted when the memory
    is opened the next time. Exit codes: 0 done, 1 not confirmed, 2 trouble, as with a tenant that
    has no sessions.
    """


@sessions.command()
@runs(
    "sessions.changing:export",
    *SESSION,
    TO_FILE,
    choice(
        "--as form",
        ["journal", "test", "cassette"],
        "Lines of JSON for import; a pytest file; a cassette for agent_brain.testing.replay.",
    ),
    RUN,
    *REPLAY,
)
def export() -> None:
    """Write SESSION with its history as lines of JSON, for import; or a run of it as a test.

    A test and a cassette are made of the recorded model calls (--trace). The test needs the net.
    """


@sessions.command("import")
@runs(
    "sessions.changing:import_file",
    *JOURNAL,
    named("--tenant", "NAME", "Whose it becomes. Default: as it was exported."),
    named("name --as", "NAME", "Its new name. Default: as it was exported."),
    FROM_FILE,
)
def import_command() -> None:
    """Add the session that export wrote to FILE, or - for stdin, to the journal."""


@sessions.command()
@runs("sessions.changing:salvage_journal", argument("source"), argument("target"))
def salvage() -> None:
    """Copy what can be read of the damaged journal SOURCE to the journal TARGET.

    Both are places as for --journal. SOURCE is not changed. Of each session what stands before the
    damage is copied. Exit codes: 0 all of it was, 1 something is lost, 2 trouble.
    """
