"""Remove a session. Private."""

from __future__ import annotations

from agent_brain.cli.exit_codes import ExitCode
from agent_brain.cli.keyboard import read_keyboard
from agent_brain.cli.options import Options
from agent_brain.cli.sessions.places import describe, entries, find_session, use_journal
from agent_brain.memories.journal.base import Journal, SessionRecord
from agent_brain.memories.store.session import delete_key
from agent_brain.serving.catalog import Catalog


def remove_session(options: Options, *, confirmed: bool) -> ExitCode:
    """Remove a session with all that belongs to it, if nobody uses it and the user agrees."""

    async def find(journal: Journal) -> SessionRecord:
        return await find_session(journal, options.session or "", options.tenant)

    async def remove(journal: Journal) -> SessionRecord:
        lease = await journal.acquire((await find(journal)).key)
        try:
            record = await find(journal)
            await delete_key(journal, record.key)
            await Catalog(journal).remove(options.tenant, options.session or "")
            return record
        finally:
            await journal.release(lease)

    if not confirmed and not _agrees(use_journal(options, find)):
        print("Nothing was removed")
        return ExitCode.FAILED
    record = use_journal(options, remove, write=True)
    print(f"Removed {describe(record.key)}: {entries(record.entries)}")
    return ExitCode.ANSWERED


def _agrees(record: SessionRecord) -> bool:
    what = f"{describe(record.key)} with {entries(record.entries)}"
    answer = read_keyboard(f"Remove {what}? There is no undo [y/N] ")
    return (answer or "").strip().casefold() in ("y", "yes")
