"""An embedded Chroma in a folder that several processes may use."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from os import SEEK_END
from pathlib import Path
from struct import Struct
from typing import TYPE_CHECKING, Any, TypeVar

from agent_brain.memories.vectors.chroma import (
    PREFIX,
    ChromaClient,
    ChromaServer,
    ChromaStore,
    is_of_chroma,
    settings,
)

if TYPE_CHECKING:
    from os import PathLike

T = TypeVar("T")
HEADER = Struct("<iQQQQ")  # of an index: version, offset, room for rows, rows, bytes of a row
LENGTH = 4  # bytes of a row in the file of lengths
LOCK_SECONDS = 60.0  # how long to wait for another process that uses the folder
PASSING = (  # errors after which the files are as good as before
    "is locked",
    "busy",
    "disk is full",
    "no space left",
    "permission denied",
    "readonly database",
    "read-only file system",
    "too many open files",
    "unable to open",
)


class ChromaFolder(ChromaStore):
    """An embedded Chroma in a folder, with a subfolder for each session.

    Sessions never wait for each other, and a broken one is made again without the others. An
    embedded Chroma keeps its index in RAM, and two processes that write to one folder at once lose
    vectors (Chroma 1.5). So processes take turns: each call holds a lock file, which also counts
    the writes, and a process whose index is out of date opens the folder again. Writing holds
    Python's global lock for some 20 ms a call, so rows are written in small batches. An open
    session takes about a dozen file handles. A Chroma server has none of these costs.

    Args:
        path: The folder.
        scope: As for :class:`ChromaStore`.
        readonly: As for :class:`ChromaStore`.
    """

    write_rows = 20
    leaves_traces = True  # Chroma marks rows as deleted and keeps their numbers in its files

    def __init__(self, path: Path, scope: str, *, readonly: bool = False) -> None:
        super().__init__(scope, readonly=readonly)
        self._path = path.absolute() / self._name.removeprefix(PREFIX)

    def _disconnected(self) -> None:
        super()._disconnected()
        self._system: Any = None
        self._seen: int | None = None  # the count of writes when the folder was opened
        self._blanked: dict[Path, int] = {}  # when the rows of an index were last written

    def _place(self) -> str:
        return f"in {str(self._path)!r}"

    @contextmanager
    def _exclusively(self, *, writes: bool) -> Iterator[None]:
        if not self._path.parent.exists():
            if self.readonly:
                yield
                return
            self._path.parent.mkdir(parents=True, exist_ok=True)
        with _write_count(self._path.with_suffix(".lock"), writes=writes) as (before, after):
            if before != self._seen or not self._path.exists():
                self.losses += self._seen is not None and not self._path.exists()
                self._close()
            self._seen = after
            try:
                yield
            finally:
                self._blank()

    def _rows(self, dimension: int | None = None) -> Any:
        if self._client is None and dimension is None and not self._path.exists():
            return None
        return super()._rows(dimension)

    def _connect(self) -> Any:
        import chromadb
        from chromadb.api.shared_system_client import SharedSystemClient

        path = str(self._path)
        self._path.mkdir(parents=True, exist_ok=True)
        _check(self._path / "chroma.sqlite3")
        shared = (
            SharedSystemClient._identifier_to_system,
            SharedSystemClient._identifier_to_refcount,
        )
        try:
            client: Any = chromadb.PersistentClient(path, settings())
            self._system = client._system
            return client
        finally:  # Chroma would give the same index, or one that failed to open, to the next client
            for known in shared:
                known.pop(path, None)

    def _close(self) -> None:
        system = self._system
        self._disconnected()
        if system is not None:
            with suppress(BaseException):  # it may be broken, and panic
                system.stop()

    def _recover(self) -> None:
        self._close()

    def _read(self, work: Callable[[], T], *, again: bool) -> T:
        """Return what ``work`` returns; delete what cannot be read, to be embedded again."""
        try:
            return work()
        except BaseException as error:
            if self.readonly or not is_of_chroma(error) or _is_passing(error):
                raise
            self._clear()
            self.losses += 1
            if not again:
                raise
        return work()

    def _clear(self) -> None:
        self._close()
        self.dimension = None
        if self._path.exists():
            shutil.rmtree(self._path)

    def _blank(self) -> None:
        """Overwrite the room for more rows in the indexes that Chroma has written.

        A new index, also one that is made at every opening because it has few rows, is written with
        the RAM that was allocated for it, and so with what the process had there before.
        """
        for rows in self._path.glob("*/data_level0.bin"):
            if rows.stat().st_mtime_ns != self._blanked.get(rows):
                with suppress(FileNotFoundError):  # of a damaged index, and Chroma says so
                    _blank_behind_rows(rows)
                self._blanked[rows] = rows.stat().st_mtime_ns


def _blank_behind_rows(rows: Path) -> None:
    header = rows.with_name("header.bin").read_bytes()
    if len(header) < HEADER.size:
        return
    _, _, _, count, size = HEADER.unpack_from(header)
    for file, width in ((rows, size), (rows.with_name("length.bin"), LENGTH)):
        room = file.stat().st_size - count * width
        if room > 0:
            with file.open("r+b") as index:
                index.seek(-room, SEEK_END)
                if any(index.read()):
                    index.seek(-room, SEEK_END)
                    index.write(bytes(room))


def make_store(
    path: str | PathLike[str] | None, url: str | None, client: Any, scope: str, *, readonly: bool
) -> ChromaStore | None:
    """Return the store that the options of a memory name; None if they name none."""
    if path is not None:
        return ChromaFolder(Path(path) / "vectors", scope, readonly=readonly)
    if url is not None:
        return ChromaServer(url, scope, readonly=readonly)
    return None if client is None else ChromaClient(client, scope, readonly=readonly)


@contextmanager
def _write_count(file: Path, *, writes: bool) -> Iterator[tuple[int, int]]:
    """Hold the lock ``file``; yields how many writes it had counted before, and with this one.

    A SQLite database can be locked on every system, also if a process ends while it has the lock.
    In this mode the lock is kept after the commit, so that a write is counted before it happens.
    """
    with closing(sqlite3.connect(file, timeout=LOCK_SECONDS, isolation_level=None)) as db:
        try:
            db.execute("PRAGMA synchronous=OFF")
            db.execute("PRAGMA locking_mode=EXCLUSIVE")
            db.execute("BEGIN EXCLUSIVE")
            (before,) = db.execute("PRAGMA user_version").fetchone()
            after = (before + writes) % 2**31
            db.execute(f"PRAGMA user_version={after}")
            db.execute("COMMIT")
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:
            file.unlink()  # it is damaged; the next attempt makes another one
            raise
        yield before, after


def _check(file: Path) -> None:
    """Raise an error for a damaged file, on which Chroma's core may end the whole process."""
    if file.exists():
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=rw", uri=True)) as db:
            (found,) = db.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise sqlite3.DatabaseError(found)


def _is_passing(error: BaseException) -> bool:
    """Return whether the next attempt may succeed with the files as they are."""
    text = str(error).casefold()
    return isinstance(error, OSError) or any(word in text for word in PASSING)
