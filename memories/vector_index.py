"""Keeps three things in step with a record: the index beneath recall, its vectors, their store.

What is told of messages (:meth:`~VectorIndex.note`, :meth:`~VectorIndex.drop`,
:meth:`~VectorIndex.reset`) is only noted, at once and without awaiting; :meth:`~VectorIndex.index`,
:meth:`~VectorIndex.catch_up` and :meth:`~VectorIndex.save` do the work. Each takes a piece, does it,
and only then strikes it from the list: whoever is cut off in between loses nothing, and what was
dropped or said anew meanwhile is seen, as every piece is compared with the list as it is then.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import anyio.to_thread

from agent_brain.memories.embedders import Embedder, embed_all
from agent_brain.memories.errors import EmbedderMismatchError, VectorStoreError
from agent_brain.memories.message import Message, Role
from agent_brain.tools.text import shorten

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from agent_brain.memories.chroma import ChromaVectors, Kept
    from agent_brain.memories.recall import RecallIndex

log = logging.getLogger(__name__)
SAVE_AT = 64  # vectors that wait to be written to Chroma; until then they are in RAM only
PIECE = 256  # messages that are indexed in one go
PIECE_LETTERS = 100_000
ON_LOOP, ON_LOOP_LETTERS = 32, 20_000  # a piece that is so small needs no thread
EMBEDDED_TOKENS = 2_000  # of a message; what a huge one is about shows in its head and its tail


class VectorIndex:
    """The messages of one session, ready to be searched.

    Args:
        embedder: Makes the vectors; None: there are none.
        store: Keeps them; None: they are in RAM only.
    """

    def __init__(self, embedder: Embedder | None, store: ChromaVectors | None) -> None:
        self.embedder = embedder
        self.words: RecallIndex | None = None  # None while there is no message
        self.loaded = store is None  # whether what the store has is known
        self.failing = False  # the embedder has failed when it was last asked
        self._store = store
        self._indexing, self._embedding, self._saving = anyio.Lock(), anyio.Lock(), anyio.Lock()
        self._unindexed: dict[str, Message] = {}
        self._unembedded: dict[str, str] = {}
        self._refused: dict[str, str] = {}  # the embedder has failed on a batch with these
        self._together = 1  # so many of them are tried at once
        self._marks: dict[str, str] = {}  # of the texts whose vectors are in the index
        self._spare: dict[str, Kept] = {}  # vectors at hand which the index has not taken yet
        self._unsaved: dict[str, Kept] = {}
        self._rows: set[str] = set()  # ids that are in the store, or may be
        self._doomed: dict[str, None] = {}  # those of them that must go
        self._astray = False  # the store has failed, so what it has must be read again

    # What happens to the record

    def note(self, messages: Iterable[Message]) -> None:
        """These messages are new."""
        for message in messages:
            if message.role is not Role.SYSTEM and message.content.strip():
                self._unindexed[message.id] = message

    def drop(self, ids: Sequence[str]) -> None:
        """These messages are gone."""
        lists: tuple[dict[str, Any], ...] = (
            self._unindexed, self._unembedded, self._refused,
            self._marks, self._spare, self._unsaved,
        )  # fmt: skip
        for message_id in ids:
            for waiting in lists:
                waiting.pop(message_id, None)
            if message_id in self._rows:
                self._doomed[message_id] = None
        if self.words is not None:
            self.words.remove(ids)

    def reset(self) -> None:
        """All messages are gone; those that come back soon will not be embedded again."""
        self._spare |= self.vectors()
        self.words = None
        self._unindexed, self._unembedded, self._refused, self._marks = {}, {}, {}, {}

    # What is at hand

    @property
    def behind(self) -> bool:
        """Whether there are messages that cannot be found yet."""
        return bool(self._unindexed) or not self.loaded

    @property
    def waiting(self) -> bool:
        """Whether there is anything that :meth:`catch_up` could do."""
        return self.behind or bool(self._unembedded or self._refused or self._doomed)

    def vectors(self) -> dict[str, Kept]:
        """All vectors that are known, by message id."""
        if self.embedder is None or self.words is None:
            return {}
        from agent_brain.memories.chroma import Kept

        found = self.words.vectors().items()
        return self._spare | {i: Kept(self._marks[i], v) for i, v in found if i in self._marks}

    def copied(self) -> VectorIndex:
        """One for a copy of the record: in RAM, empty, with these vectors at hand."""
        copy = VectorIndex(self.embedder, None)
        copy._spare = self.vectors()
        return copy

    # Catching up

    async def index(self) -> None:
        """Make all messages findable by their words."""
        async with self._indexing:
            while self._unindexed:
                await self._index_piece(self._next_piece())

    async def catch_up(self, *, strict: bool = False) -> None:
        """Make all messages findable, by their vectors too.

        Args:
            strict: Raise if the embedder fails, instead of trying again the next time.

        Raises:
            EmbedderMismatchError: The vectors that are here were made by another model.
            VectorStoreError: The vectors of the session cannot be read for the first time.
        """
        await self.index()
        if self.embedder is None:
            return
        async with self._embedding:
            if not self.loaded:
                await self._load(self.embedder)
            await self._take_spare()
            await self._embed(self.embedder, strict=strict)
            self._doom_rest()
        if self._doomed or len(self._unsaved) >= SAVE_AT:
            await self.save()

    async def begin_anew(self, messages: Iterable[Message]) -> None:
        """Index and embed ``messages`` and nothing else, whatever was known so far.

        Raises:
            EmbeddingError: The embedder fails.
            VectorStoreError: The store cannot be reached.
        """
        async with self._embedding, self._saving:
            if self._store is not None:
                await self._store.clear()
            self.reset()
            for known in (self._spare, self._unsaved, self._doomed, self._rows):
                known.clear()
            self.loaded = self._store is None
        self.note(messages)
        await self.catch_up(strict=True)
        await self.save(strict=True)

    def _next_piece(self) -> list[Message]:
        piece: list[Message] = []
        letters = 0
        for message in islice(self._unindexed.values(), PIECE):
            if piece and letters + len(message.content) > PIECE_LETTERS:
                break
            piece.append(message)
            letters += len(message.content)
        return piece

    async def _index_piece(self, piece: Sequence[Message]) -> None:
        from agent_brain.memories.recall import Item, RecallIndex

        if self.words is None:
            self.words = RecallIndex()
        words = self.words
        items = [
            Item(
                id=message.id,
                text=message.content,
                sender=message.name or message.sent_from,
                time=message.created_at,
                thread=_thread(message),
                role=message.role.value,
            )
            for message in piece
        ]
        letters = sum(len(item.text) for item in items)
        if len(items) > ON_LOOP or letters > ON_LOOP_LETTERS:
            await anyio.to_thread.run_sync(words.add, items)
        else:
            words.add(items)
        if words is not self.words:
            return
        for message in piece:
            if self._unindexed.get(message.id) is not message:
                words.remove([message.id])  # it was dropped meanwhile
                continue
            del self._unindexed[message.id]
            if self.embedder is not None:
                self._unembedded[message.id] = message.content

    async def _load(self, embedder: Embedder) -> None:
        assert self._store is not None
        found = await self._store.load(embedder.name, embedder.dimension)
        self._rows = set(found)
        self._spare = found | self._spare
        self.loaded = True

    async def _take_spare(self) -> None:
        """Give the vectors that are at hand to the messages that they are of."""
        from agent_brain.memories.chroma import digest

        ready: dict[str, str] = {}
        for message_id, text in list(self._unembedded.items()):
            kept = self._spare.get(message_id)
            if kept is not None and kept.mark == digest(text, 16):
                ready[message_id] = text
            if len(ready) == PIECE:
                self._take(ready)
                ready = {}
                await anyio.lowlevel.checkpoint()
        self._take(ready)

    def _take(self, ready: dict[str, str]) -> None:
        found = {i: self._spare[i] for i in ready if i in self._spare and i in self._unembedded}
        if found:
            texts = {message_id: ready[message_id] for message_id in found}
            self._give(texts, [kept.vector for kept in found.values()])
            for message_id in found:
                self._spare.pop(message_id, None)

    async def _embed(self, embedder: Embedder, *, strict: bool) -> None:
        while self._unembedded:
            batch = dict(islice(self._unembedded.items(), embedder.batch_size))
            if not await self._try(embedder, batch, strict=strict):
                for message_id in batch:
                    if message_id in self._unembedded:
                        self._refused[message_id] = self._unembedded.pop(message_id)
                self._together = max(1, len(batch) // 2)
                return
        while self._refused:  # in ever smaller batches, so that one bad text does not stop the rest
            batch = dict(islice(self._refused.items(), self._together))
            if not await self._try(embedder, batch, strict=strict):
                for message_id in batch:
                    if message_id in self._refused:
                        self._refused[message_id] = self._refused.pop(message_id)
                self._together = max(1, len(batch) // 2)
                return
            self._together = min(2 * self._together, embedder.batch_size)

    async def _try(self, embedder: Embedder, batch: dict[str, str], *, strict: bool) -> bool:
        texts = [shorten(text, EMBEDDED_TOKENS) for text in batch.values()]
        try:
            vectors = await embed_all(embedder, texts)
        except Exception:
            self.failing = True
            if strict:
                raise
            log.warning("%d messages could not be embedded yet", len(batch), exc_info=True)
            return False
        self.failing = False
        self._give(batch, vectors)
        if self._store is not None:
            from agent_brain.memories.chroma import Kept

            for message_id, vector in zip(batch, vectors, strict=True):
                if message_id in self._marks:
                    self._unsaved[message_id] = Kept(self._marks[message_id], vector)
        return True

    def _give(self, texts: dict[str, str], vectors: Sequence[Any]) -> None:
        """Put vectors into the index, unless a text has gone or changed meanwhile."""
        import numpy as np

        from agent_brain.memories.chroma import digest

        if self.words is None or self.embedder is None:
            return
        known, given = self.words.dimension, len(vectors[0])
        if known not in (None, given):
            name = self.embedder.name
            raise EmbedderMismatchError(f"{name}, {known} numbers", f"{name}, {given} numbers")
        here = {}
        for (message_id, text), vector in zip(texts.items(), vectors, strict=True):
            for waiting in (self._unembedded, self._refused):
                if waiting.get(message_id) == text:
                    del waiting[message_id]
                    here[message_id] = vector
                    self._marks[message_id] = digest(text, 16)
        if here:
            self.words.set_vectors([*here], np.stack([*here.values()]))

    def _doom_rest(self) -> None:
        """Vectors that no message has claimed are of messages that are gone."""
        if self._unindexed or not self._spare:
            return
        self._doomed.update(dict.fromkeys(i for i in self._spare if i in self._rows))
        for message_id in self._spare:
            self._unsaved.pop(message_id, None)
        self._spare = {}

    # Keeping

    async def save(self, *, strict: bool = False) -> None:
        """Write to the store what waits to be written, and delete what is doomed.

        Args:
            strict: Raise if the store cannot be reached, instead of trying again the next time.

        Raises:
            VectorStoreError: The store cannot be reached.
        """
        store = self._store
        if store is None or not self.loaded or not (self._unsaved or self._doomed or self._astray):
            return
        async with self._saving:
            try:
                if self._astray:
                    await self._read_again(store)
                while self._doomed or self._unsaved:
                    await self._save_piece(store)
            except VectorStoreError as error:
                self._astray = True
                if strict:
                    raise
                log.warning("%d vectors could not be written yet: %s", len(self._unsaved), error)

    async def _read_again(self, store: ChromaVectors) -> None:
        assert self.embedder is not None
        found = await store.load(self.embedder.name, self.embedder.dimension)
        known = self.vectors()
        self._rows = set(found)
        self._doomed = {i: None for i in found if i not in known}
        self._unsaved = {
            i: kept for i, kept in known.items() if i not in found or found[i].mark != kept.mark
        }
        self._astray = False

    async def _save_piece(self, store: ChromaVectors) -> None:
        if self._doomed:
            doomed = [*self._doomed]
            if self._rows <= self._doomed.keys():
                await store.clear()
            else:
                await store.delete(doomed)
            for message_id in doomed:
                self._doomed.pop(message_id, None)
                self._rows.discard(message_id)
            return
        piece = dict(islice(self._unsaved.items(), store.write_rows))
        self._rows.update(piece)  # before it is written: who drops one now must delete it
        await store.add(piece)
        for message_id, kept in piece.items():
            if self._unsaved.get(message_id) is kept:
                del self._unsaved[message_id]

    async def aclose(self) -> None:
        """Write what waits, and let go of the store; it is read again if it is used again."""
        if self._store is None:
            return
        try:
            await self.save()
        finally:
            with anyio.CancelScope(shield=True):
                await self._store.aclose()


def _thread(message: Message) -> str | None:
    thread = message.metadata.get("thread")
    return thread if isinstance(thread, str) else None
