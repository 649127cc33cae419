"""Sessions as files."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO

from agent_brain.cli.exit_codes import UserError
from agent_brain.cli.options import Options
from agent_brain.cli.sanitize import one_line
from agent_brain.cli.sessions.places import (
    describe,
    entries,
    find_session,
    make_key,
    refuse_taken,
    use_journal,
    use_session,
)
from agent_brain.common.files import keep_database
from agent_brain.memories.journal.base import Journal, SessionRecord
from agent_brain.memories.journal.transfer import export_session, import_session
from agent_brain.memories.store.session import read_session_key


def export(options: Options, output: Path, form: str, run_id: str | None) -> None:
    """Write a session, or a run of it as a test or a cassette."""
    if form != "journal":
        from agent_brain.cli.sessions.replaying import write_cassette, write_test

        if str(output) == "-":
            raise UserError(f"--as {form} writes a file: name it with -o")
        (write_test if form == "test" else write_cassette)(options, run_id, output)
    elif run_id is not None:
        raise UserError("--run goes with --as test or --as cassette")
    else:
        write_session(options, output)


def write_session(options: Options, output: Path) -> None:
    """Write a session with its history and branches as lines of JSON, to a file or stdout."""

    async def export(journal: Journal, record: SessionRecord) -> None:
        with writing(output) as file:
            async for line in export_session(journal, record.key):
                file.write(f"{one_line(line)}\n")

    use_session(options, export)


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


def import_file(options: Options, path: Path, name: str | None) -> None:
    """Write the session of an exported file to the journal."""

    async def load(journal: Journal) -> SessionRecord:
        with reading(path) as file:
            first = file.readline()
            key = _key_of(first, name, options.tenant)
            with refuse_taken(key, "--as"):
                await import_session(journal, chain([first], file), key)
        return await find_session(journal, *read_session_key(key))

    record = use_journal(options, load, write=True, create=True)
    print(f"Imported {describe(record.key)}: {entries(record.entries)}")


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
    return make_key(session if name is None else name, whose if tenant is None else tenant)
