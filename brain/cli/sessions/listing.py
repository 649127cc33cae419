"""The sessions of a journal, and the steps of a session, as tables. Private."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from agent_brain.cli.exit_codes import notify
from agent_brain.cli.options import Options
from agent_brain.cli.sanitize import one_line
from agent_brain.cli.sessions.places import find_session, use_journal
from agent_brain.cli.sessions.tables import (
    how_long_ago,
    local_time,
    print_table,
    spent_text,
)
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.sessions.history import SavedStep, saved_steps
from agent_brain.memories.sessions.listing import SessionInfo, list_sessions


def show_sessions(options: Options, limit: int | None) -> None:
    """Print the sessions of the journal, those that were written to last first."""

    async def find(journal: Journal) -> list[SessionInfo]:
        tenant = ... if options.tenant is None else options.tenant
        return await list_sessions(journal, tenant=tenant, limit=limit)

    found = use_journal(options, find)
    if options.as_json:
        _print_json(found)
        return
    if not found:
        notify("There are no sessions", kind="")
        return
    if any(info.status == "damaged" for info in found):
        notify("Save what is left of damaged sessions: agent-brain sessions salvage", kind="Note")
    columns = ("session", "tenant", "title", "status", "state", "updated", "", "entries")
    print_table(columns, map(_session_row, found), long="title")


def _session_row(info: SessionInfo) -> tuple[str, ...]:
    when = local_time(info.updated)[: len("2000-01-01 00:00")], how_long_ago(info.updated)
    status = "ended early" if info.status == "ended" and info.resumable else info.status
    about = info.session, info.tenant or "", info.title, status, info.state or ""
    return (*about, *when, f"{info.entries:,}")


def show_steps(options: Options) -> None:
    """Print the steps of a session."""

    async def find(journal: Journal) -> list[SavedStep]:
        record = await find_session(journal, options.session or "", options.tenant)
        return await saved_steps(journal, record.key)

    found = use_journal(options, find)
    if options.as_json:
        _print_json(found)
        return
    if not found:
        notify("No steps are kept", kind="")
        return
    columns = ("number", "time", "run", "step", "state", "status", "spent")
    print_table(columns, map(_step_row, found), long="run")


def _step_row(step: SavedStep) -> tuple[str, ...]:
    status = step.status if step.stop_reason is None else f"{step.status}: {step.stop_reason}"
    about = local_time(step.time), step.run_id or "", str(step.step), step.state or ""
    return str(step.number), *about, status, spent_text(step.spent)


def _print_json(found: list[Any]) -> None:
    for each in found:
        print(one_line(json.dumps(asdict(each), ensure_ascii=False, default=_as_text)))


def _as_text(value: Any) -> str:
    return str(value.isoformat())
