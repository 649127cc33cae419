"""The memory that recalls: the recent tail of a conversation, and what of the rest matters now."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import anyio
import anyio.to_thread

from agent_brain.memories.embedders import Embedder, EmbedderLike, as_embedder, embed_all
from agent_brain.memories.errors import (
    EmbedderMismatchError,
    MemoryDefinitionError,
    MemoryUseError,
    VectorStoreError,
)
from agent_brain.memories.expiry import utc_now
from agent_brain.memories.message import Message, Role
from agent_brain.memories.query import Query, Where
from agent_brain.memories.recalled import recalled_block
from agent_brain.memories.record_core import JournalLike
from agent_brain.memories.record_memory import RecordMemory
from agent_brain.memories.tokens import Counter
from agent_brain.memories.window import Window
from agent_brain.tools.base import BaseTool
from agent_brain.tools.text import count_tokens, shorten

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from agent_brain.memories.chroma import ChromaVectors
    from agent_brain.memories.recall import RecallIndex

log = logging.getLogger(__name__)
SAVE_AT = 64  # vectors that wait to be written to Chroma; until then they are in RAM only
IN_THREAD = 64  # messages to index, above which a thread does it
SEARCH_IN_THREAD = 5_000  # messages to search, above which a thread does it
EMBEDDED_TOKENS = 2_000  # of a message; what a huge one is about shows in its head and its tail


@dataclass(frozen=True, slots=True)
class Recalled:
    """A message that was found.

    Attributes:
        message: The message.
        score: How well it fits the question; comparable within one answer only.
        why: What each kind of evidence added to the score.
    """

    message: Message
    score: float
    why: Mapping[str, float]


class VectorMemory(RecordMemory):
    """All messages, of which a model sees the last ones and those that fit the goal.

    Recall is hybrid: it weighs meaning (the embedder's vectors), words (BM25), who spoke, when, and
    what stands beside a message (see :mod:`agent_brain.memories.recall`). Without an embedder it
    goes by all of these but the vectors. A message can be found as soon as ``update`` has returned.

    The vectors are kept in Chroma: in a folder, on a server, or nowhere but in RAM. They are a
    copy of what could be embedded again: a missing or broken store is filled anew from the record.
    While the embedder or the store fails, messages are recorded and found by their words, and both
    are tried again at the next use.

    Args:
        tools: What the agent may call.
        path: A folder, in which vectors and, without ``journal``, the record are kept.
        url: The address of a Chroma server for the vectors, such as ``"http://localhost:8000"``.
        client: A client of Chroma for the vectors, which the caller closes.
        session: Which conversation; any text.
        tenant: Whose.
        embedder: None, the name of a LiteLLM embedding model, ``"wordllama"`` or ``"minilm"`` for
            one on this machine, an :class:`~agent_brain.memories.embedders.Embedder`, an embedding
            function of Chroma, or any function, sync or async, from texts to vectors.
        recent: How many of the last messages a model sees in any case; the goal is always there.
        k: How many older messages are recalled for the goal.
        max_tokens: At most so many tokens of recent messages; None for no such limit.
        recalled_tokens: At most so many tokens of recalled messages.
        counter: Counts the tokens of a text.
        journal: As for :class:`RecordMemory`, like ``ttl`` and ``clock``.

    Raises:
        MemoryDefinitionError: Options that do not go together.
        EmbeddingError: ``embedder`` is no embedder, or its files are missing.
    """

    def __init__(
        self,
        tools: Iterable[BaseTool | Callable[..., Any]] = (),
        *,
        path: str | PathLike[str] | None = None,
        url: str | None = None,
        client: Any = None,
        session: str = "default",
        tenant: str | None = None,
        embedder: EmbedderLike = None,
        recent: int = 30,
        k: int = 8,
        max_tokens: int | None = None,
        recalled_tokens: int = 1_500,
        counter: Counter = count_tokens,
        journal: JournalLike | None = None,
        ttl: timedelta | float | None = None,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        if sum(place is not None for place in (path, url, client)) > 1:
            raise MemoryDefinitionError("Give at most one of path=, url= and client=")
        if k < 0 or recalled_tokens < 0:
            raise MemoryDefinitionError("k= and recalled_tokens= must not be below 0")
        self.embedder: Embedder | None = as_embedder(embedder)
        self._k = k
        self._recalled_tokens = recalled_tokens
        self._window = Window(recent, max_tokens, counter)
        self._lock = anyio.Lock()
        self._known: dict[str, NDArray[np.float32]] = {}
        if path is not None and journal is None:
            Path(path).mkdir(parents=True, exist_ok=True)
            journal = Path(path) / "journal.db"
        super().__init__(
            tools, journal=journal, session=session, tenant=tenant, ttl=ttl, clock=clock
        )
        self._store = self._make_store(path, url, client, session, tenant)
        self._loaded = self._store is None

    def _make_store(
        self,
        path: str | PathLike[str] | None,
        url: str | None,
        client: Any,
        session: str,
        tenant: str | None,
    ) -> ChromaVectors | None:
        if self.embedder is None or (path is None and url is None and client is None):
            return None
        from agent_brain.memories.chroma import ChromaVectors

        folder = None if path is None else Path(path) / "vectors"
        return ChromaVectors(path=folder, url=url, client=client, scope=repr((tenant, session)))

    # What happens to the record happens to the views

    def _emptied(self) -> None:
        window = self._window
        self._window = Window(window.max_messages, window.max_tokens, window.counter)
        self._shown: dict[str, Message] = {}
        self._older: dict[str, None] = {}
        self._index: RecallIndex | None = None
        self._unindexed: dict[str, Message] = {}
        self._unembedded: dict[str, str] = {}
        self._unsaved: dict[str, NDArray[np.float32]] = {}
        self._doomed: list[str] = []
        self._last_recall: tuple[object, list[Message]] = (None, [])

    def _added(self, messages: Sequence[Message]) -> None:
        for message in messages:
            self._shown[message.id] = message
            if message.content.strip() and message.role is not Role.SYSTEM:
                self._unindexed[message.id] = message
        self._window.add(messages)
        for message_id in self._window.overflow():
            del self._shown[message_id]
            self._older[message_id] = None

    def _goal_changed(self) -> None:
        self._window.set_goal(self._goal_id)

    def _removed(self, messages: Sequence[Message]) -> None:
        gone = [message.id for message in messages]
        for message_id in gone:
            for waiting in (self._unindexed, self._unembedded, self._unsaved, self._known):
                waiting.pop(message_id, None)  # type: ignore[attr-defined]
        self._doomed += gone
        if self._index is not None:
            self._index.remove(gone)
        self._rebuild_window()

    def _rebuild_window(self) -> None:
        older = self._window
        self._window = Window(older.max_messages, older.max_tokens, older.counter)
        self._window.set_goal(self._goal_id)
        self._shown, self._older = {}, {}
        for message in self._record:
            self._shown[message.id] = message
            self._window.add([message])
            for message_id in self._window.overflow():
                del self._shown[message_id]
                self._older[message_id] = None

    # Reading and writing

    async def open(self) -> None:
        """Read the session and its vectors, and embed what has none.

        Raises:
            EmbedderMismatchError: The session was embedded by another model.
            VectorStoreError: The store of vectors cannot be reached.
        """
        await super().open()
        if not self._loaded or self._unindexed or self._unembedded:
            await self._catch_up()

    async def set_goal(self, goal: str | Message) -> None:
        """Start a turn; earlier goals stay where they were asked."""
        await super().set_goal(goal)
        await self._catch_up()

    async def update(self, messages: list[Message]) -> None:
        """Add ``messages``, all or none; when this returns they can be found."""
        await super().update(messages)
        await self._catch_up()

    async def restore(self, snapshot: Any) -> None:
        """Hold what ``snapshot`` holds, and nothing else."""
        self._known |= self._vectors()
        await super().restore(snapshot)
        await self._catch_up()

    async def fork(self, **place: Any) -> Self:
        """An independent copy in RAM, or where :meth:`RecordMemory.fork` says; with its vectors."""
        await self.open()
        known = self._vectors()
        original = self._store, self._loaded, self._known
        self._store, self._loaded, self._known = None, True, known
        try:
            copied = await super().fork(**place)
        finally:
            self._store, self._loaded, self._known = original
        copied._lock = anyio.Lock()
        return copied

    async def checkpoint(self) -> None:
        """Write where the run stands, and now and then the vectors that wait to be written."""
        await super().checkpoint()
        if len(self._unsaved) >= SAVE_AT:
            await self._save()

    async def aclose(self) -> None:
        """Write the vectors that wait, and close what the memory opened; twice is fine."""
        try:
            await self._save()
            if self._store is not None:
                await self._store.aclose()
                self._loaded = False
        finally:
            await super().aclose()

    async def forget(self, *args: Any, **which: Any) -> int:
        """As :meth:`RecordMemory.forget`; the vectors go too.

        Raises:
            VectorStoreError: The store cannot be reached; words are forgotten, vectors not yet.
        """
        count = await super().forget(*args, **which)
        if self._store is not None and self._doomed:
            doomed, self._doomed = self._doomed, []
            try:
                await self._store.delete(doomed)
            except VectorStoreError:
                self._doomed += doomed
                raise
        self._last_recall = (None, [])
        return count

    async def reindex(self) -> None:
        """Embed every message anew, with the embedder that the memory has now."""
        self._loaded = True
        await super().open()
        if self._store is not None:
            await self._store.clear()
            await self._store.load(*self._model())
        self._index, self._known, self._unsaved = None, {}, {}
        self._unembedded = {}
        for message in self._record:
            if message.content.strip() and message.role is not Role.SYSTEM:
                self._unindexed[message.id] = message
        await self._catch_up()
        await self._save()

    # Showing and recalling

    async def context(self) -> list[Message]:
        """The recent messages, and before them, marked, what fits the goal of what came earlier."""
        await self.open()
        recent = self._window.show(list(self._shown.values()))
        goal = await self.goal()
        if not goal or not self._older or not self._k or not self._recalled_tokens:
            return recent
        state = (goal[0].id, len(self._older))
        if self._last_recall[0] != state:
            found = await self._search(goal[0].content, self._k, self._older.keys(), None, None)
            block = recalled_block(
                [self._record.get(hit.id) for hit in found],
                self._recalled_tokens,
                self._window.counter,
            )
            self._last_recall = (state, block)
        lead = 0
        while lead < len(recent) and recent[lead].role is Role.SYSTEM:
            lead += 1
        return [*recent[:lead], *self._last_recall[1], *recent[lead:]]

    async def recall(
        self,
        query: str,
        k: int = 10,
        *,
        where: Where | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> list[Recalled]:
        """The ``k`` messages that fit ``query`` best, best first.

        Args:
            query: A question, or any text.
            k: How many at most.
            where: Only messages that this function accepts, or whose metadata has these values.
            since: Only messages of this moment or later (aware).
            until: Only messages of before this moment (aware).

        Raises:
            MemoryUseError: ``k`` below 1, or a filter that makes no sense.
            EmbeddingError: The question cannot be embedded.
        """
        if k < 1:
            raise MemoryUseError(f"recall(k={k!r}): at least 1")
        fits = Query(where=where, since=since, until=until).predicate()
        await self.open()

        def accepted(message_id: str) -> bool:
            message = self._record.get(message_id)
            return message is not None and fits(message)

        chosen = accepted if where is not None else None
        hits = await self._search(query, k, chosen, since, until, strict=True)
        found = [(self._record.get(hit.id), hit) for hit in hits]
        return [Recalled(m, hit.score, hit.why) for m, hit in found if m is not None]

    async def _search(
        self,
        query: str,
        k: int,
        where: Any,
        since: datetime | None,
        until: datetime | None,
        *,
        strict: bool = False,
    ) -> list[Any]:
        index = self._index
        if index is None or not query.strip():
            return []
        vector = await self._embed_question(index.dense_question(query), strict=strict)

        def search() -> list[Any]:
            return index.search(
                query,
                k,
                query_vector=vector,
                since=since,
                until=until,
                where=where,
                now=self._clock(),
            )

        if len(index) > SEARCH_IN_THREAD:
            return await anyio.to_thread.run_sync(search)
        return search()

    async def _embed_question(self, question: str, *, strict: bool) -> Any:
        if self.embedder is None or self._index is None or self._index.dimension is None:
            return None
        try:
            return (await embed_all(self.embedder, [question]))[0]
        except Exception:
            if strict:
                raise
            log.warning("The goal could not be embedded; recalling by words", exc_info=True)
            return None

    # Keeping index and store up to date

    def _model(self) -> tuple[str, int | None]:
        assert self.embedder is not None
        return self.embedder.name, self.embedder.dimension

    def _vectors(self) -> dict[str, NDArray[np.float32]]:
        return {} if self._index is None else {**self._known, **self._index.vectors()}

    async def _catch_up(self) -> None:
        async with self._lock:
            if not self._loaded and self._store is not None:
                self._known = {**await self._store.load(*self._model())}
                self._loaded = True
            if self._unindexed:
                await self._index_new()
            if self._unembedded and self.embedder is not None:
                await self._embed_new(self.embedder)
        if len(self._unsaved) >= SAVE_AT:
            await self._save()

    async def _index_new(self) -> None:
        from agent_brain.memories.recall import Item, RecallIndex

        if self._index is None:
            self._index = RecallIndex()
        fresh, self._unindexed = self._unindexed, {}
        items = [
            Item(
                id=message.id,
                text=message.content,
                sender=message.name or message.sent_from,
                time=message.created_at,
                thread=_thread(message),
                role=message.role.value,
            )
            for message in fresh.values()
        ]
        if len(items) > IN_THREAD:
            await anyio.to_thread.run_sync(self._index.add, items)
        else:
            self._index.add(items)
        if self.embedder is not None:
            self._unembedded |= {item.id: item.text for item in items}

    async def _embed_new(self, embedder: Embedder) -> None:
        """Give vectors to what has none; what is known is not embedded again."""
        here = [i for i in self._unembedded if i in self._known]
        if here:
            self._set_vectors(here, [self._known[message_id] for message_id in here])
        todo = dict(self._unembedded)
        texts = [shorten(text, EMBEDDED_TOKENS) for text in todo.values()]
        for start in range(0, len(todo), embedder.batch_size):
            part = slice(start, start + embedder.batch_size)
            ids = [*todo][part]
            try:
                vectors = await embed_all(embedder, texts[part])
            except Exception:
                log.warning(
                    "%d messages could not be embedded yet", len(todo) - start, exc_info=True
                )
                return
            self._set_vectors(ids, vectors)
            if self._store is not None:
                self._unsaved |= {
                    i: v for i, v in zip(ids, vectors, strict=True) if i in self._record
                }

    def _set_vectors(self, ids: Sequence[str], vectors: Any) -> None:
        assert self._index is not None
        known, given = self._index.dimension, len(vectors[0])
        if known is not None and known != given:
            name = self._model()[0]
            raise EmbedderMismatchError(f"{name}, {known} numbers", f"{name}, {given} numbers")
        self._index.set_vectors(ids, vectors)
        for message_id in ids:
            self._unembedded.pop(message_id, None)

    async def _save(self) -> None:
        """Write to the store what waits; if it cannot be reached, it waits on."""
        if self._store is None or not self._loaded or not (self._unsaved or self._doomed):
            return
        import numpy as np

        unsaved, self._unsaved = self._unsaved, {}
        doomed, self._doomed = self._doomed, []
        try:
            if doomed:
                await self._store.delete(doomed)
            if unsaved:
                await self._store.add([*unsaved], np.stack([*unsaved.values()]))
        except BaseException as error:
            self._unsaved = {**unsaved, **self._unsaved}
            self._doomed = doomed + self._doomed
            if not isinstance(error, VectorStoreError):
                raise
            log.warning("Vectors could not be written yet: %s", error)


def _thread(message: Message) -> str | None:
    thread = message.metadata.get("thread")
    return thread if isinstance(thread, str) else None
