"""Keeps three things in step with a record: the index beneath recall, its vectors, their store.

What happens to the record (:meth:`~VectorIndex.note`, :meth:`~VectorIndex.drop`,
:meth:`~VectorIndex.reset`) is only noted, at once and without awaiting;
:meth:`~VectorIndex.catch_up` does the work, in pieces: whoever is cut off loses nothing. As the
record may change while a piece is in work, the piece is then compared with it anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel

from agent_brain.memories.embedders import Embedder, embed_all
from agent_brain.memories.errors import EmbedderMismatchError
from agent_brain.memories.message import Message
from agent_brain.memories.vectors.embedding_queue import EmbeddingQueue, embedded
from agent_brain.memories.vectors.index_feed import IndexFeed, is_recalled
from agent_brain.memories.vectors.vector_writer import VectorWriter
from agent_brain.tools.secrets import get_logger

if TYPE_CHECKING:
    from agent_brain.memories.recall.index import RecallIndex
    from agent_brain.memories.vectors.chroma import ChromaVectors, Kept

log = get_logger(__name__)
PIECE = 256  # vectors that the index takes at once


class VectorIndex:
    """The messages of one session, ready to be searched.

    Args:
        embedder: Makes the vectors; None: there are none.
        store: Keeps them; None: they are in RAM only.
        readonly: Do not change what the store has.

    Attributes:
        loaded: What the store has is known.
    """

    def __init__(
        self, embedder: Embedder | None, store: ChromaVectors | None, *, readonly: bool = False
    ) -> None:
        self.embedder = embedder
        self.loaded = store is None
        self._writer = (
            None if store is None else VectorWriter(store, self.vectors, readonly=readonly)
        )
        self._embedding = anyio.Lock()
        self._feed = IndexFeed()
        self._queue = EmbeddingQueue()
        self._marks: dict[str, str] = {}  # of the texts whose vectors are in the index
        self._spare: dict[str, Kept] = {}  # vectors at hand which the index has not taken yet

    @property
    def words(self) -> RecallIndex | None:
        """The index beneath recall; None while there is no message."""
        return self._feed.index

    def note(self, messages: Iterable[Message]) -> None:
        """These messages are new."""
        self._feed.add(messages)

    def drop(self, ids: Sequence[str]) -> None:
        """These messages are gone."""
        for message_id in ids:
            self._queue.drop(message_id)
            self._marks.pop(message_id, None)
            self._spare.pop(message_id, None)
        if self._writer is not None:
            self._writer.drop(ids)
        self._feed.drop(ids)

    def reset(self) -> None:
        """All messages are gone; those that come back soon will not be embedded again."""
        self._spare = self.vectors()
        self._feed.reset()
        self._marks, self._queue = {}, EmbeddingQueue()

    @property
    def behind(self) -> bool:
        """Whether there are messages that cannot be found yet."""
        return bool(self._feed) or not self.loaded

    @property
    def waiting(self) -> bool:
        """Whether there is anything that :meth:`catch_up` could do."""
        doomed = self._writer is not None and self._writer.doomed
        return self.behind or bool(self._queue) or bool(self._spare) or doomed

    @property
    def failing(self) -> bool:
        """Whether the embedder failed when it was last asked."""
        return self._queue.failing

    def vectors(self) -> dict[str, Kept]:
        """All vectors that are known, by message id."""
        if self.embedder is None or self.words is None:
            return dict(self._spare)
        from agent_brain.memories.vectors.chroma import Kept

        found = self.words.vectors().items()
        return self._spare | {i: Kept(self._marks[i], v) for i, v in found if i in self._marks}

    def copied(self) -> VectorIndex:
        """One for a copy of the record: in RAM, empty, with these vectors at hand."""
        copy = VectorIndex(self.embedder, None)
        copy._spare = self.vectors()
        return copy

    async def index(self) -> None:
        """Make all messages findable by their words."""
        await self._feed.run(self._indexed)

    def _indexed(self, message: Message) -> None:
        if self.embedder is not None:
            self._queue.add(message.id, message.content)

    async def catch_up(self, *, strict: bool = False) -> None:
        """Make all messages findable, by their vectors too.

        Args:
            strict: Raise if the embedder fails, instead of trying again the next time.

        Raises:
            EmbedderMismatchError: The vectors that are here were made by another model.
            VectorStoreError: What the store has of the session cannot be read.
        """
        await self.index()
        if self.embedder is None:
            return
        async with self._embedding:
            if self._writer is not None and not self.loaded:
                found = await self._writer.load(self.embedder.name, self.embedder.dimension)
                self._spare = found | self._spare
                self.loaded = True
            await self._take_spare()
            await self._queue.embed(self.embedder, self._give_new, strict=strict)
            self._drop_rest()
        if self._writer is not None and self._writer.due:
            await self._writer.save()

    async def check_length(self, coming: Sequence[Message]) -> None:
        """Embed messages that are not recorded yet where it shows only then how long vectors are.

        Their vectors are kept for :meth:`catch_up`. An embedder that fails is left to it too.

        Raises:
            EmbedderMismatchError: They are of another length than those that are here.
        """
        embedder, known = self.embedder, self._known_length()
        if embedder is None or embedder.dimension is not None or known is None or self.failing:
            return
        texts = {m.id: m.content for m in coming if is_recalled(m)}
        texts = dict(islice(texts.items(), embedder.batch_size))
        if not texts:
            return
        from agent_brain.memories.vectors.chroma import Kept, mark_of

        try:
            vectors = await embed_all(embedder, [embedded(text) for text in texts.values()])
        except Exception:
            log.debug("Messages could not be embedded before they are recorded", exc_info=True)
            return
        self._check_lengths(embedder, known, vectors.shape[1])
        for (message_id, text), vector in zip(texts.items(), vectors, strict=True):
            self._spare[message_id] = Kept(mark_of(text), vector)

    def _known_length(self) -> int | None:
        if self.words is not None and self.words.dimension is not None:
            return self.words.dimension
        return next((len(kept.vector) for kept in self._spare.values()), None)

    def _check_lengths(self, embedder: Embedder, known: int | None, given: int) -> None:
        if known not in (None, given):
            name = embedder.name
            raise EmbedderMismatchError(f"{name}, {known} numbers", f"{name}, {given} numbers")

    async def begin_anew(self, messages: Iterable[Message]) -> None:
        """Index and embed ``messages`` and nothing else, whatever was known so far.

        Raises:
            EmbeddingError: The embedder fails.
            VectorStoreError: The store cannot be reached.
        """
        async with self._feed.lock, self._embedding:
            if self._writer is not None:
                await self._writer.clear()
                self.loaded = False
            self.reset()
            self._spare = {}
            self.note(messages)
        await self.catch_up(strict=True)
        await self.save(strict=True)

    async def save(self, *, strict: bool = False, erase: bool = False) -> None:
        """As :meth:`VectorWriter.save`."""
        if self._writer is not None and self.loaded:
            await self._writer.save(strict=strict, erase=erase)

    async def save_if_due(self) -> None:
        """Write to the store when enough vectors wait for it."""
        if self._writer is not None and self._writer.due:
            await self.save()

    async def aclose(self) -> None:
        """Write what waits, and let go of the store."""
        if self._writer is not None:
            await self._writer.aclose()

    async def _take_spare(self) -> None:
        """Give the vectors that are at hand to the messages that they are of."""
        if not self._spare:
            return
        from agent_brain.memories.vectors.chroma import mark_of

        fitting = [
            (message_id, text)
            for message_id, text in self._queue.waiting().items()
            if message_id in self._spare and self._spare[message_id].mark == mark_of(text)
        ]
        for start in range(0, len(fitting), PIECE):
            texts = {i: text for i, text in fitting[start : start + PIECE] if i in self._spare}
            if texts:
                vectors = [self._spare.pop(message_id).vector for message_id in texts]
                kept = self._give(texts, vectors)
                if self._writer is not None:
                    self._writer.put_unknown(kept)
            await anyio.lowlevel.checkpoint()

    def _give_new(self, texts: Mapping[str, str], vectors: Iterable[Any]) -> None:
        kept = self._give(texts, vectors)
        if self._writer is not None:
            for message_id, vector in kept.items():
                self._writer.put(message_id, vector)

    def _give(self, texts: Mapping[str, str], vectors: Iterable[Any]) -> dict[str, Kept]:
        """Put vectors into the index, unless a text has gone or changed meanwhile."""
        import numpy as np

        from agent_brain.memories.vectors.chroma import Kept, mark_of

        if self.words is None or self.embedder is None:
            return {}
        vectors = list(vectors)
        self._check_lengths(self.embedder, self.words.dimension, len(vectors[0]))
        given_to = {
            message_id: Kept(mark_of(text), vector)
            for (message_id, text), vector in zip(texts.items(), vectors, strict=True)
            if self._queue.take(message_id, text)
        }
        if given_to:
            matrix = np.stack([kept.vector for kept in given_to.values()])
            self.words.set_vectors([*given_to], matrix)
            self._marks.update((i, kept.mark) for i, kept in given_to.items())
        return given_to

    def _drop_rest(self) -> None:
        """Vectors that no message has claimed are of messages that are gone."""
        if not self._feed and self._spare:
            rest = [message_id for message_id in self._spare if message_id not in self._marks]
            self._spare = {}
            if self._writer is not None:
                self._writer.drop(rest)
