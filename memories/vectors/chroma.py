"""The vectors of one session in Chroma: on a server, or behind a given client.

Each session has a collection of its own, so that a query needs no filter. The ID of a row is its
key: a fingerprint of the embedded passage followed by the message ID. There is no metadata and no
text, so forgotten messages leave no words behind. Whatever is missing is embedded again from the
messages.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar
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

P = ParamSpec("P")
T = TypeVar("T")
PREFIX = "agent-brain-"
DIGITS = 16  # of the fingerprint of a text
PAGE = 500  # rows asked for or deleted by key in one call
IDS = 25_000  # read in one call, which keeps Python's other threads waiting
EF_SEARCH = 400  # of the 100 nearest of 100,000 MiniLM vectors Chroma then finds 99


def in_thread(
    *, writes: bool = False, again: bool = True
) -> Callable[
    [Callable[Concatenate[Any, P], T]], Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]
]:
    """Return a decorator for a method of a store that runs by :meth:`ChromaStore._run`."""

    def decorate(
        work: Callable[Concatenate[Any, P], T],
    ) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
        @wraps(work)
        async def method(store: ChromaStore, /, *args: P.args, **options: P.kwargs) -> T:
            call = partial(work, store, *args, **options)
            return await store._run(call, writes=writes, again=again)

        return method

    return decorate


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
        await self._run(self._rows)

    @in_thread()
    def count(self) -> int:
        """Return how many rows there are."""
        rows = self._rows()
        if rows is None:
            return 0
        # which loads the index; count() would hold Python's global lock meanwhile
        rows.query(query_embeddings=[[1.0] * (self.dimension or 1)], n_results=1, include=[])
        return int(rows.count())

    @in_thread()
    def keys(self) -> set[str]:
        """Return the keys of all rows."""
        return {*self._keys()}

    @in_thread(again=False)
    def load(self) -> dict[str, NDArray[np.float32]]:
        """Return all rows."""
        import numpy as np

        found: dict[str, NDArray[np.float32]] = {}
        for page in pieces(self._keys()):
            read = self._rows().get(ids=page, include=["embeddings"])
            found.update(zip(read["ids"], np.asarray(read["embeddings"], np.float32), strict=True))
        return found

    @in_thread()
    def having(self, keys: Sequence[str]) -> set[str]:
        """Return those of ``keys`` that there are rows of."""
        if (rows := self._rows()) is None:
            return set()
        return {key for page in pieces(keys) for key in rows.get(ids=page, include=[])["ids"]}

    @in_thread(again=False)
    def nearest(self, vector: NDArray[np.float32], count: int) -> dict[str, float]:
        """Return the cosines of the ``count`` rows nearest to ``vector``; it is approximate."""
        if (rows := self._rows()) is None:
            return {}
        page = rows.query(query_embeddings=[vector], n_results=count, include=["distances"])
        pairs = zip(page["ids"][0], page["distances"][0], strict=True)
        return {key: 1 - distance for key, distance in pairs}

    @in_thread(writes=True)
    def add(self, rows: Mapping[str, NDArray[np.float32]]) -> None:
        """Store rows, all of one dimension and at most ``write_rows`` of them."""
        vectors = [*rows.values()]
        self._rows(len(vectors[0])).upsert(ids=[*rows], embeddings=vectors)

    @in_thread(writes=True)
    def delete(self, keys: Sequence[str]) -> None:
        """Delete rows; unknown ones are ignored."""
        if (rows := self._rows()) is not None:
            for page in pieces(keys):
                rows.delete(ids=page)

    @in_thread(writes=True)
    def clear(self) -> None:
        """Delete every row of the session, whichever model made it."""
        self._clear()

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

    def _read(self, work: Callable[[], T], *, again: bool) -> T:
        """Return what ``work`` returns; if it fails and can be mended, try ``again``."""
        return work()

    async def _run(self, work: Callable[[], T], *, writes: bool = False, again: bool = True) -> T:
        """Run ``work`` in a thread and raise Chroma's errors as ours."""

        def guarded() -> T:
            try:
                with self._exclusively(writes=writes):
                    try:
                        return work() if writes else self._read(work, again=again)
                    except BaseException as error:
                        if is_of_chroma(error):
                            self.losses += type(error).__name__ == "NotFoundError"
                            self._recover()
                        raise
            except BaseException as error:
                if not is_of_chroma(error):
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

    def _keys(self) -> list[str]:
        rows = self._rows()
        keys: list[str] = []
        while rows is not None:
            page = rows.get(include=[], limit=IDS, offset=len(keys))["ids"]
            keys += page
            if len(page) < IDS:
                break
        return keys

    def _clear(self) -> None:
        if self._client is None:
            self._client = self._connect()
        self._collection = self.dimension = None
        if self._find(self._client) is not None:
            self._client.delete_collection(self._name)


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


def is_of_chroma(error: BaseException) -> bool:
    """Return whether Chroma has failed: also its core, written in Rust, on broken files."""
    ours = isinstance(error, EmbedderMismatchError | MemoryDefinitionError)
    return (isinstance(error, Exception) and not ours) or type(error).__name__ == "PanicException"


def settings() -> Any:
    """Return Chroma's settings for our clients."""
    from chromadb.config import Settings

    return Settings(anonymized_telemetry=False)
