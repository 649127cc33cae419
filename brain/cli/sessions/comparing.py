"""Compare two sessions, or a session at two steps. Private."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from agent_brain.cli.exit_codes import ExitCode
from agent_brain.cli.options import Options
from agent_brain.cli.sanitize import count
from agent_brain.cli.screen import Screen
from agent_brain.cli.sessions.as_of import memory_at
from agent_brain.cli.sessions.places import find_record, find_session, make_key, use_journal
from agent_brain.cli.sessions.showing import Printer
from agent_brain.memories import Message
from agent_brain.memories.journal.base import Journal

MEASURED = {"run_id", "spent", "fingerprints"}  # registers that differ from run to run


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two.

    Attributes:
        name: The session and the step, as the user wrote them.
        messages: All messages, in order.
        state: The registers of the run, and the values beside the messages, without IDs.
    """

    name: str
    messages: list[Message]
    state: dict[str, Any]

    def said(self) -> list[tuple[Any, ...]]:
        """Return what can be compared of each message: without IDs and times."""
        return [
            (m.role, m.content, m.is_error, [(c.name, c.args, c.unparsed) for c in m.tool_calls])
            for m in self.messages
        ]


def diff_sessions(options: Options, first: str, second: str, *, full: bool) -> ExitCode:
    """Print where two conversations part, both sides from there, and how their states differ."""

    async def read(journal: Journal) -> tuple[Side, Side]:
        return (
            await _side(journal, first, options.tenant),
            await _side(journal, second, options.tenant),
        )

    one, other = use_journal(options, read)
    common = _common(one.said(), other.said())
    rests = one.messages[common:], other.messages[common:]
    differing = [*_differing(one.state, other.state)]
    same = not any(rests) and not differing
    screen = Screen(sys.stdout)
    if same:
        screen.line(f"No difference: {count(common, 'message')}, and the same state")
        return ExitCode.ANSWERED
    screen.line(f"{count(common, 'message')} in common")
    for side, rest in zip((one, other), rests, strict=True):
        screen.line(f"{side.name}: {count(len(rest), 'message')} more", "bold")
        for message in rest:
            Printer(screen, full=full).message(message)
    if differing:
        screen.line("state", "bold")
    for name, values in differing:
        Printer(screen, full=full).line("", f"{name}: {' → '.join(values)}")
    return ExitCode.FAILED


async def _side(journal: Journal, name: str, tenant: str | None) -> Side:
    """Return what a name means: a session, or with ``@`` and a number, a session at a step."""
    session, separator, step = name.rpartition("@")
    number = None
    if (
        separator
        and step.isdecimal()
        and await find_record(journal, make_key(name, tenant)) is None
    ):
        number = int(step)
    else:
        session = name
    record = await find_session(journal, session, tenant)
    memory = await memory_at(journal, record.key, number)
    messages = await memory.messages()
    registers = memory.control.model_dump(mode="json", exclude=MEASURED)
    calls = [call.id for message in messages for call in message.tool_calls]
    calls += [call["id"] for call in registers["next_actions"]]
    values = (await memory.snapshot()).views
    return Side(name, messages, _without_ids(registers | values, calls))


def _without_ids(state: dict[str, Any], calls: Sequence[str]) -> dict[str, Any]:
    """Return ``state`` with the IDs of calls replaced by their places in the conversation."""
    text = json.dumps(state)
    for place, call in enumerate(dict.fromkeys(calls)):
        text = text.replace(json.dumps(call), f'"call {place + 1}"')
    found: dict[str, Any] = json.loads(text)
    return found


def _common(one: Sequence[Any], other: Sequence[Any]) -> int:
    """Return how many items both begin with."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _differing(one: dict[str, Any], other: dict[str, Any]) -> Iterator[tuple[str, tuple[str, str]]]:
    for name in {**one, **other}:
        values = one.get(name), other.get(name)
        if values[0] != values[1]:
            first, second = (json.dumps(value, ensure_ascii=False) for value in values)
            yield name, (first, second)
