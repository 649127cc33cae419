"""Indexes and embeds the messages of a session, and has their vectors stored.

Changes of the log (:meth:`~VectorPipeline.add`, :meth:`~VectorPipeline.remove`,
:meth:`~VectorPipeline.reset`) are noted at once and without awaiting.
:meth:`~VectorPipeline.catch_up` does the work in pieces and removes each from its list when it is
done, so nothing is lost if it is cancelled. The log may change meanwhile, so the result of each
piece is checked against the lists.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread

from agent_brain.memories.embedders import Embedder, embed_all
from agent_brain.memories.errors import EmbedderMismatchError, EmbeddingError, VectorStoreError
from agent_brain.memories.message import Message, Role
from agent_brain.memories.store.log import MessageLog
from agent_brain.memories.vectors.chroma import ChromaStore, Row, mark_of
from agent_brain.memories.vectors.stored import StoredVectors
from agent_brain.tools.secrets import get_logger
from agent_brain.tools.text import shorten

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from agent_brain.memories.recall.index import RecallIndex

T = TypeVar("T")
log = get_logger(__name__)
EMBEDDED_TOKENS = 2_000  # of a message; of a longer one the beginning and the end are embedded
EAGER = 5_000  # messages that are indexed when a session is opened, not when it is first searched
EXACT = 20_000  # vectors that are all loaded into RAM; of more, Chroma's index is queried
SAMPLE = 2_000  # vectors of a larger session in RAM, for the mean and the spread
PIECE, PIECE_LETTERS = 256, 100_000  # the most messages and characters that are indexed at once
SWEPT = 5_000  # messages or vectors that are listed or compared at once
ON_LOOP, ON_LOOP_LETTERS = 32, 20_000  # a smaller piece needs no thread


class VectorPipeline:
    """The messages of one session, ready to be searched.

    Args:
        embedder: Makes the vectors; None for a memory without vectors.
        store: Stores them; None to keep them in RAM.
        shared: Other writers add messages to the session too. Their vectors are looked for in the
            store before a text is embedded, and new ones are stored at once. If two writers embed
            the same text at the same time, the store keeps one vector.

    Attributes:
        index: What recall searches; None as long as it is empty.
        failing: The embedder failed when it was last called.
        awake: Messages are indexed and embedded as they come. A large session that was only opened
            is indexed when it is first searched.
    """

    def __init__(
        self, embedder: Embedder | None, store: ChromaStore | None, *, shared: bool = False
    ) -> None:
        self.embedder = embedder
        self.stored: StoredVectors | None = None
        if embedder is not None and store is not None:
            self._use(store, embedder, shared=shared)
        self.index: RecallIndex | None = None
        self.failing = False
        self.awake = True
        self._indexing, self._embedding = anyio.Lock(), anyio.Lock()
        self._log = MessageLog()
        self._unread = True  # the log may have any number of messages that are not noted below
        self._unindexed: dict[str, None] = {}
        self._unchecked: dict[str, str] = {}  # texts that may have a vector already
        self._fresh: dict[str, str] = {}  # texts to embed
        self._refused: dict[str, str] = {}  # texts on which the embedder has failed
        self._together = 1  # how many of the refused are tried at once
        self._marks: dict[str, str] = {}  # of the texts that have vectors, in RAM or elsewhere
        self._known: dict[str, Row] = {}  # vectors that the index does not have yet
        self._connected = False
        self._sampled = False
        self._swept = True  # the store has nothing that no message claims

    @property
    def store(self) -> ChromaStore | None:
        """What stores the vectors."""
        return None if self.stored is None else self.stored.store

    def _use(self, store: ChromaStore, embedder: Embedder, *, shared: bool = False) -> None:
        store.model = embedder.name, embedder.dimension
        self.stored = StoredVectors(store, self.rows, self._compared, shared=shared)

    # Changes of the log

    def attach(self, log: MessageLog) -> None:
        """Read messages from ``log`` from now on."""
        self._log = log

    def add(self, messages: Iterable[Message]) -> None:
        """Add messages, which are in the log, to be indexed by the next :meth:`catch_up`."""
        if not self._unread:
            self._unindexed.update((message.id, None) for message in messages)

    def remove(self, messages: Iterable[Message]) -> None:
        """Remove messages at once."""
        ids = [message.id for message in messages]
        lists = (self._unindexed, self._unchecked, self._fresh, self._refused, self._marks)
        for message_id in ids:
            for each in (*lists, self._known):
                each.pop(message_id, None)
        if self.stored is not None:
            self.stored.remove(ids)
        if self.index is not None:
            self.index.remove(ids)

    def reset(self) -> None:
        """Start again with the messages of the log; they are not embedded again."""
        self._known = self.rows()
        self.index = None
        for each in (self._unindexed, self._unchecked, self._fresh, self._refused, self._marks):
            each.clear()
        self._unread, self._sampled, self._swept = True, False, False

    def fresh(self) -> VectorPipeline:
        """Return a pipeline for a copy of the log: empty, but it knows these vectors."""
        copy = VectorPipeline(self.embedder, None)
        copy._known = self.rows()
        partial = self.index is not None and self.index.partial
        if self.stored is None or self.embedder is None:
            return copy
        if self.stored.marks is None or partial:
            copy._use(self.stored.store.reader(), self.embedder)
        return copy

    def rest_if_large(self) -> None:
        """Leave the work to the first search if there is much of it."""
        self.awake = not self._unread or len(self._log) <= EAGER

    # State

    @property
    def behind(self) -> bool:
        """Whether there are messages that cannot be found yet."""
        unlisted = self._unread and len(self._log) > 0
        unread = self.stored is not None and self.stored.marks is None
        unsampled = not self._sampled and self.index is not None and self.index.partial
        return unlisted or bool(self._unindexed or self._unchecked) or unread or unsampled

    @property
    def waiting(self) -> bool:
        """Whether there is work for :meth:`catch_up`."""
        deleted = self.stored is not None and self.stored.to_delete
        lists = (self._unchecked, self._fresh, self._refused, self._known, deleted)
        return self.behind or any(lists)

    @property
    def due(self) -> bool:
        """Whether it is time to :meth:`save`."""
        return self.stored is not None and self.stored.due

    def rows(self) -> dict[str, Row]:
        """Return all vectors in RAM by message ID."""
        if self.embedder is None or self.index is None:
            return dict(self._known)
        found = self.index.vectors().items()
        return self._known | {i: Row(self._marks[i], v) for i, v in found if i in self._marks}

    # Work

    async def connect(self) -> None:
        """Connect the store.

        Raises:
            EmbedderMismatchError: The session was embedded by another model.
            VectorStoreError: The store cannot be reached.
        """
        if self.store is not None and self.embedder is not None and not self._connected:
            await self.store.open(self.embedder.name, self.embedder.dimension)
            self._connected = True

    async def wake(self) -> None:
        """Make all messages findable, also in a large session that was only opened."""
        self.awake = True
        if self.behind:
            await self.catch_up()

    async def catch_up(self, *, strict: bool = False, embed: bool = True) -> None:
        """Make all messages findable, by their vectors too.

        Args:
            strict: Raise if the embedder fails, instead of trying again the next time.
            embed: Embed them; else they are found by their words until the next time.

        Raises:
            EmbedderMismatchError: The vectors that are here were made by another model.
            VectorStoreError: What the store has of the session cannot be read.
        """
        if not self.awake:
            return
        async with self._indexing:
            if self._unread:
                await self._list_messages()
            while self._unindexed:
                await self._index_piece()
        if self.embedder is None or not embed:
            return
        async with self._embedding:
            await self._read_store()
            await self._check_texts()
            await self._embed_texts(self.embedder, strict=strict)
            await self._sweep()
        if self.due:
            await self.save()

    async def _list_messages(self) -> None:
        self._unread, ids = False, [*self._log.ids()]
        if self._log.moved:
            ids.sort(key=self._log.place)  # as they were added
        try:
            for start in range(0, len(ids), SWEPT):
                self._unindexed.update(dict.fromkeys(ids[start : start + SWEPT]))
                await anyio.lowlevel.checkpoint()
        except BaseException:  # it was cancelled
            self._unread = True
            raise

    async def _index_piece(self) -> None:
        log, letters = self._log, 0
        piece: dict[str, Message | str | None] = {}
        for message_id in islice(self._unindexed, PIECE):
            message = log.peek(message_id)
            letters += _length(message)
            if piece and letters > PIECE_LETTERS:
                break
            piece[message_id] = message
        if self.index is None:
            self.index = await anyio.to_thread.run_sync(_new_index)
        index, messages = self.index, list(piece.values())
        if len(messages) > ON_LOOP or letters > ON_LOOP_LETTERS:
            texts = await anyio.to_thread.run_sync(_index, index, messages)
        else:
            texts = _index(index, messages)
        if index is not self.index:  # there was a reset meanwhile
            return
        for message_id, message in piece.items():
            if log.peek(message_id) is not message:  # it was removed or changed meanwhile
                index.remove([message_id])
                continue
            self._unindexed.pop(message_id, None)
            if self.embedder is not None and message_id in texts:
                self._unchecked[message_id] = texts[message_id]

    async def _read_store(self) -> None:
        """Learn what the store has, and load it if it is not too much."""
        stored = self.stored
        if stored is None or stored.marks is not None:
            return
        await self.connect()
        marks = await stored.store.marks()  # its own count() would hold the global lock
        if len(marks) <= EXACT:
            rows = await stored.store.load()
            self._known = rows | self._known
            marks = {message_id: row.mark for message_id, row in rows.items()}
        stored.read(marks)
        self._swept = False

    async def _check_texts(self) -> None:
        """Find out which texts have a vector already, and which need one."""
        if self.stored is not None and self.stored.shared and self._unchecked:
            await self._look_up(self.stored)
        while self._unchecked:
            self._check_piece(dict(islice(self._unchecked.items(), PIECE)))
            await anyio.lowlevel.checkpoint()
        if not self._sampled and self.index is not None and self.index.partial:
            await self._load_sample(self.index)
            self._sampled = True

    def _check_piece(self, texts: Mapping[str, str]) -> None:
        stored = (self.stored and self.stored.marks) or {}
        near, far = {}, {}
        for message_id, text in texts.items():
            mark, row = mark_of(text), self._known.pop(message_id, None)
            if self.stored is not None and stored.get(message_id) == mark:
                self.stored.to_delete.pop(message_id, None)
            if row is not None and row.mark == mark:
                near[message_id] = row
            elif stored.get(message_id) == mark:
                far[message_id] = mark
            else:
                self._fresh[message_id] = text
        self._place(near)
        if self.index is not None and far:
            self.index.set_vectors_elsewhere(far)
            self._marks.update(far)
        for message_id in texts:
            self._unchecked.pop(message_id, None)

    async def _look_up(self, stored: StoredVectors) -> None:
        """Fetch vectors that another writer has stored since the store was read."""
        known = stored.marks if stored.marks is not None else {}
        marks = {i: mark_of(text) for i, text in self._unchecked.items() if i not in known}
        found = await stored.store.get(marks)
        self._known.update((i, Row(marks[i], vector)) for i, vector in found.items())
        known.update((message_id, marks[message_id]) for message_id in found)

    async def _load_sample(self, index: RecallIndex) -> None:
        """Load some vectors of a large session, evenly spread over it."""
        missing = SAMPLE - index.in_ram
        if missing > 0 and self.store is not None:
            marks = {i: self._marks[i] for i in index.vectors_elsewhere(missing)}
            found = await self.store.get(marks)
            still = {i: vector for i, vector in found.items() if self._marks.get(i) == marks[i]}
            if still and index is self.index:
                await anyio.to_thread.run_sync(index.set_vectors, [*still], [*still.values()])

    async def nearest(
        self, vector: NDArray[np.float32], count: int, others: Callable[[], Iterable[str]]
    ) -> dict[str, float]:
        """Return the cosines of about the ``count`` nearest messages in the store, and of others.

        Args:
            vector: What is compared with.
            count: How many messages.
            others: Returns the IDs of the others; called in a worker thread.

        Raises:
            VectorStoreError: The store cannot be reached.
        """
        if self.stored is None:
            return {}
        await self.connect()
        marks = self._marks
        try:
            return await self.stored.store.nearest(
                vector, count, lambda: {i: marks[i] for i in others() if i in marks}
            )
        except VectorStoreError:
            self.stored.unsure = True
            raise

    async def _embed_texts(self, embedder: Embedder, *, strict: bool) -> None:
        """Embed what waits, in batches of like length, as models pad a batch to its longest text.

        A batch on which the embedder fails is tried again the next time, in smaller and smaller
        parts and after new texts, so that a text that no model accepts does not block the others.
        """
        if len(self._fresh) > embedder.batch_size:
            self._fresh = dict(sorted(self._fresh.items(), key=lambda pair: len(pair[1])))
        while self._fresh or self._refused:
            again = not self._fresh
            among = self._refused if again else self._fresh
            batch = dict(islice(among.items(), self._together if again else embedder.batch_size))
            if not await self._embed_batch(embedder, batch, strict=strict):
                for message_id in batch:
                    if message_id in among:
                        self._refused[message_id] = among.pop(message_id)
                self._together = max(1, len(batch) // 2)
                return
            if again:
                self._together = min(2 * self._together, embedder.batch_size)

    async def _embed_batch(
        self, embedder: Embedder, batch: dict[str, str], *, strict: bool
    ) -> bool:
        try:
            vectors = await embed_all(embedder, [embedded(text) for text in batch.values()])
        except Exception as error:
            if not strict:
                log.log(
                    logging.DEBUG if self.failing else logging.WARNING,  # once, not at each use
                    "%d messages could not be embedded, so recall finds them only by their words "
                    "until the embedder works: %s",
                    len(batch),
                    error,
                    exc_info=not isinstance(error, EmbeddingError),
                )
            self.failing = True
            if strict:
                raise
            return False
        self.failing = False
        wanted: dict[str, Row] = {}
        for (message_id, text), vector in zip(batch.items(), vectors, strict=True):
            if text in (self._fresh.get(message_id), self._refused.get(message_id)):
                wanted[message_id] = Row(mark_of(text), vector)
        self._place(wanted)
        for message_id in wanted:
            self._fresh.pop(message_id, None)
            self._refused.pop(message_id, None)
        return True

    def _place(self, rows: Mapping[str, Row]) -> None:
        """Give vectors to the index, and to the store if it does not have them.

        Raises:
            EmbedderMismatchError: They are of another length than those that are here.
        """
        if not rows or self.index is None:
            return
        vectors = [row.vector for row in rows.values()]
        self._check_length(self.index.dimension, len(vectors[0]))
        self.index.set_vectors([*rows], vectors)
        self._marks.update((message_id, row.mark) for message_id, row in rows.items())
        if self.stored is not None:
            self.stored.put(rows)

    def _check_length(self, known: int | None, given: int) -> None:
        if known not in (None, given) and self.embedder is not None:
            name = self.embedder.name
            raise EmbedderMismatchError(f"{name}, {known} numbers", f"{name}, {given} numbers")

    async def _sweep(self) -> None:
        """Delete the vectors of messages that are gone."""
        if self._swept or self._unindexed or self._unchecked:
            return
        self._known = {}
        stored = self.stored
        if stored is not None and not stored.shared:  # others write for messages not read yet
            ids = list(stored.marks or ())
            for start in range(0, len(ids), SWEPT):
                gone = [i for i in ids[start : start + SWEPT] if i not in self._log]
                stored.to_delete.update(dict.fromkeys(gone))
                await anyio.lowlevel.checkpoint()
                if self._unread:  # there was a reset meanwhile
                    return
        self._swept = True

    async def _compared(self) -> None:
        """Look for a message whose vector the store should have and lacks: embed it again."""
        self._swept = False
        if not self.awake or self.index is None or self.stored is None:
            return
        marks = self.stored.marks or {}
        for message_id in self.index.vectors_elsewhere():
            if marks.get(message_id) != self._marks.get(message_id):
                message = self._log.get(message_id)
                if message is not None:
                    self._unchecked[message_id] = message.content
        await self._sweep()

    async def check_length(self, coming: Sequence[Message]) -> None:
        """Embed messages before they are recorded if only that shows how long the vectors are.

        Their vectors are used by :meth:`catch_up`, which also deals with an embedder that fails.

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
        try:
            vectors = await embed_all(embedder, [embedded(text) for text in texts.values()])
        except Exception:
            log.debug("Messages could not be embedded before they are recorded", exc_info=True)
            return
        self._check_length(known, vectors.shape[1])
        for (message_id, text), vector in zip(texts.items(), vectors, strict=True):
            self._known[message_id] = Row(mark_of(text), vector)

    def _known_length(self) -> int | None:
        if self.index is not None and self.index.dimension is not None:
            return self.index.dimension
        here = next((len(row.vector) for row in self._known.values()), None)
        return self.store.dimension if here is None and self.store is not None else here

    async def begin_again(self) -> None:
        """Index and embed all messages again, whatever was known before.

        Raises:
            EmbeddingError: The embedder fails.
            VectorStoreError: The store cannot be reached.
        """
        async with self._indexing, self._embedding:
            if self.stored is not None:
                await self.stored.clear()
            self.reset()
            self._connected, self._known, self.awake = False, {}, True
        await self.catch_up(strict=True)
        await self.save(strict=True)

    # Storing

    async def save(self, *, strict: bool = False, erase: bool = False) -> None:
        """Write and delete what there is to write and to delete.

        Args:
            strict: Raise if the store cannot be reached, instead of trying again the next time.
            erase: If anything is deleted, leave no copy of it in our files. A store that cannot
                do that is written again, which takes about a millisecond a vector.

        Raises:
            VectorStoreError: The store cannot be reached.
        """
        if self.stored is not None:
            await self.stored.save(strict=strict, erase=erase)

    async def aclose(self) -> None:
        """Write what waits, and disconnect the store."""
        try:
            await self.save()
        finally:
            if self.store is not None:
                self._connected = False
                with anyio.CancelScope(shield=True):
                    await self.store.aclose()


def is_recalled(message: Message) -> bool:
    """Return whether a message can be found: not those of the system and those without words."""
    return message.role is not Role.SYSTEM and bool(message.content.strip())


def embedded(text: str) -> str:
    """Return what is embedded of a message's text."""
    return shorten(text, EMBEDDED_TOKENS)


def _new_index() -> RecallIndex:
    from agent_brain.memories.recall.index import RecallIndex  # which takes a while the first time

    return RecallIndex()


def _length(message: Message | str | None) -> int:
    return len(message.content if isinstance(message, Message) else message or "")


def _index(index: RecallIndex, messages: Iterable[Message | str | None]) -> dict[str, str]:
    """Add messages, which may be JSON text, to ``index``; return the texts of those by ID."""
    from agent_brain.memories.recall.index import Item

    texts: dict[str, str] = {}

    def items() -> Iterator[Item]:
        for message in messages:
            if isinstance(message, str):
                message = Message.model_validate_json(message)
            if message is None or not is_recalled(message):
                continue
            texts[message.id] = message.content
            thread = message.metadata.get("thread")
            yield Item(
                id=message.id,
                text=message.content,
                sender=message.name or message.sent_from,
                time=message.created_at,
                thread=thread if isinstance(thread, str) else None,
                role=message.role.value,
            )

    index.add(items())  # one by one: many new objects at once make the garbage collector run
    return texts
