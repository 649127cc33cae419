"""Writes and deletes the vectors of a session in its store, in pieces."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from itertools import islice

import anyio

from agent_brain.memories.errors import VectorStoreError
from agent_brain.memories.vectors.chroma import ChromaStore, Row
from agent_brain.tools.secrets import get_logger

log = get_logger(__name__)
SAVE_AT = 64  # vectors that wait to be stored; until then they are in RAM only


class StoredVectors:
    """The vectors of a session in its store.

    Each piece is removed from its list when it is done, so nothing is lost if a call is cancelled
    or more is added meanwhile.

    Args:
        store: Stores the vectors; it may be readonly.
        rows: Returns all vectors in RAM.
        compared: Called when the store was read again.
        shared: Other writers use the store too.

    Attributes:
        shared: As given.
        marks: The fingerprints of all that is stored, by message ID; None until they are read.
        to_delete: IDs that are to be deleted from the store.
        unsure: The store has failed, so it must be read again.
    """

    def __init__(
        self,
        store: ChromaStore,
        rows: Callable[[], dict[str, Row]],
        compared: Callable[[], Awaitable[None]],
        *,
        shared: bool,
    ) -> None:
        self.store = store
        self.shared = shared
        self.marks: dict[str, str] | None = None
        self.to_delete: dict[str, None] = {}
        self.unsure = False
        self._rows, self._compared = rows, compared
        self._unsaved: dict[str, Row] = {}
        self._lock = anyio.Lock()

    @property
    def due(self) -> bool:
        """Whether it is time to :meth:`save`."""
        return bool(self.to_delete) or len(self._unsaved) >= (1 if self.shared else SAVE_AT)

    def put(self, rows: Mapping[str, Row]) -> None:
        """Add vectors that the store does not have."""
        if not self.store.readonly:
            marks = self.marks or {}
            self._unsaved.update((i, row) for i, row in rows.items() if marks.get(i) != row.mark)

    def remove(self, ids: Iterable[str]) -> None:
        """Delete vectors; unknown IDs are ignored."""
        for message_id in ids:
            self._unsaved.pop(message_id, None)
            if self.marks is None or message_id in self.marks:
                self.to_delete[message_id] = None

    def read(self, marks: dict[str, str]) -> None:
        """Note what the store has."""
        self.marks, self.store.lost = marks, False
        self.to_delete = {i: None for i in self.to_delete if i in marks}

    async def clear(self) -> None:
        """Delete everything, also what waits to be written."""
        async with self._lock:
            await self.store.clear()
            self.marks, self.to_delete, self._unsaved = None, {}, {}

    async def save(self, *, strict: bool = False, erase: bool = False) -> None:
        """Write and delete what there is to write and to delete; see VectorPipeline.save()."""
        if self.store.readonly or not (self._unsaved or self.to_delete or self.unsure):
            return
        async with self._lock:
            try:
                if self.marks is None or self.unsure:
                    await self._compare()
                erase = bool(erase and self.to_delete and self.store.leaves_traces)
                if erase:
                    await self._rewrite()
                while self.to_delete or self._unsaved:
                    await (self._delete() if self.to_delete else self._write())
                    if self.store.lost:
                        await self._compare()
                if erase:
                    await self.store.blank()
            except VectorStoreError as error:
                self.unsure = True
                if strict:
                    raise
                log.warning("%d vectors could not be stored yet: %s", len(self._unsaved), error)

    async def _compare(self) -> None:
        """Read again what the store has, and note what it lacks and what it should not have."""
        marks = await self.store.marks()
        self.read(marks)
        self.unsure = False
        self._unsaved = {i: row for i, row in self._rows().items() if marks.get(i) != row.mark}
        await self._compared()

    async def _rewrite(self) -> None:
        """Empty the store, to be written again without what is deleted."""
        marks = await self.store.marks() if self.shared else self.marks or {}
        rows = {i: row for i, row in self._rows().items() if i not in self.to_delete}
        missing = {i: m for i, m in marks.items() if i not in rows and i not in self.to_delete}
        found = await self.store.get(missing)
        rows |= {message_id: Row(missing[message_id], v) for message_id, v in found.items()}
        await self.store.clear()
        self.marks, self.to_delete, self._unsaved = {}, {}, rows

    async def _delete(self) -> None:
        marks = self.marks if self.marks is not None else {}
        deleted, self.to_delete = self.to_delete, {}
        rows = {i: marks.pop(i) for i in deleted if i in marks}  # before they are deleted
        if not rows:
            return
        try:
            await (self.store.delete(rows) if marks or self.shared else self.store.clear())
        except BaseException:
            self.to_delete = deleted | self.to_delete
            marks.update(rows)
            raise

    async def _write(self) -> None:
        marks = self.marks if self.marks is not None else {}
        piece = dict(islice(self._unsaved.items(), self.store.write_rows))
        old = {i: marks[i] for i, row in piece.items() if marks.get(i, row.mark) != row.mark}
        if old:
            await self.store.delete(old)
        # noted before they are written: who removes one now must delete it
        marks.update((message_id, row.mark) for message_id, row in piece.items())
        await self.store.add(piece)
        for message_id, row in piece.items():
            if self._unsaved.get(message_id) is row:
                del self._unsaved[message_id]
