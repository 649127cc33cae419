"""The vectors of one session in Chroma: on a server, or behind a given client.

Each session has a collection of its own, so that a query needs no filter. The ID of a row is its
key: a fingerprint of the embedded passage followed by the message ID. There is no metadata and no
text, so forgotten messages leave no words behind. Whatever is missing is embedded again from the
messages.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import anyio
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
DIGITS = 16  # of the fingerprint of a text
PAGE = 500  # rows asked for or deleted by key in one call
IDS = 25_000  # read in one call, which keeps Python's other threads waiting
EF_SEARCH = 400  # of the 100 nearest of 100,000 MiniLM vectors Chroma then finds 99


class ChromaStore(ABC):
    """The vectors of one session, by key (see :func:`key_of`).

    Chroma is called in worker threads, one call of a store at a time.

    Args:
        scope: Session and tenant as one text.
        readonly: Never write.
    """

    write_rows = 200  # in one call
    model: tuple[str, int | None]  # name and dimension of the embedder
    losses: int  # how often rows have vanished since they were read
    leaves_traces = False  # whether our files hold deleted vectors until clear()

    def __init__(self, scope: str, *, readonly: bool = False) -> None:
        self.readonly = readonly
        self.losses = 0
        self.dimension: int | None = None  # of the rows, once it is known
        self._name = PREFIX + digest(scope, 24)
        self.model = "", None
        self._calling = anyio.Lock()
        self._disconnected()

    async def open(self, embedder: str, dimension: int | None) -> None:
        """Connect, for vectors that ``embedder`` makes.

        Raises:
            EmbedderMismatchError: The session was embedded by another model.
            VectorStoreError: Chroma cannot be reached.
        """
        self.model = embedder, dimension
        await self._run(self._open)

    async def count(self) -> int:
        """Return how many rows there are."""
        return await self._run(self._count)

    async def keys(self) -> set[str]:
        """Return the keys of all rows."""
        return {*await self._run(self._keys)}

    async def load(self) -> dict[str, NDArray[np.float32]]:
        """Return all rows."""
        return await self._run(lambda: self._get(self._keys()))

    async def having(self, keys: Sequence[str]) -> set[str]:
        """Return those of ``keys`` that there are rows of."""
        return await self._run(lambda: self._having(keys))

    async def nearest(self, vector: NDArray[np.float32], count: int) -> dict[str, float]:
        """Return the cosines of the ``count`` rows nearest to ``vector``; it is approximate."""
        return await self._run(lambda: self._nearest(vector, count))

    async def add(self, rows: Mapping[str, NDArray[np.float32]]) -> None:
        """Store rows, all of one dimension and at most ``write_rows`` of them."""
        await self._run(lambda: self._add(rows), writes=True)

    async def delete(self, keys: Sequence[str]) -> None:
        """Delete rows; unknown ones are ignored."""
        await self._run(lambda: self._delete(keys), writes=True)

    async def clear(self) -> None:
        """Delete every row of the session, whichever model made it."""
        await self._run(self._clear, writes=True)

    async def blank(self) -> None:
        """Overwrite what our files hold beside the rows."""
        await self._run(self._blank, writes=True)

    async def aclose(self) -> None:
        """Disconnect."""
        if self._client is not None:
            await anyio.to_thread.run_sync(self._close)

    @abstractmethod
    def _connect(self) -> Any:
        """Return a client of Chroma."""

    @abstractmethod
    def _place(self) -> str:
        """Return where Chroma is, for error messages."""

    def _disconnected(self) -> None:
        self._client: Any = None
        self._collection: Any = None

    def _close(self) -> None:
        self._disconnected()

    def _recover(self) -> None:
        """Prepare for the next attempt after Chroma has failed."""
        self._collection = None

    def _exclusively(self, *, writes: bool) -> AbstractContextManager[None]:
        """Keep other processes from using the rows meanwhile."""
        return nullcontext()

    async def _run(self, work: Callable[[], T], *, writes: bool = False) -> T:
        """Run ``work`` in a thread and raise Chroma's errors as ours."""

        def guarded() -> T:
            try:
                with self._exclusively(writes=writes):
                    try:
                        return work()
                    except (EmbedderMismatchError, MemoryDefinitionError):
                        raise
                    except BaseException as error:
                        if isinstance(error, Exception) or is_panic(error):
                            self.losses += type(error).__name__ == "NotFoundError"
                            self._recover()
                        raise
            except (EmbedderMismatchError, MemoryDefinitionError):
                raise
            except BaseException as error:
                if not isinstance(error, Exception) and not is_panic(error):
                    raise
                raise VectorStoreError(f"Chroma {self._place()} cannot be used: {error}") from error

        async with self._calling:
            return await anyio.to_thread.run_sync(guarded)

    def _rows(self, dimension: int | None = None) -> Any:
        """Return the collection; None if there is none and ``dimension`` is not given to make one.

        Raises:
            EmbedderMismatchError: Another model has made its vectors.
        """
        if self._collection is not None:
            return self._collection
        if self._client is None:
            self._client = self._connect()
        embedder, expected = self.model
        found = self._find(self._client)
        if found is None:
            self.losses += self.dimension is not None
            self.dimension = None
            if dimension is None:
                return None
            found = self._client.get_or_create_collection(
                self._name,
                metadata={"embedder": embedder, "dimension": dimension},
                embedding_function=None,
                configuration={"hnsw": {"space": "cosine", "ef_search": EF_SEARCH}},
            )
        made_by, size = found.metadata["embedder"], found.metadata["dimension"]
        if made_by != embedder:
            raise EmbedderMismatchError(made_by, embedder)
        if (dimension or expected) not in (None, size):
            raise EmbedderMismatchError(
                f"{made_by}, {size} numbers", f"{embedder}, {dimension or expected} numbers"
            )
        self._collection, self.dimension = found, size
        return found

    def _find(self, client: Any) -> Any:
        from chromadb.errors import NotFoundError

        try:
            return client.get_collection(self._name, embedding_function=None)
        except NotFoundError:
            return None

    def _open(self) -> None:
        self._rows()

    def _count(self) -> int:
        rows = self._rows()
        if rows is None:
            return 0
        # which loads the index; count() would hold Python's global lock meanwhile
        rows.query(query_embeddings=[[1.0] * (self.dimension or 1)], n_results=1, include=[])
        return int(rows.count())

    def _keys(self) -> list[str]:
        rows = self._rows()
        keys: list[str] = []
        while rows is not None:
            page = rows.get(include=[], limit=IDS, offset=len(keys))["ids"]
            keys += page
            if len(page) < IDS:
                break
        return keys

    def _having(self, keys: Sequence[str]) -> set[str]:
        if (rows := self._rows()) is None:
            return set()
        return {key for page in pieces(keys) for key in rows.get(ids=page, include=[])["ids"]}

    def _get(self, keys: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        import numpy as np

        found: dict[str, NDArray[np.float32]] = {}
        if (rows := self._rows()) is None:
            return found
        for page in pieces(keys):
            read = rows.get(ids=page, include=["embeddings"])
            found.update(zip(read["ids"], np.asarray(read["embeddings"], np.float32), strict=True))
        return found

    def _nearest(self, vector: NDArray[np.float32], count: int) -> dict[str, float]:
        rows = self._rows()
        if rows is None:
            return {}
        page = rows.query(query_embeddings=[vector], n_results=count, include=["distances"])
        pairs = zip(page["ids"][0], page["distances"][0], strict=True)
        return {key: 1 - distance for key, distance in pairs}

    def _add(self, rows: Mapping[str, NDArray[np.float32]]) -> None:
        vectors = [*rows.values()]
        self._rows(len(vectors[0])).upsert(ids=[*rows], embeddings=vectors)

    def _delete(self, keys: Sequence[str]) -> None:
        if (rows := self._rows()) is not None:
            for page in pieces(keys):
                rows.delete(ids=page)

    def _clear(self) -> None:
        if self._client is None:
            self._client = self._connect()
        self._collection = self.dimension = None
        if self._find(self._client) is not None:
            self._client.delete_collection(self._name)

    def _blank(self) -> None:
        """Do nothing: there are no files of ours."""


class ChromaServer(ChromaStore):
    """A Chroma server.

    Args:
        url: Its address, such as ``"http://localhost:8000"``.
        scope: As for :class:`ChromaStore`.
        readonly: As for :class:`ChromaStore`.

    Raises:
        MemoryDefinitionError: ``url`` is not the address of a server.
    """

    def __init__(self, url: str, scope: str, *, readonly: bool = False) -> None:
        at = urlsplit(url)
        if at.scheme not in ("http", "https") or not at.hostname:
            raise MemoryDefinitionError(
                f"url={url!r} is not the address of a Chroma server: it looks like "
                "'http://localhost:8000'"
            )
        super().__init__(scope, readonly=readonly)
        self._url = url.rstrip("/")

    def _place(self) -> str:
        return f"at {self._url}"

    def _connect(self) -> Any:
        import chromadb

        secure = self._url.startswith("https:")
        return chromadb.HttpClient(self._url, ssl=secure, settings=settings())

    def _close(self) -> None:
        client = self._client
        self._disconnected()
        with ExitStack() as connections:  # which Chroma leaves open
            for part in (client, getattr(client, "_admin_client", None)):
                session = getattr(getattr(part, "_server", None), "_session", None)
                if session is not None:
                    connections.callback(session.close)
            client.close()


class ChromaClient(ChromaStore):
    """A client of Chroma that the caller made and closes.

    Args:
        client: Such as ``chromadb.EphemeralClient()`` or ``chromadb.HttpClient(…)``.
        scope: As for :class:`ChromaStore`.
        readonly: As for :class:`ChromaStore`.
    """

    write_rows = 20  # it may be an embedded one

    def __init__(self, client: Any, scope: str, *, readonly: bool = False) -> None:
        super().__init__(scope, readonly=readonly)
        self._given = client

    def _place(self) -> str:
        return f"behind {type(self._given).__name__}"

    def _connect(self) -> Any:
        return self._given


def digest(text: str, length: int) -> str:
    """Return a fingerprint of ``text`` as ``length`` hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:length]


def key_of(message_id: str, text: str) -> str:
    """Return the key of the vector of a message's text or passage: it changes with the text."""
    return digest(text, DIGITS) + message_id


def message_of(key: str) -> str:
    """Return the ID of the message that a key is of."""
    return key[DIGITS:]


def pieces(keys: Sequence[str]) -> Iterator[list[str]]:
    """Yield ``keys`` in lists that Chroma takes."""
    for start in range(0, len(keys), PAGE):
        yield [*keys[start : start + PAGE]]


def is_panic(error: BaseException) -> bool:
    """Return whether Chroma's core, which is written in Rust, has failed on broken files."""
    return type(error).__name__ == "PanicException"


def settings() -> Any:
    """Return Chroma's settings for our clients."""
    from chromadb.config import Settings

    return Settings(anonymized_telemetry=False)
