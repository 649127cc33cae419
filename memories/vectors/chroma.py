"""Vectors kept in Chroma: a copy of what could be embedded again, so that it need not be.

A row has a message's vector, its session and a fingerprint of the text that was embedded. There is
nothing else, and above all no text: what is forgotten leaves no words behind. The truth is the
record of messages; whatever is missing here is embedded anew.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import anyio.to_thread

from agent_brain.memories.errors import (
    EmbedderMismatchError,
    MemoryDefinitionError,
    VectorStoreError,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")
PREFIX = "agent-brain-"
READ_ROWS = 2000
COLLECTIONS = 100  # listed at a time
OURS = (EmbedderMismatchError, MemoryDefinitionError, VectorStoreError)


class Kept(NamedTuple):
    """A vector, and the fingerprint of the text that it was made of."""

    mark: str
    vector: NDArray[np.float32]


class ChromaVectors(ABC):
    """The vectors of one session in Chroma, by message id.

    There is a collection for each embedder and dimension. Chroma is called in worker threads; who
    uses this sees to it that calls do not overlap.

    Args:
        scope: Session and tenant, as one text; rows of other scopes are neither read nor touched.
    """

    write_rows = 200  # in one call
    readonly = False  # nothing at the place may change
    leaves_traces = False  # whether files that we answer for hold what was deleted, until a clear()

    def __init__(self, scope: str) -> None:
        self._scope = digest(scope, 24)
        self._client: Any = None
        self._collections: dict[int, Any] = {}  # by dimension, of the embedder that was loaded
        self._embedder = ""

    async def load(self, embedder: str, dimension: int | None) -> dict[str, Kept]:
        """All vectors of the session, which ``embedder`` must have made.

        Raises:
            EmbedderMismatchError: The session was embedded by another model.
            VectorStoreError: Chroma cannot be reached.
        """
        return await self._run(lambda: self._load(embedder, dimension))

    async def add(self, rows: Mapping[str, Kept]) -> None:
        """Keep vectors, all of one dimension and at most ``write_rows`` of them.

        Raises:
            VectorStoreError: Chroma cannot be reached.
        """
        await self._run(lambda: self._write(rows))

    async def delete(self, ids: Sequence[str]) -> None:
        """Drop vectors; unknown ids are passed over.

        Raises:
            VectorStoreError: Chroma cannot be reached.
        """
        await self._run(lambda: self._delete(ids))

    async def clear(self) -> None:
        """Drop every vector of this session, whatever model made them.

        Raises:
            VectorStoreError: Chroma cannot be reached.
        """
        await self._run(self._clear)

    async def aclose(self) -> None:
        """Let go of Chroma."""
        if self._client is not None:
            await self._run(self._close)

    @abstractmethod
    def _connect(self) -> Any:
        """A client of Chroma."""

    @abstractmethod
    def _close(self) -> None:
        """Let go of the client; afterwards it can be connected anew."""

    @abstractmethod
    def _place(self) -> str:
        """Where Chroma is, for error messages."""

    def _recover(self) -> None:
        """Make ready for the next attempt, after Chroma has failed."""
        self._collections.clear()

    async def _run(self, work: Callable[[], T]) -> T:
        """Do ``work`` in a thread, with Chroma's errors as ours."""

        def guarded() -> T:
            try:
                return work()
            except OURS:
                raise
            except BaseException as error:
                if not isinstance(error, Exception) and not is_panic(error):
                    raise
                self._recover()
                raise VectorStoreError(f"Chroma {self._place()} cannot be used: {error}") from error

        return await anyio.to_thread.run_sync(guarded)

    def _opened(self) -> Any:
        if self._client is None:
            self._client = self._connect()
        return self._client

    def _load(self, embedder: str, dimension: int | None) -> dict[str, Kept]:
        self._embedder = embedder
        self._collections.clear()
        found: dict[str, Kept] = {}
        for collection in self._own_collections():
            if not collection.get(where={"scope": self._scope}, limit=1, include=[])["ids"]:
                continue
            known, size = collection.metadata["embedder"], collection.metadata["dimension"]
            if known != embedder:
                raise EmbedderMismatchError(known, embedder)
            if dimension not in (None, size):
                raise EmbedderMismatchError(
                    f"{known}, {size} numbers", f"{embedder}, {dimension} numbers"
                )
            found |= self._read(collection)
        return found

    def _read(self, collection: Any) -> dict[str, Kept]:
        import numpy as np

        found: dict[str, Kept] = {}
        offset = 0
        while True:
            page = collection.get(
                where={"scope": self._scope},
                include=["embeddings", "metadatas"],
                limit=READ_ROWS,
                offset=offset,
            )
            rows = zip(page["ids"], page["embeddings"], page["metadatas"], strict=True)
            for name, vector, data in rows:
                kept = Kept(str(data["text"]), np.asarray(vector, np.float32))
                found[name.partition(":")[2]] = kept
            offset += len(page["ids"])
            if len(page["ids"]) < READ_ROWS:
                return found

    def _own_collections(self) -> list[Any]:
        client, own, offset = self._opened(), [], 0
        while True:
            page = client.list_collections(limit=COLLECTIONS, offset=offset)
            own += [collection for collection in page if collection.name.startswith(PREFIX)]
            offset += len(page)
            if len(page) < COLLECTIONS:
                return own

    def _write(self, rows: Mapping[str, Kept]) -> None:
        self._collection(len(next(iter(rows.values())).vector)).upsert(
            ids=[self._row(message_id) for message_id in rows],
            embeddings=[kept.vector for kept in rows.values()],
            metadatas=[{"scope": self._scope, "text": kept.mark} for kept in rows.values()],
        )

    def _collection(self, dimension: int) -> Any:
        if dimension not in self._collections:
            metadata = {"embedder": self._embedder, "dimension": dimension}
            self._collections[dimension] = self._opened().get_or_create_collection(
                PREFIX + digest(json.dumps(metadata), 24),
                metadata=metadata,
                embedding_function=None,
                configuration={"hnsw": {"space": "cosine"}},
            )
        return self._collections[dimension]

    def _delete(self, ids: Sequence[str]) -> None:
        for collection in self._own_collections():
            for start in range(0, len(ids), READ_ROWS):
                names = [self._row(message_id) for message_id in ids[start : start + READ_ROWS]]
                collection.delete(ids=names)

    def _clear(self) -> None:
        for collection in self._own_collections():
            collection.delete(where={"scope": self._scope})

    def _row(self, message_id: str) -> str:
        return f"{self._scope}:{message_id}"


def digest(text: str, length: int) -> str:
    """A fingerprint of ``text``: so many hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:length]


def mark_of(text: str) -> str:
    """The fingerprint of a text that is kept beside its vector."""
    return digest(text, 16)


def is_panic(error: BaseException) -> bool:
    """Whether Chroma's core, which is written in Rust, has given up on broken files."""
    return type(error).__name__ == "PanicException"
