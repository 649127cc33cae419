"""The vectors of a session: made by its embedder, kept in RAM until they are stored in Chroma.

What is stored is searched in a copy in RAM, which is read at the first search: Chroma's index is
approximate, and where many vectors are alike it misses others altogether. Only sessions of more
than :data:`EXACT` vectors are searched in the index. Changes of the log are noted at
once and without awaiting; :meth:`Vectors.catch_up` does the work in pieces and removes each from
its list when it is done, so nothing is lost if it is cancelled. The log may change meanwhile, so
the result of each piece is checked against the lists.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from agent_brain.common.secrets import get_logger
from agent_brain.memories.embedders import Embedder, embed_all
from agent_brain.memories.errors import EmbedderMismatchError, EmbeddingError, VectorStoreError
from agent_brain.memories.message import Message
from agent_brain.memories.recall.indexing import EAGER, is_recalled, text_of
from agent_brain.memories.recall.passages import passages
from agent_brain.memories.store.log import MessageLog
from agent_brain.memories.vectors.chroma import ChromaStore, key_of, message_of
from agent_brain.memories.vectors.ram import RamVectors, unit_vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

log = get_logger(__name__)
EXACT = 20_000  # stored vectors that are searched in RAM, which takes 30 MB with 384 numbers each
SAVE_AT = 64  # vectors that wait to be stored; until then they are in RAM only


class Vectors:
    """The vectors of the messages of one session; a long message has one for each passage.

    Args:
        embedder: Makes them; None for a memory without vectors.
        store: Stores them; None to keep them in RAM.
        shared: Other writers add messages to the session too. Their vectors are looked for in the
            store before a text is embedded, and new ones are stored at once. If two writers embed
            the same text at the same time, the store keeps one vector.

    Attributes:
        held: The vectors that are not stored, or not yet.
        failing: The embedder failed when it was last called.
    """

    def __init__(
        self, embedder: Embedder | None, store: ChromaStore | None, *, shared: bool = False
    ) -> None:
        self.embedder = embedder
        self.store = None if embedder is None else store
        self.readonly = store is None or store.readonly
        self.shared = shared
        self.held = RamVectors()
        self._copy: RamVectors | None = None  # of what is stored, once it was searched
        self._by_index = False  # too much is stored for a copy
        self.failing = False
        self._log = MessageLog()
        self._embedding, self._saving = anyio.Lock(), anyio.Lock()
        self._storing = anyio.Lock()  # held while the store and the copy change
        self._connected = False
        self._compared = False  # each message without a vector is in one of these:
        self._asked: dict[str, str] = {}  # passages by key that may have a vector already
        self._fresh: dict[str, str] = {}  # passages to embed
        self._refused: dict[str, str] = {}  # passages on which the embedder has failed
        self._together = 1  # how many of the refused are tried at once
        self._early: dict[str, NDArray[np.float32]] = {}  # of messages that are not recorded yet
        self._writing: AbstractSet[str] = frozenset()  # keys that are being stored
        self._deleted: dict[str, None] = {}  # keys to delete from the store
        self._erasing = False  # no copy may stay of what is deleted
        self._losses = 0  # of the store, when it was compared
        self._opening = True  # nothing was compared yet
        self._is_new = True  # the log was not reset since it was attached
        self._borrowed = False  # the store is that of another one

    # Changes of the log

    def attach(self, log: MessageLog) -> None:
        """Read messages from ``log`` from now on."""
        self._log = log

    def add(self, texts: Mapping[str, str]) -> None:
        """Add texts by message ID, to be embedded by the next :meth:`catch_up`."""
        if self.embedder is not None and self._compared:
            for message_id, text in texts.items():
                self._asked.update(keys_of(message_id, text))

    def remove(self, messages: Iterable[Message]) -> None:
        """Remove the vectors of messages."""
        if self.embedder is None:
            return
        keys = (
            (key, message) for message in messages for key in keys_of(message.id, message.content)
        )
        for key, message in keys:
            waited = [texts.pop(key, None) for texts in (self._fresh, self._refused)]
            here = self.held.remove(key)
            self._forget([key])
            self._asked.pop(key, None)
            self._early.pop(key, None)
            stored = is_recalled(message) and not here and not any(waited)
            if (stored or key in self._writing) and not self.readonly:
                self._deleted[key] = None

    def _forget(self, keys: Iterable[str]) -> None:
        if self._copy is not None and not self._borrowed:
            for key in keys:
                self._copy.remove(key)

    def reset(self) -> None:
        """Start again with the messages of the log; they are not embedded again."""
        if not self._is_new:
            self._compared = False
            self._asked, self._fresh, self._refused = {}, {}, {}
        self._is_new = False

    def fresh(self) -> Vectors:
        """Return the vectors of a copy of the log; it only reads the store of this one."""
        twin = copy.copy(self)
        twin.readonly = twin._borrowed = twin._is_new = True
        twin.shared = False
        twin.held = copy.deepcopy(self.held)
        twin._asked, twin._fresh, twin._refused = (
            {**self._asked},
            {**self._fresh},
            {**self._refused},
        )
        twin._early, twin._deleted, twin._writing = {}, {}, frozenset()
        twin._embedding, twin._saving, twin._storing = anyio.Lock(), anyio.Lock(), anyio.Lock()
        return twin

    # State

    @property
    def behind(self) -> bool:
        """Whether it is not known which messages have vectors."""
        unknown = not self._compared and (self.store is not None or len(self._log) > 0)
        return self.embedder is not None and (unknown or bool(self._asked))

    @property
    def waiting(self) -> bool:
        """Whether there is work for :meth:`catch_up`."""
        return self.behind or any((self._fresh, self._refused, self._deleted))

    @property
    def due(self) -> bool:
        """Whether it is time to :meth:`save`."""
        if self.readonly:
            return False
        return bool(self._deleted) or len(self.held) >= (1 if self.shared else SAVE_AT)

    @property
    def dimension(self) -> int | None:
        """The number of numbers in a vector; None if that is not known."""
        early = next((len(vector) for vector in self._early.values()), None)
        stored = None if self.store is None else self.store.dimension
        return self.held.dimension or early or stored

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

    async def prepare(self) -> None:
        """Load the index of the store, if it can be reached; what needs it raises the errors."""
        if self.store is not None:
            with suppress(EmbedderMismatchError, VectorStoreError):
                await self.connect()
                await self.store.count()

    async def catch_up(self, count: int, *, strict: bool = False) -> None:
        """Make vectors for all messages.

        Args:
            count: How many passages there are that can be found.
            strict: Raise if the embedder fails, instead of trying again the next time.

        Raises:
            EmbedderMismatchError: The vectors that are here were made by another model.
            VectorStoreError: What the store has of the session cannot be read.
        """
        if self.embedder is None:
            return
        for _ in range(2):
            async with self._embedding:
                if self.store is not None and self.store.losses != self._losses:
                    self._compared = False
                if not self._compared:
                    await self._compare(count)
                await self._look_up()
                await self._embed_texts(self.embedder, strict=strict)
            if self.due:
                await self.save()
            if self._compared:  # else the store has just lost its rows
                return

    async def _compare(self, count: int) -> None:
        """Find the messages without a vector, and the vectors without a message.

        Reading all keys takes a while. So in a large session the numbers are compared first, as
        these are equal unless the last process that used it was ended by force.
        """
        await self.connect()
        store, ids = self.store, [*self._log.ids()]
        stored: set[str] = set()
        here = {*self.held.keys()}
        if store is not None:
            self._losses = store.losses
            if self._is_whole(count, len(here) + await store.count()):
                self._compared, self._opening = True, False
                return
            stored = await store.keys()
        missing, extra = await anyio.to_thread.run_sync(_differences, self._log, ids, stored | here)
        self._compared, self._opening = True, False
        self._asked.update(
            (key, text) for key, text in missing.items() if message_of(key) in self._log
        )
        for key in extra & here:
            self.held.remove(key)
        if not (self.shared or self.readonly):  # others write for messages that are not read yet
            self._deleted.update(dict.fromkeys(extra & stored))
            self._erasing |= bool(extra & stored)  # of a forgetting that was killed, maybe

    def _is_whole(self, messages: int, vectors: int) -> bool:
        """Return whether a session that was just opened needs no closer look."""
        return self._opening and messages > EAGER and messages == vectors

    async def _look_up(self) -> None:
        """Find out which passages have a vector already."""
        keys = [*self._asked]
        known = {*self.held.keys()}
        if keys and self.store is not None and self.shared:
            known |= await self.store.having(keys)
        for key in keys:
            text = self._asked.pop(key, None)
            if text is not None and key not in known and key not in self._refused:
                self._fresh[key] = text

    def _claimed(self, key: str) -> bool:
        """Return whether a key is that of a message as it is now."""
        message_id = message_of(key)
        text = text_of(self._log.peek(message_id))
        return text is not None and key in keys_of(message_id, text)

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
                for key in batch:
                    if key in among:
                        self._refused[key] = among.pop(key)
                self._together = max(1, len(batch) // 2)
                return
            if again:
                self._together = min(2 * self._together, embedder.batch_size)

    async def _embed_batch(
        self, embedder: Embedder, batch: dict[str, str], *, strict: bool
    ) -> bool:
        texts = {key: text for key, text in batch.items() if key not in self._early}
        try:
            made = dict(zip(texts, await embed_all(embedder, [*texts.values()]), strict=True))
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
        made.update((key, self._early.pop(key)) for key in batch if key in self._early)
        wanted = {key for key in batch if key in self._fresh or key in self._refused}
        self._hold({key: vector for key, vector in made.items() if key in wanted})
        for key in wanted:
            self._fresh.pop(key, None)
            self._refused.pop(key, None)
        return True

    def _hold(self, vectors: Mapping[str, NDArray[np.float32]]) -> None:
        if vectors:
            self._check_length(self.dimension, len(next(iter(vectors.values()))))
            self.held.put([*vectors], [*vectors.values()])

    def _check_length(self, known: int | None, given: int) -> None:
        if known not in (None, given) and self.embedder is not None:
            name = self.embedder.name
            raise EmbedderMismatchError(f"{name}, {known} numbers", f"{name}, {given} numbers")

    async def check_length(self, coming: Sequence[Message]) -> None:
        """Embed messages before they are recorded if only that shows how long the vectors are.

        Their vectors are used by :meth:`catch_up`, which also deals with an embedder that fails.

        Raises:
            EmbedderMismatchError: They are of another length than those that are here.
        """
        embedder, known = self.embedder, self.dimension
        self._early = {}
        if embedder is None or embedder.dimension is not None or known is None or self.failing:
            return
        pairs = (
            pair for m in coming if is_recalled(m) for pair in keys_of(m.id, m.content).items()
        )
        texts = dict(islice(pairs, embedder.batch_size))
        if not texts:
            return
        try:
            vectors = await embed_all(embedder, [*texts.values()])
        except Exception:
            log.debug("Messages could not be embedded before they are recorded", exc_info=True)
            return
        self._check_length(known, vectors.shape[1])
        self._early = dict(zip(texts, vectors, strict=True))

    async def begin_again(self) -> None:
        """Embed all messages again, whatever was known before.

        Raises:
            EmbeddingError: The embedder fails.
            VectorStoreError: The store cannot be reached.
        """
        async with self._embedding, self._saving:
            if self.store is not None:
                await self.store.clear()
            self._copy, self._by_index = None, False
            self.held, self._early, self._deleted = RamVectors(), {}, {}
            self._connected = self._compared = False
        await self.catch_up(0, strict=True)
        await self.save(strict=True)

    # Searching

    async def nearest(self, vector: NDArray[np.float32], count: int) -> dict[str, float]:
        """Return the cosines, by message ID, of about the ``count`` nearest messages.

        That of a long message is that of its nearest passage. If the store fails, they are those of
        the vectors in RAM.

        Args:
            vector: What is compared with, of any length.
            count: How many messages.

        Raises:
            EmbedderMismatchError: It is of another dimension than the vectors.
        """
        self._check_length(self.dimension, len(vector))
        (unit,) = unit_vectors([vector])
        if not unit.any():
            return {}
        stored = {}
        few = count * self._passages_each()
        if self.store is not None:
            try:
                stored = await self._nearest_stored(self.store, unit, few)
            except VectorStoreError:
                log.warning("The vectors cannot be searched, so words decide", exc_info=True)
        cosines = stored | await _nearest_of(self.held, unit, few)
        nearest: dict[str, float] = {}
        for key in sorted(cosines, key=cosines.__getitem__, reverse=True):
            nearest.setdefault(message_of(key), cosines[key])
        return dict(islice(nearest.items(), count))

    def _passages_each(self) -> int:
        """Return about how many passages a message has."""
        vectors = len(self.held) + len(self._copy or ())
        return max(1, -(-vectors // max(len(self._log), 1)))

    def known(self, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """Return the vectors of messages that are in RAM, a row for each passage, by ID."""
        import numpy as np

        found = {}
        for message_id in ids:
            keys = keys_of(message_id, text_of(self._log.peek(message_id)) or "")
            rows = self.held.rows(keys)
            if self._copy is not None:
                rows |= self._copy.rows(keys)
            if rows:
                found[message_id] = np.stack([rows[key] for key in keys if key in rows])
        return found

    async def _nearest_stored(
        self, store: ChromaStore, unit: NDArray[np.float32], count: int
    ) -> dict[str, float]:
        """Return the cosines, by key, of the stored vectors that are nearest."""
        await self.connect()
        async with self._storing:
            known = self._copy is not None and store.losses == self._losses and not self.shared
            stored = len(self._copy or ()) if known or self._by_index else await store.count()
            if stored > EXACT:
                self._copy, self._by_index = None, True
            elif not self._by_index and (self._copy is None or len(self._copy) != stored):
                rows = await store.load()
                kept = {key: vector for key, vector in rows.items() if key not in self._deleted}
                self._copy = RamVectors()
                if kept:
                    self._copy.put([*kept], [*kept.values()])
            if self._copy is not None:
                return await _nearest_of(self._copy, unit, count)
        return await store.nearest(unit, count)

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
        store = self.store
        if store is None or self.readonly or not (self._deleted or self.held):
            return
        async with self._saving:
            try:
                await self.connect()
                self._erasing |= erase and bool(self._deleted)
                if self._erasing and self._deleted and store.leaves_traces:
                    await self._take_back(store)
                while self._deleted or self.held:
                    await (self._delete(store) if self._deleted else self._write(store))
                self._erasing = False
            except VectorStoreError as error:
                if strict:
                    raise
                log.warning("%d vectors could not be stored yet: %s", len(self.held), error)
            if store.losses != self._losses:
                self._compared = False

    async def _take_back(self, store: ChromaStore) -> None:
        """Empty the store, to be written again without what is deleted."""
        async with self._storing:
            rows = await store.load()
            await store.clear()
            self._copy = None
        self._hold({key: vector for key, vector in rows.items() if key not in self._deleted})
        self._deleted = {}

    async def _delete(self, store: ChromaStore) -> None:
        deleted, self._deleted = self._deleted, {}
        gone = [key for key in deleted if not self._claimed(key)]  # the others were added again
        try:
            async with self._storing:
                await (store.delete(gone) if self._log or self.shared else store.clear())
                self._forget(gone)
        except BaseException:
            self._deleted = deleted | self._deleted
            raise

    async def _write(self, store: ChromaStore) -> None:
        held = self.held
        keys = held.keys()
        for start in range(0, len(keys), store.write_rows):
            if held is not self.held:
                return
            rows = held.rows(keys[start : start + store.write_rows])
            self._writing = rows.keys()  # who removes one now must delete it
            try:
                async with self._storing:
                    if rows:
                        await store.add(rows)
                    if rows and self._copy is not None:
                        self._copy.put([*rows], [*rows.values()])
                    for key in rows:
                        held.remove(key)
            finally:
                self._writing = frozenset()

    async def aclose(self) -> None:
        """Write what waits, and disconnect the store."""
        try:
            await self.save()
        finally:
            if self.store is not None and not self._borrowed:
                self._connected = False
                with anyio.CancelScope(shield=True):
                    await self.store.aclose()


async def _nearest_of(
    vectors: RamVectors, unit: NDArray[np.float32], count: int
) -> dict[str, float]:
    if len(vectors) > EAGER:
        return await anyio.to_thread.run_sync(vectors.nearest, unit, count)
    return vectors.nearest(unit, count)


def keys_of(message_id: str, text: str) -> dict[str, str]:
    """Return the passages of a message by the keys of their vectors."""
    return {key_of(message_id, passage): passage for passage in passages(text)}


def _differences(
    messages: MessageLog, ids: Iterable[str], keys: AbstractSet[str]
) -> tuple[dict[str, str], set[str]]:
    """Return the passages, by key, that are not in ``keys``, and the keys that have no passage."""
    missing, extra = {}, {*keys}
    for message_id in ids:
        text = text_of(messages.peek(message_id))
        if text is not None:
            for key, passage in keys_of(message_id, text).items():
                if key in keys:
                    extra.discard(key)
                else:
                    missing[key] = passage
    return missing, extra
