"""The sessions of a journal, and the steps of a session, as tables."""

from __future__ import annotations

from dataclasses import asdict

from agent_brain.cli.exit_codes import notify
from agent_brain.cli.options import Options
from agent_brain.cli.sessions.places import use_journal, use_session
from agent_brain.cli.sessions.tables import (
    how_long_ago,
    local_time,
    print_found,
    print_table,
    spent_text,
)
from agent_brain.memories.sessions.listing import SessionInfo, list_sessions
from agent_brain.memories.sessions.timeline import SavedStep, saved_steps


def show_sessions(options: Options, limit: int | None) -> None:
    """Print the sessions of the journal, those that were written to last first."""
    tenant = ... if options.tenant is None else options.tenant
    found = use_journal(options, lambda journal: list_sessions(journal, tenant=tenant, limit=limit))
    if print_found(options, [*map(asdict, found)], "There are no sessions"):
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
    found = use_session(options, lambda journal, record: saved_steps(journal, record.key))
    if print_found(options, [*map(asdict, found)], "No steps are kept"):
        return
    columns = ("number", "time", "run", "step", "state", "status", "spent")
    print_table(columns, map(_step_row, found), long="run")


def _step_row(step: SavedStep) -> tuple[str, ...]:
    status = step.status if step.stop_reason is None else f"{step.status}: {step.stop_reason}"
    about = local_time(step.time), step.run_id or "", str(step.step), step.state or ""
    return str(step.number), *about, status, spent_text(step.spent)
