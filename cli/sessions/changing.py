"""Copy, export, import and remove sessions, and forget a text in many."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO

from agent_brain.cli.exit_codes import ExitCode, UserError, notify, user_errors
from agent_brain.cli.keyboard import read_keyboard
from agent_brain.cli.options import Options
from agent_brain.cli.sanitize import one_line
from agent_brain.cli.screen import Screen
from agent_brain.cli.sessions import places
from agent_brain.cli.sessions.tables import print_table
from agent_brain.common.files import keep_database
from agent_brain.common.text import count_of
from agent_brain.memories.journal.base import Journal, SessionRecord
from agent_brain.memories.journal.salvage import SalvagedSession, salvage
from agent_brain.memories.journal.transfer import export_session, import_session
from agent_brain.memories.sessions.copies import copy_at
from agent_brain.memories.sessions.forgetting import forget_in_sessions
from agent_brain.memories.store.session import delete_key, read_session_key
from agent_brain.serving.catalog import Catalog


async def fork_session(options: Options, number: int, to: str, to_tenant: str | None) -> None:
    """Copy a session as of a step into a new one, whatever memory it is of."""
    tenant = options.tenant if to_tenant is None else to_tenant
    target = places.make_key(to, tenant)
    async with places.opened_session(options, write=True) as (journal, record):
        await places.find_step(journal, record.key, number)
        copied = await copy_at(journal, record.key, number)
        with places.refuse_taken(target, "--to"):
            await copied.write(journal, target)
    screen = Screen(sys.stdout)
    count = places.entries(len(copied.entries))
    screen.line(f"{places.describe(target)} has {count}, up to step {number}. Continue with")
    screen.line(f"  {places.how_to_continue(options, to, tenant)}")


async def salvage_journal(source: str, target: str, options: Options) -> ExitCode:
    """Copy of every session what stands before the damage; print what was copied and what not."""
    with user_errors():
        async with (
            places.open_place(source) as damaged,
            places.open_place(target, write=True, create=True) as whole,
        ):
            if whole.same_as(damaged):
                raise UserError("TARGET is SOURCE: give the place of another journal")
            found = await salvage(damaged, whole)
    print_table(("session", "copied", "lost"), map(_row, found.sessions), long="session")
    problems = [found.problem, *(each.problem for each in found.sessions)]
    for problem in filter(None, problems):
        notify(problem, kind="Note")
    return ExitCode.FAILED if any(problems) else ExitCode.ANSWERED


def _row(session: SalvagedSession) -> tuple[str, str, str]:
    name = (
        places.describe(session.key).removeprefix("session ")
        if places.is_session(session.key)
        else session.key
    )
    lost = f"all after entry {session.last}" if session.last else "all"
    return name, places.entries(session.entries), lost if session.problem else ""


async def export(options: Options, output: Path, form: str, run_id: str | None) -> None:
    """Write a session with its history and branches as lines of JSON; or a run as a test file."""
    if form != "journal":
        from agent_brain.cli.sessions.replaying import write_cassette, write_test

        if str(output) == "-":
            raise UserError(f"--as {form} writes a file: name it with -o")
        await (write_test if form == "test" else write_cassette)(options, run_id, output)
        return
    if run_id is not None:
        raise UserError("--run goes with --as test or --as cassette")
    async with places.opened_session(options) as (journal, record):
        with writing(output) as file:
            async for line in export_session(journal, record.key):
                file.write(f"{one_line(line)}\n")


@contextmanager
def writing(path: Path) -> Iterator[IO[str]]:
    """Yield a file that replaces the one at ``path`` when it is complete; stdout for ``-``."""
    if str(path) == "-":
        yield sys.stdout
        return
    try:
        keep_database(path)
        with NamedTemporaryFile(
            "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as file:
            try:
                yield file
                file.close()
                Path(file.name).replace(path)
            except BaseException:
                file.close()
                Path(file.name).unlink(missing_ok=True)
                raise
    except OSError as error:
        raise UserError(f"{str(path)!r} cannot be written: {error.strerror}") from error


async def import_file(options: Options, path: Path, name: str | None) -> None:
    """Write the session of an exported file to the journal."""
    async with places.opened(options, write=True, create=True) as journal:
        with reading(path) as file:
            first = file.readline()
            key = _key_of(first, name, options.tenant)
            with places.refuse_taken(key, "--as"):
                await import_session(journal, chain([first], file), key)
        record = await places.find_session(journal, *read_session_key(key))
    print(f"Imported {places.describe(record.key)}: {places.entries(record.entries)}")


@contextmanager
def reading(path: Path) -> Iterator[IO[str]]:
    """Yield the file at ``path``; stdin for ``-``."""
    if str(path) == "-":
        yield sys.stdin
        return
    try:
        with path.open(encoding="utf-8") as file:
            yield file
    except OSError as error:
        raise UserError(f"{str(path)!r} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{str(path)!r} is not an exported file: {error}") from error


def _key_of(first: str, name: str | None, tenant: str | None) -> str:
    """Return the key to import a session as.

    Raises:
        UserError: The first line, which has the key that it had, is wrong.
    """
    try:
        session, whose = read_session_key(json.loads(first)["session"])
    except (ValueError, TypeError, KeyError) as error:
        raise UserError("This is not an exported session: its first line is another") from error
    return places.make_key(session if name is None else name, whose if tenant is None else tenant)


def remove_session(options: Options, *, confirmed: bool) -> ExitCode:
    """Remove a session with all that belongs to it, if nobody uses it and the user agrees."""
    if not confirmed:
        known = asyncio.run(_look(options))
        if not agrees(f"Remove {places.describe(known.key)} with {places.entries(known.entries)}"):
            print("Nothing was removed")
            return ExitCode.FAILED
    record = asyncio.run(_remove(options))
    print(f"Removed {places.describe(record.key)}: {places.entries(record.entries)}")
    return ExitCode.ANSWERED


async def _look(options: Options) -> SessionRecord:
    async with places.opened_session(options) as (_, record):
        return record


async def _remove(options: Options) -> SessionRecord:
    async with places.opened_session(options, write=True) as (journal, known):
        lease = await journal.acquire(known.key)
        try:
            record = await places.find_session(journal, options.session or "", options.tenant)
            await delete_key(journal, record.key)
            await Catalog(journal).remove(options.tenant, options.session or "")
            return record
        finally:
            await journal.release(lease)


def forget_text(options: Options, text: str, *, confirmed: bool) -> ExitCode:
    """Forget a text in all sessions of a tenant, if the user agrees."""
    if not text.strip():
        raise UserError("The text is empty, which every message contains")
    whose = "nobody" if options.tenant is None else repr(options.tenant)
    asyncio.run(_look_for_tenant(options))
    if not confirmed and not agrees(f"Forget {text!r} in all sessions of {whose}"):
        print("Nothing was forgotten")
        return ExitCode.FAILED
    count = asyncio.run(_forget(options, text))
    print(f"Forgotten in the sessions of {whose}: {count_of(count, 'message')}")
    return ExitCode.ANSWERED


async def _look_for_tenant(options: Options) -> None:
    async with places.opened(options) as journal:
        await check_tenant(journal, options.tenant)


async def _forget(options: Options, text: str) -> int:
    async with places.opened(options, write=True) as journal:
        return await forget_in_sessions(journal, tenant=options.tenant, text=text)


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
