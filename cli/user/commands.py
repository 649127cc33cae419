"""The commands on what is known about a user, and their options."""

from __future__ import annotations

import click

from agent_brain.cli.options import (
    FROM_FILE,
    JOURNAL,
    JSON,
    TO_FILE,
    YES,
    argument,
    flag,
    named,
    option,
    runs,
)

PLACE = [
    *JOURNAL,
    named(
        "--tenant",
        "NAME",
        "The user: the tenant of the sessions; 'local' on a server without tokens.",
        required=True,
    ),
]
FACT = argument("fact_id", metavar="FACT")


@click.group()
def user() -> None:
    """Show, correct and forget what is known about a user.

    It is in the journal of the user's sessions: in a folder of the other commands (--folder) or in
    any journal (--journal). Exit codes: 0 done, 1 not confirmed, 2 trouble.
    """


@user.command("list")
@runs(
    "user.knowing:show_facts",
    *PLACE,
    flag("everything --all", "Facts that were replaced or have ended too."),
    JSON,
)
def list_command() -> None:
    """List what is known: current facts, the newest first, what others claim, and blocks."""


@user.command()
@runs("user.knowing:show_history", *PLACE, JSON, FACT)
def history() -> None:
    """Show FACT with those that it replaced and that replaced it, and their sources."""


@user.command()
@runs("user.knowing:correct_fact", *PLACE, FACT, argument("text"))
def correct() -> None:
    """Replace FACT by TEXT, as the user's word; the history keeps both."""


@user.command()
@runs(
    "user.knowing:forget_facts",
    *PLACE,
    option("--text", "TEXT", "All facts, blocks and messages that contain this text."),
    option("--slot", "NAME", "The facts of this slot, such as home, of all times."),
    option("--about", "NAME", "The facts about a person; 'user' is the user."),
    option("--conversation", "SESSION", "A session, and the facts that rest on it alone."),
    flag("--everything", "All facts, blocks and sessions of the user."),
    YES,
    argument("fact_id", metavar="[FACT]", required=False),
)
def forget() -> None:
    """Forget FACT, or what an option chooses, and what it rests on in all sessions of the user."""


@user.command()
@runs("user.knowing:export_facts", *PLACE, TO_FILE)
def export() -> None:
    """Write all that is known as JSON, for import: facts with sources, and blocks."""


@user.command("import")
@runs("user.knowing:import_facts", *PLACE, FROM_FILE)
def import_command() -> None:
    """Add what export wrote to FILE, or - for stdin, to what is known."""
