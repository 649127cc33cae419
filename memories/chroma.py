"""Vectors kept in Chroma: a copy of what could be embedded again, so that it need not be.

One collection holds the vectors of every session that was embedded by one model, each row marked
with its session; nothing else is kept there, and above all no text: what is forgotten leaves no
words behind. The truth is the journal; whatever is missing here is embedded anew.

Writing to an embedded Chroma holds Python's global lock for some 20 ms a call and a quarter of a
millisecond a row (Chroma 1.5), so rows are written in small batches, with the event loop served in
between. A Chroma server (``url=``) does not have this cost.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

from agent_brain.memories.errors import EmbedderMismatchError, VectorStoreError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")
PREFIX = "agent-brain-"
WRITE_ROWS = 20  # a batch that an embedded Chroma writes in about 25 ms
READ_ROWS = 2000


class ChromaVectors:
    """The vectors of one session in Chroma.

    Args:
        path: A folder for an embedded Chroma; or
        url: the address of a Chroma server; or
        client: a client of Chroma.
        scope: Session and tenant, as one text; rows of other scopes are neither read nor touched.
    """

    def __init__(
        self,
        *,
        path: Path | None = None,
        url: str | None = None,
        client: Any = None,
        scope: str,
    ) -> None:
        self._path = path
        self._url = url
        self._client = client
        self._scope = hashlib.sha256(scope.encode()).hexdigest()[:24]
        self._collection: Any = None
        self._limiter: anyio.CapacityLimiter | None = None

    async def load(self, embedder: str, dimension: int | None) -> Mapping[str, NDArray[np.float32]]:
        """Open the collection of ``embedder``; the vectors of this session by message id.

        Raises:
            EmbedderMismatchError: The session was embedded by another model.
            VectorStoreError: Chroma cannot be reached.
        """
        return await self._run(lambda: self._load(embedder, dimension))

    async def add(self, ids: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Keep vectors, one a row.

        Raises:
            VectorStoreError: Chroma cannot be reached; rows before the failing batch are kept.
        """
        for start in range(0, len(ids), WRITE_ROWS):
            part = slice(start, start + WRITE_ROWS)
            names = [self._row(message_id) for message_id in ids[part]]
            rows = vectors[part]
            marks = [{"scope": self._scope}] * len(names)

            def write(names: list[str] = names, rows: Any = rows, marks: Any = marks) -> None:
                self._collection.upsert(ids=names, embeddings=rows, metadatas=marks)

            await self._run(write)

    async def delete(self, ids: Sequence[str]) -> None:
        """Drop vectors; unknown ids are passed over.

        Raises:
            VectorStoreError: Chroma cannot be reached.
        """
        for start in range(0, len(ids), READ_ROWS):
            names = [self._row(message_id) for message_id in ids[start : start + READ_ROWS]]
            await self._run(lambda names=names: self._collection.delete(ids=names))  # type: ignore[misc]

    async def clear(self) -> None:
        """Drop every vector of this session, whatever model made them.

        Raises:
            VectorStoreError: Chroma cannot be reached.
        """
        await self._run(self._clear)

    async def aclose(self) -> None:
        """Let go of the collection. A client that was handed in is not closed."""
        self._collection = None
        if self._path is not None and self._client is not None:
            client, self._client = self._client, None
            await anyio.to_thread.run_sync(client.close)

    def _row(self, message_id: str) -> str:
        return f"{self._scope}:{message_id}"

    async def _run(self, work: Callable[[], T]) -> T:
        """Do ``work`` in a thread, one piece at a time, with Chroma's errors as ours."""
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(1)

        def guarded() -> T:
            try:
                return work()
            except (EmbedderMismatchError, VectorStoreError):
                raise
            except Exception as error:
                self._collection = None
                raise VectorStoreError(f"Chroma {self._where()} cannot be used: {error}") from error

        return await anyio.to_thread.run_sync(guarded, limiter=self._limiter)

    def _where(self) -> str:
        return f"at {self._url}" if self._url else f"in {str(self._path)!r}" if self._path else ""

    def _load(self, embedder: str, dimension: int | None) -> dict[str, NDArray[np.float32]]:
        try:
            return self._read(embedder, dimension)
        except EmbedderMismatchError:
            raise
        except BaseException as error:  # Chroma's core panics on broken files
            if self._path is None or isinstance(error, KeyboardInterrupt | MemoryError):
                raise
            self._start_anew(self._path)
            return self._read(embedder, dimension)

    def _read(self, embedder: str, dimension: int | None) -> dict[str, NDArray[np.float32]]:
        import numpy as np

        client = self._open_client()
        mark = {"embedder": embedder, "dimension": dimension or 0}
        name = PREFIX + hashlib.sha256(json.dumps(mark).encode()).hexdigest()[:24]
        self._refuse_other_models(client, name, embedder)
        self._collection = client.get_or_create_collection(
            name, metadata=mark, embedding_function=None
        )
        found: dict[str, NDArray[np.float32]] = {}
        while True:
            page = self._collection.get(
                where={"scope": self._scope},
                include=["embeddings"],
                limit=READ_ROWS,
                offset=len(found),
            )
            rows = page["embeddings"]
            for row, vector in zip(page["ids"], rows, strict=True):
                found[row.partition(":")[2]] = np.asarray(vector, np.float32)
            if len(page["ids"]) < READ_ROWS:
                return found

    def _refuse_other_models(self, client: Any, name: str, embedder: str) -> None:
        for other in client.list_collections():
            if other.name == name or not other.name.startswith(PREFIX):
                continue
            if other.get(where={"scope": self._scope}, limit=1, include=[])["ids"]:
                known = (other.metadata or {}).get("embedder", "another model")
                raise EmbedderMismatchError(known, embedder)

    def _clear(self) -> None:
        client = self._open_client()
        for collection in client.list_collections():
            if collection.name.startswith(PREFIX):
                collection.delete(where={"scope": self._scope})

    def _open_client(self) -> Any:
        if self._client is None:
            import chromadb
            from chromadb.config import Settings

            settings = Settings(anonymized_telemetry=False)
            if self._path is not None:
                self._path.mkdir(parents=True, exist_ok=True)
                self._client = chromadb.PersistentClient(str(self._path), settings)
            else:
                at = urlsplit(self._url or "")
                secure = at.scheme == "https"
                self._client = chromadb.HttpClient(
                    at.hostname or "localhost",
                    at.port or (443 if secure else 8000),
                    ssl=secure,
                    settings=settings,
                )
        return self._client

    def _start_anew(self, path: Path) -> None:
        """Drop a broken folder: what was in it is embedded again."""
        from chromadb.api.shared_system_client import SharedSystemClient

        self._client = self._collection = None
        SharedSystemClient._identifier_to_system.pop(str(path), None)
        shutil.rmtree(path, ignore_errors=True)
