"""The commands. Each imports what it needs when it is called. Private."""

from __future__ import annotations

from pathlib import Path

import click

from agent_brain.cli.exit_codes import ExitCode
from agent_brain.cli.options import JOURNAL, NET, TENANT, Options, check_name, option, with_options

JSON = option("as_json --json", None, "Write JSON, an object on a line.", is_flag=True)
FULL = option("--full", None, "Shorten nothing.", is_flag=True)
session_argument = click.argument("session")


@click.group()
def sessions() -> None:
    """Look at stored sessions, copy, compare and remove them.

    They are in a folder of the other commands (--folder) or in any journal (--journal). A command
    that only reads changes nothing. Exit codes: 0 done, 1 see the command, 2 wrong usage.
    """


@sessions.command("list")
@with_options(
    *JOURNAL,
    option("--tenant", "NAME", "Only the sessions of this tenant.", callback=check_name),
    option("--limit", "N", "At most so many.", type=click.IntRange(1)),
    JSON,
)
def list_command(limit: int | None, options: Options) -> None:
    """List the sessions, those that were written to last first."""
    from agent_brain.cli.sessions.listing import show_sessions

    show_sessions(options, limit)


@sessions.command()
@with_options(
    *JOURNAL,
    TENANT,
    option("number --step", "N", "Show the memory as of this step.", type=click.IntRange(1)),
    FULL,
    JSON,
)
@session_argument
def show(number: int | None, full: bool, options: Options) -> None:  # noqa: FBT001
    """Show what happened in SESSION step by step: what was said, calls, tokens and cost.

    With --step, show all messages as of then and the state of the run. A memory with a window or a
    summary shows a model less of them.
    """
    from agent_brain.cli.sessions.showing import show_session

    show_session(options, number, full=full)


@sessions.command()
@with_options(*JOURNAL, TENANT, JSON)
@session_argument
def steps(options: Options) -> None:
    """List the steps of SESSION that are kept, to show, fork or compare it as of one."""
    from agent_brain.cli.sessions.listing import show_steps

    show_steps(options)


@sessions.command()
@with_options(
    *JOURNAL,
    TENANT,
    option("number --step", "N", "The step.", type=click.IntRange(1), required=True),
    option("--to", "NAME", "The new session.", required=True, callback=check_name),
    option("--to-tenant", "NAME", "Whose it is. Default: that of SESSION.", callback=check_name),
)
@session_argument
def fork(number: int, to: str, to_tenant: str | None, options: Options) -> None:
    """Copy SESSION as of a step into a new session, which can be resumed from there."""
    from agent_brain.cli.sessions.forking import fork_session

    fork_session(options, number, to, to_tenant)


@sessions.command()
@with_options(*JOURNAL, TENANT, FULL)
@click.argument("first", metavar="A[@STEP]")
@click.argument("second", metavar="B[@STEP]")
def diff(first: str, second: str, full: bool, options: Options) -> ExitCode:  # noqa: FBT001
    """Show where two sessions part, or one session at two steps: ann@12 ann@40.

    IDs, times, tokens and cost are not compared. Exit codes: 0 no difference, 1 a difference, 2
    trouble.
    """
    from agent_brain.cli.sessions.comparing import diff_sessions

    return diff_sessions(options, first, second, full=full)


RUN = option("run_id --run", "ID", "Only this run.", callback=check_name)
REPLAY = [
    NET,
    option("--model -m", "NAME", "The model, if another one. Default: as it was recorded."),
    option("--memory", "NAME", "The kind of the memory. Default: messages.", callback=check_name),
    option(
        "tools --tool -t",
        "MODULE:FUNCTION",
        "A tool of today. Default: those that models were told of. Can be repeated.",
        multiple=True,
    ),
]


@sessions.command()
@with_options(
    *JOURNAL,
    TENANT,
    option("number --step", "N", "Only those of this step.", type=click.IntRange(1)),
    RUN,
    FULL,
    JSON,
)
@session_argument
def calls(number: int | None, run_id: str | None, full: bool, options: Options) -> None:  # noqa: FBT001
    """Show what models were sent in SESSION, and what they returned.

    Model calls are recorded with --trace, or Brain(trace=True).
    """
    from agent_brain.cli.sessions.calling import show_calls

    show_calls(options, number, run_id, full=full)


@sessions.command()
@with_options(*JOURNAL, TENANT, RUN, *REPLAY, JSON)
@session_argument
def replay(run_id: str | None, options: Options) -> ExitCode:
    """Run the last run of SESSION again, with its recorded responses and results of tools.

    No model is asked and no tool runs. Shows where the net of today does something else. Exit
    codes: 0 no difference, 1 a difference, 2 trouble.
    """
    from agent_brain.cli.sessions.replaying import replay_session

    return replay_session(options, run_id)


@sessions.command()
@with_options(*JOURNAL, TENANT, option("confirmed --yes -y", None, "Do not ask.", is_flag=True))
@session_argument
def rm(confirmed: bool, options: Options) -> ExitCode:  # noqa: FBT001
    """Remove SESSION with its history, unless a process runs it.

    Exit codes: 0 removed, 1 not confirmed, 2 trouble.
    """
    from agent_brain.cli.sessions.removal import remove_session

    return remove_session(options, confirmed=confirmed)


@sessions.command()
@with_options(
    *JOURNAL,
    option("--tenant", "NAME", "Whose sessions. Default: nobody's.", callback=check_name),
    option("confirmed --yes -y", None, "Do not ask.", is_flag=True),
)
@click.argument("text")
def forget(text: str, confirmed: bool, options: Options) -> ExitCode:  # noqa: FBT001
    """Forget TEXT in all sessions of a tenant: messages, history, recorded calls, notes, titles.

    A message that contains it goes as a whole, case is ignored. Vectors are deleted when the memory
    is opened the next time. Exit codes: 0 done, 1 not confirmed, 2 trouble.
    """
    from agent_brain.cli.sessions.removal import forget_text

    return forget_text(options, text, confirmed=confirmed)


@sessions.command()
@with_options(
    *JOURNAL,
    TENANT,
    option(
        "--output -o",
        "FILE",
        "Write to this file, which is replaced if it exists. Default: - for stdout.",
        type=click.Path(path_type=Path),
        default="-",
    ),
    click.option(
        "--as",
        "form",
        type=click.Choice(["journal", "test", "cassette"]),
        default="journal",
        show_default=True,
        help="Lines of JSON for import; a pytest file; a cassette for agent_brain.testing.replay.",
    ),
    RUN,
    *REPLAY,
)
@session_argument
def export(output: Path, form: str, run_id: str | None, options: Options) -> None:
    """Write SESSION with its history as lines of JSON, for import; or a run of it as a test.

    A test and a cassette are made of the recorded model calls (--trace). The test needs the net.
    """
    from agent_brain.cli.exit_codes import UserError

    if form == "journal":
        from agent_brain.cli.sessions.files import write_session

        if run_id is not None:
            raise UserError("--run goes with --as test or --as cassette")
        write_session(options, output)
        return
    from agent_brain.cli.sessions.replaying import write_cassette, write_test

    if str(output) == "-":
        raise UserError(f"--as {form} writes a file: name it with -o")
    (write_test if form == "test" else write_cassette)(options, run_id, output)


@sessions.command("import")
@with_options(
    *JOURNAL,
    option(
        "--tenant", "NAME", "Whose it becomes. Default: as it was exported.", callback=check_name
    ),
    option("name --as", "NAME", "Its new name. Default: as it was exported.", callback=check_name),
)
@click.argument("file", type=click.Path(path_type=Path))
def import_command(file: Path, name: str | None, options: Options) -> None:
    """Add the session that export wrote to FILE, or - for stdin, to the journal."""
    from agent_brain.cli.sessions.files import read_session

    read_session(options, file, name)


@sessions.command()
@with_options()
@click.argument("source")
@click.argument("target")
def salvage(source: str, target: str, options: Options) -> ExitCode:
    """Copy what can be read of the damaged journal SOURCE to the journal TARGET.

    Both are the path of a SQLite file, redis://… or postgresql://…. SOURCE is not changed. Of each
    session what stands before the damage is copied. Exit codes: 0 all of it was, 1 something is
    lost, 2 trouble.
    """
    from agent_brain.cli.sessions.rescue import salvage_journal

    return salvage_journal(source, target)
