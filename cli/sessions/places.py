"""The journal and the session that the options name."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from difflib import get_close_matches
from pathlib import Path

import click
from click.core import ParameterSource

from agent_brain.cli.exit_codes import UserError, user_errors
from agent_brain.cli.options import Options
from agent_brain.common.text import count_of
from agent_brain.memories.errors import JournalConflictError
from agent_brain.memories.journal.base import Journal, SessionRecord
from agent_brain.memories.journal.opening import open_journal
from agent_brain.memories.sessions import reading
from agent_brain.memories.sessions.timeline import SavedStep, saved_steps
from agent_brain.memories.store.session import read_session_key, session_key
from agent_brain.memories.stored import StoredMemory

IN_FOLDER = ("memory.db", "journal.db")  # of a vector memory


@asynccontextmanager
async def opened(
    options: Options, *, write: bool = False, create: bool = False
) -> AsyncIterator[Journal]:
    """Open the journal that the options name; errors of this library become errors of the user.

    Args:
        options: The options.
        write: Whether to write; otherwise the journal is opened for reading only.
        create: Create the journal if it is missing.

    Raises:
        UserError: There is no journal, or it cannot be used as wanted.
    """
    place = find_place(options, create=create)
    with user_errors():
        async with open_place(place, write=write, create=create) as journal:
            yield journal


@asynccontextmanager
async def opened_session(
    options: Options, *, write: bool = False
) -> AsyncIterator[tuple[Journal, SessionRecord]]:
    """Open the journal with the session that the options name; see :func:`opened`.

    Raises:
        UserError: There is no such session.
    """
    async with opened(options, write=write) as journal:
        yield journal, await find_session(journal, options.session or "", options.tenant)


def open_place(place: str, *, write: bool = False, create: bool = False) -> Journal:
    """Return the journal at a place; a file is created only where that is wanted.

    Raises:
        UserError: There is no such file.
    """
    if not (create or is_url(place) or Path(place).exists()):
        raise UserError(f"There is no journal {place!r}")
    if Path(place).is_dir():
        raise UserError(f"{place!r} is a folder: name the file of a journal in it, or use --folder")
    with user_errors():
        return open_journal(place, readonly=not write)


def is_url(place: str) -> bool:
    """Return whether a place is a URL; it may contain a password."""
    return "://" in place


def find_place(options: Options, *, create: bool = False) -> str:
    """Return the path or the URL of the journal.

    Raises:
        UserError: None is named, or two.
    """
    folder, journal = options.folder, options.journal
    if folder is not None:
        source = click.get_current_context().get_parameter_source("journal")
        if journal is not None and source is not ParameterSource.ENVIRONMENT:
            raise UserError("Give --folder or --journal, not both")
        return str(_in_folder(folder, create=create))
    if journal is None:
        raise UserError("Where are the sessions? Give --folder or --journal")
    return journal


def _in_folder(folder: Path, *, create: bool) -> Path:
    found = [folder / name for name in IN_FOLDER if (folder / name).exists()]
    if len(found) > 1:
        names = " and ".join(IN_FOLDER)
        raise UserError(f"{str(folder)!r} has two journals, {names}: choose one with --journal")
    if found:
        return found[0]
    if not folder.is_dir() and not create:
        raise UserError(f"--folder {str(folder)!r}: there is no such folder")
    if not create:
        raise UserError(f"--folder {str(folder)!r} has no sessions: there is no {IN_FOLDER[0]}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--folder {str(folder)!r} cannot be used: {error.strerror}") from error
    return folder / IN_FOLDER[0]


def make_key(session: str, tenant: str | None) -> str:
    """Return the key of a session.

    Raises:
        UserError: A name is empty or not valid UTF-8.
    """
    if not session.strip():
        raise UserError("The name of the session is empty")
    key = session_key(session, tenant)
    try:
        key.encode()
    except UnicodeEncodeError:
        raise UserError(f"{describe(key)} is not valid UTF-8") from None
    return key


async def find_session(journal: Journal, session: str, tenant: str | None) -> SessionRecord:
    """Return what the journal knows of a session.

    Raises:
        UserError: There is none; the message names those that may be meant.
    """
    key = make_key(session, tenant)
    record = await find_record(journal, key)
    if record is None:
        raise UserError(f"There is no {describe(key)}{await _similar(journal, session, tenant)}")
    return record


async def find_record(journal: Journal, key: str) -> SessionRecord | None:
    """Return what the journal knows of the session with a key, or None."""
    return next((each for each in await journal.records(key) if each.key == key), None)


async def _similar(journal: Journal, session: str, tenant: str | None) -> str:
    known = [read_session_key(key) for key in await journal.sessions("[") if is_session(key)]
    owners = [whose for name, whose in known if name == session]
    if owners:
        options = [f"--tenant {shlex.quote(whose)}" for whose in owners if whose is not None]
        return f", but with {' or '.join(options) or 'no --tenant'}"
    names = [name for name, whose in known if whose == tenant]
    near = dict.fromkeys(get_close_matches(session, names))
    near |= dict.fromkeys(name for name in names if session.casefold() in name.casefold())
    if near:
        return f". Similar: {', '.join(map(repr, [*near][:5]))}"
    return "; agent-brain sessions list shows all"


@contextmanager
def refuse_taken(key: str, option: str) -> Iterator[None]:
    """Turn the error of a session that exists already into one of the user.

    Args:
        key: The session's key.
        option: The option that gives another name.
    """
    try:
        yield
    except JournalConflictError as error:
        raise UserError(
            f"There is a {describe(key)} already: choose another name with {option}"
        ) from error


def is_session(key: str) -> bool:
    """Return whether a key is that of a session, and of no branch of one."""
    try:
        return key == session_key(*read_session_key(key))
    except (ValueError, TypeError):
        return False


def describe(key: str) -> str:
    """Return the name of a session, and whose it is, for messages."""
    session, tenant = read_session_key(key)
    return f"session {session!r}" + (f" of tenant {tenant!r}" if tenant is not None else "")


def entries(number: int) -> str:
    """Return a number of entries, for messages."""
    return count_of(number, "entry", "entries")


def how_to_continue(options: Options, session: str, tenant: str | None) -> str:
    """Return how to resume a session, for a person; without the URL, which may be secret."""
    if options.folder is not None and tenant is None:
        vector = " --memory vector" if not (options.folder / IN_FOLDER[0]).exists() else ""
        place = f"--folder {shlex.quote(str(options.folder))} --session {shlex.quote(session)}"
        return f"agent-brain resume{vector} {place}, with the options of the run (--net, --tool …)"
    journal = find_place(options)
    if is_url(journal):
        journal = f"{journal.partition('://')[0]}://…"
    names = {"journal": journal, "session": session}
    chosen = names if tenant is None else names | {"tenant": tenant}
    return f"await Brain(…, memory_options={chosen!r}).resume()"


CLOSE = 3  # numbers that an error names


async def find_step(journal: Journal, key: str, number: int) -> SavedStep:
    """Return a step of a session.

    Raises:
        UserError: The journal does not have it; the message names the closest ones.
    """
    steps = {step.number: step for step in await saved_steps(journal, key)}
    if number not in steps:
        close = sorted(sorted(steps, key=lambda known: abs(known - number))[:CLOSE])
        near = f"the closest are {', '.join(map(str, close))}" if close else "it has none"
        raise UserError(
            f"There is no step {number} of {describe(key)}: {near}; agent-brain sessions steps "
            "lists all that are kept"
        )
    return steps[number]


async def memory_at(journal: Journal, key: str, number: int | None) -> StoredMemory:
    """Return a memory that shows all of a session, as it is or as it was at a step.

    Raises:
        UserError: The journal does not have the step.
    """
    step = None if number is None else await find_step(journal, key, number)
    return await reading.memory_at(journal, key, step)
