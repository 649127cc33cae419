"""Where Chroma can be: in a folder, on a server, or behind a client that someone else made."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agent_brain.memories.errors import EmbedderMismatchError, MemoryDefinitionError
from agent_brain.memories.vectors.chroma import ChromaVectors, Kept, is_panic

PASSING = (  # nothing is broken
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


class ChromaFolder(ChromaVectors):
    """An embedded Chroma in a folder, which has a subfolder for each session.

    So sessions never wait for each other, several processes may use one folder, and a broken
    session is made anew without the others. Writing holds Python's global lock for some 20 ms a
    call and half a millisecond a row (Chroma 1.5), so rows are written in small batches, with the
    event loop served in between. A Chroma server does not have this cost. While a session is open
    it takes about a dozen file handles: where hundreds are open at once, use a server.

    Args:
        path: The folder.
        scope: As for :class:`ChromaVectors`.
    """

    write_rows = 20
    leaves_traces = True  # Chroma marks rows as deleted, and keeps their numbers in its files

    def __init__(self, path: Path, scope: str) -> None:
        super().__init__(scope)
        self._path = path.absolute() / self._scope

    def _place(self) -> str:
        return f"in {str(self._path)!r}"

    def _connect(self) -> Any:
        import chromadb

        self._path.mkdir(parents=True, exist_ok=True)
        _check(self._path / "chroma.sqlite3")
        try:
            return chromadb.PersistentClient(str(self._path), _settings())
        except BaseException:
            self._forget_half_opened()
            raise

    def _forget_half_opened(self) -> None:
        """Chroma keeps what it could not open, and would hand it out the next time."""
        from chromadb.api.shared_system_client import SharedSystemClient

        for known in ("_identifier_to_system", "_identifier_to_refcount"):
            getattr(SharedSystemClient, known, {}).pop(str(self._path), None)

    def _close(self) -> None:
        client, self._client = self._client, None
        self._collections.clear()
        if client is not None:
            client.close()

    def _recover(self) -> None:
        with suppress(BaseException):  # it is broken, and may panic
            self._close()

    def _load(self, embedder: str, dimension: int | None) -> dict[str, Kept]:
        """Read; what cannot be read is dropped, to be embedded again."""
        if self.readonly:
            return super()._load(embedder, dimension) if self._path.exists() else {}
        try:
            return super()._load(embedder, dimension)
        except EmbedderMismatchError:
            raise
        except BaseException as error:
            if not (isinstance(error, Exception) or is_panic(error)) or _is_passing(error):
                raise
            self._recover()
            self._clear()
            return super()._load(embedder, dimension)

    def _clear(self) -> None:
        self._close()
        if self._path.exists():
            shutil.rmtree(self._path)


class ChromaServer(ChromaVectors):
    """A Chroma server.

    Args:
        url: Its address, such as ``"http://localhost:8000"``.
        scope: As for :class:`ChromaVectors`.

    Raises:
        MemoryDefinitionError: ``url`` is no address of a server.
    """

    def __init__(self, url: str, scope: str) -> None:
        at = urlsplit(url)
        if at.scheme not in ("http", "https") or not at.hostname:
            raise MemoryDefinitionError(
                f"url={url!r} is no address of a Chroma server: 'http://localhost:8000' is one"
            )
        super().__init__(scope)
        self._url = url.rstrip("/")

    def _place(self) -> str:
        return f"at {self._url}"

    def _connect(self) -> Any:
        import chromadb

        secure = self._url.startswith("https:")
        return chromadb.HttpClient(self._url, ssl=secure, settings=_settings())

    def _close(self) -> None:
        client, self._client = self._client, None
        self._collections.clear()
        with ExitStack() as connections:  # which Chroma leaves open
            for part in (client, getattr(client, "_admin_client", None)):
                session = getattr(getattr(part, "_server", None), "_session", None)
                if session is not None:
                    connections.callback(session.close)
            client.close()


class ChromaClient(ChromaVectors):
    """A client of Chroma that someone else made, and closes.

    Args:
        client: Such as ``chromadb.EphemeralClient()`` or ``chromadb.HttpClient(…)``.
        scope: As for :class:`ChromaVectors`.
    """

    write_rows = 20  # it may be an embedded one

    def __init__(self, client: Any, scope: str) -> None:
        super().__init__(scope)
        self._given = client

    def _place(self) -> str:
        return f"behind {type(self._given).__name__}"

    def _connect(self) -> Any:
        return self._given

    def _close(self) -> None:
        self._client = None
        self._collections.clear()


def _settings() -> Any:
    from chromadb.config import Settings

    return Settings(anonymized_telemetry=False)


def _check(file: Path) -> None:
    """Raise for a damaged file, which Chroma's core may end the whole process over."""
    if file.exists():
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=rw", uri=True)) as db:
            (found,) = db.execute("PRAGMA integrity_check(1)").fetchone()
        if found != "ok":
            raise sqlite3.DatabaseError(found)


def _is_passing(error: BaseException) -> bool:
    """Whether it may be gone the next time, and says nothing about the files."""
    text = str(error).casefold()
    return isinstance(error, OSError) or any(word in text for word in PASSING)
