"""Remove a session, or forget a text in many."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import partial

from agent_brain.cli.exit_codes import ExitCode, UserError
from agent_brain.cli.keyboard import read_keyboard
from agent_brain.cli.options import Options
from agent_brain.cli.sessions.places import (
    describe,
    entries,
    find_session,
    use_journal,
    use_session,
)
from agent_brain.memories.journal.base import Journal, SessionRecord
from agent_brain.memories.sessions.forgetting import forget_in_sessions
from agent_brain.memories.store.session import delete_key
from agent_brain.serving.catalog import Catalog


def remove_session(options: Options, *, confirmed: bool) -> ExitCode:
    """Remove a session with all that belongs to it, if nobody uses it and the user agrees."""

    async def look(_: Journal, record: SessionRecord) -> SessionRecord:
        return record

    async def remove(journal: Journal, known: SessionRecord) -> SessionRecord:
        lease = await journal.acquire(known.key)
        try:
            record = await find_session(journal, options.session or "", options.tenant)
            await delete_key(journal, record.key)
            await Catalog(journal).remove(options.tenant, options.session or "")
            return record
        finally:
            await journal.release(lease)

    if not confirmed:
        known = use_session(options, look)
        if not agrees(f"Remove {describe(known.key)} with {entries(known.entries)}"):
            print("Nothing was removed")
            return ExitCode.FAILED
    record = use_session(options, remove, write=True)
    print(f"Removed {describe(record.key)}: {entries(record.entries)}")
    return ExitCode.ANSWERED


def forget_text(options: Options, text: str, *, confirmed: bool) -> ExitCode:
    """Forget a text in all sessions of a tenant, if the user agrees."""
    if not text.strip():
        raise UserError("The text is empty, which every message contains")
    whose = "nobody" if options.tenant is None else repr(options.tenant)

    use_journal(options, partial(check_tenant, tenant=options.tenant))

    async def forget(journal: Journal) -> int:
        return await forget_in_sessions(journal, tenant=options.tenant, text=text)

    if not confirmed and not agrees(f"Forget {text!r} in all sessions of {whose}"):
        print("Nothing was forgotten")
        return ExitCode.FAILED
    count = use_journal(options, forget, write=True)
    print(f"Forgotten in the sessions of {whose}: {count} message{'' if count == 1 else 's'}")
    return ExitCode.ANSWERED


async def check_tenant(journal: Journal, tenant: str | None) -> None:
    """Check that a journal has something of a tenant.

    Raises:
        UserError: It has not; the message names those of whom it has something.
    """
    known = set[str | None]()
    for key in await journal.sessions():
        with suppress(ValueError, RecursionError):  # a key that is not a memory's
            data = json.loads(key)
            names = data.get("session") if isinstance(data, dict) else data  # of a title
            if isinstance(names, list) and len(names) > 1:
                known.add(names[0])
    if tenant in known:
        return
    found = [*map(repr, sorted(name for name in known if name is not None)[:5])]
    found += ["nobody (without --tenant)"] if None in known else []
    whose = "nobody" if tenant is None else repr(tenant)
    there = f"; there are some of {', '.join(found)}" if found else ""
    raise UserError(f"There are no sessions of {whose}{there}")


def agrees(what: str) -> bool:
    """Ask the person; return whether the answer is yes."""
    answer = read_keyboard(f"{what}? There is no undo [y/N] ")
    return (answer or "").strip().casefold() in ("y", "yes")
