"""Writes vectors to their store in good time, and deletes there what is gone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING

import anyio

from agent_brain.memories.errors import VectorStoreError
from agent_brain.tools.secrets import get_logger

if TYPE_CHECKING:
    from agent_brain.memories.vectors.chroma import ChromaVectors, Kept

log = get_logger(__name__)
SAVE_AT = 64  # vectors that wait to be written; until then they are in RAM only


class VectorWriter:
    """What the store of one session has, and what it should have.

    It works in pieces, and strikes each from its list when it is done. Whoever is cut off loses
    nothing, and what is put or dropped meanwhile is seen.

    Args:
        store: Keeps the vectors.
        all_vectors: Gives all vectors that the session has now.
        readonly: Only :meth:`load`, and never change what the store has.
    """

    def __init__(
        self,
        store: ChromaVectors,
        all_vectors: Callable[[], dict[str, Kept]],
        *,
        readonly: bool = False,
    ) -> None:
        self._store = store
        self._readonly = store.readonly = readonly
        self._all_vectors = all_vectors
        self._lock = anyio.Lock()
        self._model: tuple[str, int | None] = ("", None)
        self._unsaved: dict[str, Kept] = {}
        self._rows: set[str] = set()  # ids that are in the store, or may be
        self._doomed: dict[str, None] = {}  # those of them that must go
        self._astray = False  # the store has failed, so what it has must be read again

    @property
    def doomed(self) -> bool:
        """Whether anything is to be deleted."""
        return bool(self._doomed)

    @property
    def due(self) -> bool:
        """Whether it is time to :meth:`save`."""
        return bool(self._doomed) or len(self._unsaved) >= SAVE_AT

    def put(self, message_id: str, kept: Kept) -> None:
        """Have a vector written."""
        self._unsaved[message_id] = kept

    def put_unknown(self, vectors: Mapping[str, Kept]) -> None:
        """Have those written that the store does not have."""
        for message_id, kept in vectors.items():
            if message_id not in self._rows:
                self._unsaved[message_id] = kept

    def drop(self, ids: Iterable[str]) -> None:
        """Have vectors deleted; unknown ids are passed over."""
        for message_id in ids:
            self._unsaved.pop(message_id, None)
            if message_id in self._rows:
                self._doomed[message_id] = None

    async def load(self, embedder: str, dimension: int | None) -> dict[str, Kept]:
        """What the store has of the session.

        Raises:
            EmbedderMismatchError: The session was embedded by another model.
            VectorStoreError: The store cannot be reached.
        """
        async with self._lock:
            self._model = (embedder, dimension)
            found = await self._store.load(embedder, dimension)
            self._rows = set(found)
            return found

    async def clear(self) -> None:
        """Delete every vector of the session, and write none of those that wait.

        Raises:
            VectorStoreError: The store cannot be reached; nothing has changed.
        """
        async with self._lock:
            await self._store.clear()
            self._unsaved, self._rows, self._doomed = {}, set(), {}

    async def save(self, *, strict: bool = False, erase: bool = False) -> None:
        """Write and delete what there is to write and to delete.

        Args:
            strict: Raise if the store cannot be reached, instead of trying again the next time.
            erase: If anything is to be deleted, leave no copy of it in our files; where a store
                cannot do that, it is written anew, which takes about a millisecond a vector.

        Raises:
            VectorStoreError: The store cannot be reached.
        """
        if self._readonly or not (self._unsaved or self._doomed or self._astray):
            return
        async with self._lock:
            try:
                if self._astray:
                    await self._read_again()
                if erase and self._doomed and self._store.leaves_traces:
                    await self._write_anew()
                while self._doomed or self._unsaved:
                    await (self._delete_doomed() if self._doomed else self._write_some())
            except VectorStoreError as error:
                self._astray = True
                if strict:
                    raise
                log.warning("%d vectors could not be written yet: %s", len(self._unsaved), error)

    async def _read_again(self) -> None:
        found = await self._store.load(*self._model)
        known = self._all_vectors()
        self._rows = set(found)
        self._doomed = {i: None for i in found if i not in known}
        self._unsaved = {
            i: kept for i, kept in known.items() if i not in found or found[i].mark != kept.mark
        }
        self._astray = False

    async def _write_anew(self) -> None:
        await self._store.clear()
        self._rows, self._doomed = set(), {}
        self._unsaved = self._all_vectors()

    async def _delete_doomed(self) -> None:
        doomed = [*self._doomed]
        if self._rows <= self._doomed.keys():
            await self._store.clear()
        else:
            await self._store.delete(doomed)
        for message_id in doomed:
            self._doomed.pop(message_id, None)
            self._rows.discard(message_id)

    async def _write_some(self) -> None:
        piece = dict(islice(self._unsaved.items(), self._store.write_rows))
        self._rows.update(piece)  # before they are written: who drops one now must delete it
        await self._store.add(piece)
        for message_id, kept in piece.items():
            if self._unsaved.get(message_id) is kept:
                del self._unsaved[message_id]

    async def aclose(self) -> None:
        """Write what waits, and let go of the store."""
        try:
            await self.save()
        finally:
            with anyio.CancelScope(shield=True):
                await self._store.aclose()
