"""Compare two sessions, or a session at two steps."""

from __future__ import annotations

import json
import sys

from agent_brain.cli.exit_codes import ExitCode
from agent_brain.cli.options import Options
from agent_brain.cli.screen import Screen
from agent_brain.cli.sessions.places import (
    find_record,
    find_session,
    make_key,
    memory_at,
    use_journal,
)
from agent_brain.cli.sessions.showing import Printer
from agent_brain.common.text import count_of
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.sessions.reading import Side, compare, side_of


def diff_sessions(options: Options, first: str, second: str, *, full: bool) -> ExitCode:
    """Print where two conversations part, both sides from there, and how their states differ."""

    async def read(journal: Journal) -> tuple[Side, Side]:
        return (
            await _side(journal, first, options.tenant),
            await _side(journal, second, options.tenant),
        )

    difference = compare(*use_journal(options, read))
    screen = Screen(sys.stdout)
    messages = count_of(difference.common, "message")
    if not difference:
        screen.line(f"No difference: {messages}, and the same state")
        return ExitCode.ANSWERED
    screen.line(f"{messages} in common")
    for name, rest in zip((first, second), difference.rests, strict=True):
        screen.line(f"{name}: {count_of(len(rest), 'message')} more", "bold")
        for message in rest:
            Printer(screen, full=full).message(message)
    if difference.state:
        screen.line("state", "bold")
    for name, values in difference.state:
        texts = (json.dumps(value, ensure_ascii=False) for value in values)
        Printer(screen, full=full).line("", f"{name}: {' → '.join(texts)}")
    return ExitCode.FAILED


async def _side(journal: Journal, name: str, tenant: str | None) -> Side:
    """Return what a name means: a session, or with ``@`` and a number, a session at a step."""
    session, number = name, None
    before, at, step = name.rpartition("@")
    if at and step.isdecimal() and await find_record(journal, make_key(name, tenant)) is None:
        session, number = before, int(step)
    record = await find_session(journal, session, tenant)
    return await side_of(await memory_at(journal, record.key, number))
