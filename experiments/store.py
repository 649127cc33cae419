"""The folder of an experiment: its lock, its cases and its sessions."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Self

import anyio
from anyio import to_thread
from pydantic import ValidationError

from agent_brain.common.files import replace_file
from agent_brain.common.values import error_lines
from agent_brain.errors import ExperimentError
from agent_brain.experiments.case import CaseResult, ExperimentInfo
from agent_brain.memories.errors import JournalError
from agent_brain.memories.journal.ram import RamJournal
from agent_brain.memories.journal.sqlite.journal import SQLiteJournal
from agent_brain.memories.store.session import read_session_key

INFO = "experiment.json"
CASES = "cases.jsonl"
SESSIONS = "sessions.db"
LOCK = "experiment.lock"
VECTORS = "vectors"


class CaseJournal(RamJournal):
    """Holds the sessions of a case in RAM until it ends.

    A case that does not end starts from its beginning, so nothing of it must be on the disk before,
    and one write at the end is cheaper than one in each step. Memories treat it as the journal of a
    file, so that a case behaves as a program that is restarted.
    """

    persistent = True


class Store:
    """The folder of an experiment, held by one process at a time.

    Args:
        folder: The folder; it is made if it is missing.
        empty: Remove what it holds when it is entered.

    Raises:
        ExperimentError: When it is entered: another process holds it, it cannot be read, or it has
            files that no experiment wrote.
    """

    def __init__(self, folder: Path, *, empty: bool = False) -> None:
        self.folder = folder
        self._empty = empty
        self.kept: dict[str, CaseResult] = {}
        self._lock: sqlite3.Connection | None = None
        self._journal: SQLiteJournal | None = None
        self._client: Any = None
        self._writing = anyio.Lock()

    async def __aenter__(self) -> Self:
        await to_thread.run_sync(self._open)
        return self

    async def __aexit__(self, *_: object) -> None:
        with anyio.CancelScope(shield=True):
            try:
                if self._journal is not None:
                    await self._journal.aclose()
            finally:
                await to_thread.run_sync(self._release)

    def _open(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:
            raise ExperimentError(f"The folder {self.folder} cannot be made: {error}") from error
        _refuse_others(self.folder)
        self._lock = _locked(self.folder)
        try:
            if self._empty:
                for name in (INFO, CASES, SESSIONS, f"{SESSIONS}-wal", f"{SESSIONS}-shm"):
                    (self.folder / name).unlink(missing_ok=True)
                shutil.rmtree(self.folder / VECTORS, ignore_errors=True)
            self.kept = {case.id: case for case in read_cases(self.folder, mend=True)}
        except BaseException:
            self._release()
            raise

    def _release(self) -> None:
        if self._client is not None:
            with suppress(Exception):
                self._client._system.stop()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    @property
    def journal(self) -> SQLiteJournal:
        """The journal of all sessions. What was appended survives the end of the process."""
        if self._journal is None:
            self._journal = SQLiteJournal(self.folder / SESSIONS, durability="os")
        return self._journal

    def client(self) -> Any:
        """Return the client of Chroma of all cases, for the vectors of the folder."""
        if self._client is None:
            import chromadb

            from agent_brain.memories.vectors.chroma import settings

            folder = str((self.folder / VECTORS).absolute())
            self._client = chromadb.PersistentClient(folder, settings())
        return self._client

    async def keep(self, case: CaseResult, sessions: CaseJournal | None = None) -> None:
        """Write the sessions of a case and its result; it is on the disk when this returns."""
        line = case.model_dump_json() + "\n"
        with anyio.CancelScope(shield=True):
            async with self._writing:
                if sessions is not None:
                    for key in await sessions.sessions():
                        await self.journal.load(key, await sessions.read(key, history=True))
                await to_thread.run_sync(_append, self.folder / CASES, line.encode())
        self.kept[case.id] = case

    async def write_info(self, info: ExperimentInfo) -> None:
        """Write what the experiment compares, whole or not at all."""
        text = info.model_dump_json(indent=2)
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(_replace, self.folder / INFO, text)

    async def forget(self, ids: Collection[str]) -> None:
        """Remove the results of these cases; :meth:`remove_unfinished` removes their sessions.

        Raises:
            ExperimentError: The sessions cannot be read; then no result is removed.
        """
        await self._session_keys()
        left = {id_: case for id_, case in self.kept.items() if id_ not in ids}
        text = "".join(case.model_dump_json() + "\n" for case in left.values())
        await to_thread.run_sync(_replace, self.folder / CASES, text)
        self.kept = left

    async def remove_unfinished(self) -> None:
        """Remove the sessions of cases that have no result."""
        for key in await self._session_keys():
            if read_session_key(key)[1] not in self.kept:
                await self.journal.delete(key, scrub=False)

    async def _session_keys(self) -> Sequence[str]:
        if not (self.folder / SESSIONS).exists():
            return ()
        try:
            return await self.journal.sessions("")
        except JournalError as error:
            raise ExperimentError(
                f"{self.folder / SESSIONS} cannot be read: {error}\n  Remove the file to go on "
                "without what happened in the cases that are done, or run with fresh=True to do "
                "all of them again"
            ) from error


def _refuse_others(folder: Path) -> None:
    """Refuse a folder with files of these names that no experiment wrote."""
    found = [name for name in (INFO, CASES, SESSIONS, VECTORS) if (folder / name).exists()]
    if not found or (folder / LOCK).exists():
        return
    try:
        read_info(folder)
    except ExperimentError as error:
        raise ExperimentError(
            f"{folder / found[0]} is there, and no experiment wrote it: take another folder"
        ) from error


def _locked(folder: Path) -> sqlite3.Connection:
    """Return a connection that holds the folder's lock until it is closed or the process ends."""
    lock = sqlite3.connect(folder / LOCK, timeout=0, isolation_level=None, check_same_thread=False)
    try:
        lock.execute("PRAGMA journal_mode=MEMORY")
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error as error:
        lock.close()
        if "locked" in str(error) or "busy" in str(error):
            raise ExperimentError(
                f"Another process runs an experiment in {folder}: wait for it, or take another "
                "folder"
            ) from error
        raise ExperimentError(f"The folder {folder} cannot be locked: {error}") from error
    return lock


def read_cases(folder: Path, *, mend: bool = False) -> list[CaseResult]:
    """Return the results that a folder holds, in the order in which they were written.

    A last line that is not whole, of a process that was killed, is left out.

    Args:
        folder: The folder.
        mend: Remove such a line.

    Raises:
        ExperimentError: The file cannot be read, or another line is damaged.
    """
    file = folder / CASES
    try:
        data = file.read_bytes() if file.exists() else b""
    except OSError as error:
        raise ExperimentError(f"{file} cannot be read: {error}") from error
    whole, _, torn = data.rpartition(b"\n")
    if torn and mend:
        with file.open("r+b") as opened:
            opened.truncate(len(data) - len(torn))
    found = []
    for number, line in enumerate(whole.split(b"\n") if whole else (), 1):
        try:
            found.append(CaseResult.model_validate_json(line))
        except ValidationError as error:
            problem = next(error_lines(error), "it cannot be read")
            raise ExperimentError(
                f"{file}, line {number} is damaged ({problem}): remove this line to run its case "
                "again, or run all of them again: fresh=True, or --fresh of the command"
            ) from error
    return found


def read_info(folder: Path) -> ExperimentInfo:
    """Return what the experiment of a folder compares.

    Raises:
        ExperimentError: There is none, or it cannot be read.
    """
    file = folder / INFO
    try:
        return ExperimentInfo.model_validate_json(file.read_bytes())
    except FileNotFoundError as error:
        raise ExperimentError(f"There is no experiment in {folder}: no {INFO}") from error
    except (OSError, ValidationError) as error:
        raise ExperimentError(f"{file} cannot be read: {error}") from error


@contextmanager
def _named(file: Path) -> Iterator[None]:
    """Have an error of the system name the file, as a full disk alone does not."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:
            error.filename = str(file)
        raise


def _append(file: Path, data: bytes) -> None:
    with _named(file), file.open("ab") as opened:
        size = opened.tell()
        try:
            opened.write(data)
            opened.flush()
            os.fsync(opened.fileno())
        except OSError:  # such as a full disk: leave no half of a line
            with suppress(OSError):
                os.truncate(file, size)
            raise


def _replace(file: Path, text: str) -> None:
    with _named(file):
        replace_file(file, text, mode=0o644)


def as_folder(given: Any) -> Path:
    """Return the path of a folder.

    Raises:
        ExperimentError: It is not a path.
    """
    path = fspath(given) if isinstance(given, str | PathLike) else ""
    if not isinstance(path, str) or not path or "\0" in path:
        raise ExperimentError(f"folder={given!r}: give the path of a folder, such as 'results'")
    return Path(path)
