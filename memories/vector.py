"""A memory of recent messages, and of older ones recalled for the goal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Unpack, cast

from agent_brain.common.aio import maybe_await
from agent_brain.common.secrets import get_logger
from agent_brain.common.text import count_tokens
from agent_brain.common.values import is_count
from agent_brain.memories.embedders import Embedder, EmbedderLike, as_embedder
from agent_brain.memories.errors import MemoryDefinitionError, MemoryUseError
from agent_brain.memories.message import Message, checked_messages
from agent_brain.memories.options import StoreOptions
from agent_brain.memories.recall.indexing import Indexed
from agent_brain.memories.recall.results import (
    Recalled,
    RecalledItem,
    Rerank,
    checked_score,
    recalled_block,
    report_recalled,
)
from agent_brain.memories.recall.search import (
    Scope,
    TenantSessions,
    Together,
    is_of_tenant,
    passage_of,
    search,
)
from agent_brain.memories.runs.work import EMBEDDING
from agent_brain.memories.store.checks import whole_number
from agent_brain.memories.store.filters import Keep, Query, Where, checked_text
from agent_brain.memories.store.session import read_session_key
from agent_brain.memories.store.snapshot import Snapshot
from agent_brain.memories.stored import StoredMemory
from agent_brain.memories.vectors.chroma_folder import make_store
from agent_brain.memories.vectors.vectors import Vectors
from agent_brain.memories.views.base import View
from agent_brain.memories.views.groups import behind_rules
from agent_brain.memories.views.recent import Recent
from agent_brain.memories.views.tokens import Counter
from agent_brain.tools.toolset import ToolLike

log = get_logger(__name__)
ANY = Query()


class VectorMemory(StoredMemory):
    """A memory that shows the recent messages and the older ones that fit the goal.

    Recall is hybrid: it weighs meaning (vectors of the embedder), words (BM25), the speaker, the
    time and the messages around. Without an embedder it uses all of these but the vectors. A
    message can be found as soon as ``update`` has returned; system messages and messages without
    words are not recalled::

        memory = VectorMemory(path="brain", embedder="text-embedding-3-small")
        await memory.update([Message.user("My sister lives in Porto.")])
        (best,) = await memory.recall("Where does my sister live?", k=1)
        print(best.message.content, best.score)

    The vectors are stored in Chroma, in a folder or on a server, or in RAM. They are a copy: a
    missing or broken folder is filled again from the messages, and vectors of removed messages are
    deleted. While the embedder or the store fails, messages are recorded and found by their words,
    and both are tried again at the next use.

    Args:
        tools: What the agent may call.
        path: A folder for the vectors and, without ``journal``, the messages.
        url: The address of a Chroma server for the vectors, such as ``"http://localhost:8000"``.
            Without a ``journal`` the messages are in RAM only.
        client: A client of Chroma for the vectors, which the caller closes; otherwise as ``url``.
        session: The name of the conversation.
        tenant: Whose conversation it is.
        embedder: None, the name of a LiteLLM embedding model, ``"wordllama"`` or ``"minilm"`` for
            one on this machine, an :class:`~agent_brain.memories.embedders.Embedder`, an embedding
            function of Chroma, or any function, sync or async, from texts to vectors.
        recent: How many of the last messages are always shown; the goal always is.
        k: How many older messages are recalled for the goal.
        max_tokens: The most tokens of recent messages; None for no limit.
        recalled_tokens: The most tokens of recalled messages.
        min_score: Recall for the goal only messages with this score or a better one, from 0 to 1;
            None for no limit. Start with 0.3 and look at the scores of :meth:`recall`.
        counter: Counts the tokens of a text.
        rerank: Orders what was found for a question, such as
            :func:`agent_brain.states.model_reranker` or a cross-encoder: a function, sync or async,
            of the question and three times as many messages as are wanted, which returns them, or
            some of them, best first. In a run its model calls are calls of the run. If it fails, a
            warning is logged, and they stay as they were found.
        journal: As for :class:`StoredMemory`, like ``ttl``, ``clock``, ``readonly``, ``shared``,
            ``history``, ``lease_wait`` and ``dedupe``.

    Raises:
        MemoryDefinitionError: Options that do not go together.
        EmbeddingError: ``embedder`` is not an embedder.
    """

    _own_index = True

    begins_with_goal = True

    def __init__(
        self,
        tools: Iterable[ToolLike] = (),
        *,
        path: str | PathLike[str] | None = None,
        url: str | None = None,
        client: Any = None,
        embedder: EmbedderLike = None,
        recent: int = 30,
        k: int = 8,
        max_tokens: int | None = None,
        recalled_tokens: int = 1_500,
        min_score: float | None = None,
        counter: Counter = count_tokens,
        rerank: Rerank | None = None,
        **options: Unpack[StoreOptions],
    ) -> None:
        if rerank is not None and not callable(rerank):
            raise MemoryDefinitionError(f"rerank= takes a function, not {rerank!r:.100}")
        if sum(place is not None for place in (path, url, client)) > 1:
            raise MemoryDefinitionError("Give at most one of path=, url= and client=")
        whole_number("recent", recent)
        whole_number("k", k, least=0)
        whole_number("recalled_tokens", recalled_tokens, least=0)
        session, tenant = options.get("session", "default"), options.get("tenant")
        self._session_name, self._tenant = session, tenant
        self._vectors_at = {"path": path, "url": url, "client": client}
        self._other_sessions: TenantSessions | None = None
        self._k = k
        self._recalled_tokens = recalled_tokens
        self.min_score = checked_score(min_score)
        self._counter = counter
        self._rerank = rerank
        self._reranked: tuple[object, list[str]] = None, []  # for what, and in which order
        model = as_embedder(embedder)
        scope = repr((tenant, session))
        readonly = options.get("readonly", False)
        store = make_store(path, url, client, scope, readonly=readonly)
        self._new_vectors = partial(Vectors, model, store, shared=options.get("shared", False))
        if path is not None and options.get("journal") is None:
            if not readonly:
                Path(path).mkdir(parents=True, exist_ok=True)
            options["journal"] = Path(path) / "journal.db"
        super().__init__(tools, views=self._new_views(recent, max_tokens), **options)

    def _new_views(self, recent: int, max_tokens: int | None) -> list[View]:
        indexed = Indexed(self._new_vectors(), own=self._own_index)
        return [Recent(recent, max_tokens, self._counter), indexed]

    @property
    def embedder(self) -> Embedder | None:
        """The embedder that makes the vectors."""
        return self._vectors.embedder

    @property
    def _tail(self) -> Recent:
        return cast("Recent", self.store.views[0])

    @property
    def _indexed(self) -> Indexed:
        return cast("Indexed", self.store.views[1])

    @property
    def _vectors(self) -> Vectors:
        return self._indexed.vectors

    async def _forked(self) -> None:
        self._vectors_at = {}
        self._other_sessions = None
        if self.store.session is not None:
            self._session_name, self._tenant = read_session_key(self.store.session.key)

    # Reading and writing

    async def open(self) -> None:
        """Read the session and its vectors, and embed messages without one.

        In a run they are embedded when something is recalled or added. A session of more than 5,000
        messages is indexed when it is first searched.

        Raises:
            EmbedderMismatchError: The session was embedded by another model.
            VectorStoreError: The store of vectors cannot be reached.
        """
        await super().open()
        self._indexed.rest_if_large()
        if self._indexed.behind or self._vectors.waiting:
            await self._catch_up(embed=self.run_work is None)

    async def set_goal(self, goal: str | Message) -> None:
        """Start a turn; the goal is embedded when something is recalled or added next.

        Raises:
            EmbedderMismatchError: The session was embedded by another model; nothing was written.
            VectorStoreError: The store of vectors cannot be reached; nothing was written.
        """
        await self._get_ready()
        await super().set_goal(goal)

    async def restore(self, snapshot: Snapshot) -> None:
        """Replace everything by what ``snapshot`` holds; it raises what :meth:`set_goal` does."""
        await self._get_ready()
        await super().restore(snapshot)

    async def update(self, messages: list[Message]) -> list[str] | Any:
        """Add ``messages``, all or none; when it returns they can be found.

        Returns:
            The IDs of those that were added.

        Raises:
            MemoryUseError: One of them is not a message.
            SessionConflictError: Another memory has written to the session; nothing was written.
            EmbedderMismatchError: The embedder makes vectors of another length than it did; nothing
                was written.
        """
        tail: Any = self.store.views[0]
        if not tail.fits:
            await self._get_ready(checked_messages(messages))
        added = await super().update(messages)
        if not tail.fits and self._indexed.due:
            await self._catch_up()
        return added

    async def checkpoint(self) -> None:
        """Write the state of the run, and the vectors if enough of them wait."""
        await super().checkpoint()
        if not self._tail.fits and self._vectors.due:
            await self._vectors.save()

    # Says that a step may be written later, although checkpoint() is replaced here.
    _checkpoint_later = StoredMemory._checkpoint_later

    async def aclose(self) -> None:
        """Write the vectors that wait, and close what the memory opened; idempotent."""
        try:
            if self._other_sessions is not None:
                await self._other_sessions.aclose()
            await self._vectors.aclose()
        finally:
            await super().aclose()

    async def clear(self, *, keep: Keep | None = None) -> int:
        """Like :meth:`StoredMemory.clear`, with the vectors."""
        await self._get_ready()
        count = await super().clear(keep=keep)
        await self._catch_up()
        await self._vectors.save(strict=True)
        return count

    async def forget(self, *args: Any, **which: Any) -> int:
        """Like :meth:`StoredMemory.forget`, with the vectors.

        Chroma keeps in its files what it has deleted. So a folder is written again without the
        forgotten vectors, in about a millisecond a vector; on a server Chroma decides.

        Raises:
            VectorStoreError: The store cannot be reached: the messages are forgotten, and their
                vectors are deleted as soon as it can be reached.
        """
        await self._get_ready()
        count = await super().forget(*args, **which)
        await self._vectors.save(strict=True, erase=True)
        return count

    async def reindex(self) -> None:
        """Embed every message again with the embedder of this memory.

        Raises:
            EmbeddingError: The embedder fails; missing vectors are made at the next use.
            VectorStoreError: The store cannot be reached.
        """
        await self._write("reindex()")
        self._indexed.forget_answers()
        with self.work_for(EMBEDDING):
            await self._vectors.begin_again()
            await self._indexed.wake()

    async def _get_ready(self, coming: Sequence[Message] = ()) -> None:
        """Open and check everything before anything is written."""
        if self._tail.fits:
            return
        if self._indexed.due:
            await self.open()
        await self._vectors.connect()
        if not self.readonly and coming:
            with self.work_for(EMBEDDING):
                await self._vectors.check_length([m for m in coming if m.id not in self.store.log])

    async def _catch_up(self, *, embed: bool = True) -> None:
        """Make all messages findable; by their vectors too, if ``embed``."""
        with self.work_for(EMBEDDING):
            await self._indexed.catch_up(embed=embed)

    # Showing and recalling

    async def context(self) -> list[Message]:
        """Return the recent messages, and before them a marked block of what fits the goal."""
        await super().open()
        recent = self._tail.show()
        goal = None if self.store.goal_id is None else self.store.log.get(self.store.goal_id)
        older = self._tail.count_older()
        if goal is None or not older or not self._k or not self._recalled_tokens:
            return recent
        state = goal.id, older, len(self.store.log)  # all messages count in what fits best
        indexed = self._indexed
        if indexed.block[0] != state:
            indexed.block = state, await self._recall_for(goal)
        return behind_rules(indexed.block[1], recent)

    async def _recall_for(self, goal: Message) -> list[Message]:
        where, least = self._tail.is_older, self.min_score
        with self.work_for(EMBEDDING):
            found = await self._recall(
                goal.content, self._k, where=where, min_score=least, goal=goal
            )
        messages = [item.message for item in found]
        passages = {item.message.id: item.passage for item in found}
        block = recalled_block(messages, self._recalled_tokens, self._counter, passages=passages)
        items = (RecalledItem(item.message.id, item.score) for item in found)
        report_recalled(self, goal, block, items)
        return block

    async def _in_order(self, query: str, found: list[Recalled], k: int) -> list[Recalled]:
        """Return the ``k`` best as ``rerank`` orders them, which is asked once about the same."""
        if self._rerank is None or not found:
            return found[:k]
        known = {item.message.id: item for item in found}
        asked = hash(query), frozenset(known)
        if self._reranked[0] != asked:
            try:
                with self.work_for("rerank"):
                    ordered = await maybe_await(self._rerank(query, [*found]))
                self._reranked = asked, [item.message.id for item in ordered]
            except Exception:
                log.warning("The reranker failed; messages stay as found", exc_info=True)
                return found[:k]
        return [known[i] for i in dict.fromkeys(self._reranked[1]) if i in known][:k]

    async def recall(
        self,
        query: str,
        k: int = 10,
        *,
        where: Where | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        min_score: float | None = None,
        scope: Scope = "session",
        tool_results: bool = False,
    ) -> list[Recalled]:
        """Return the ``k`` messages that fit ``query`` best, best first.

        Of the first ten messages, those of one speaker that say something about the same thing and
        about what is asked come newer first. If the embedder
        fails, words decide, and ``why`` has no ``meaning``.

        Args:
            query: A question, or any text.
            k: The most messages to return.
            where: Only messages that this function accepts, or whose metadata has these values. In
                a large memory it is called in a worker thread.
            since: Only messages of this moment or later (aware).
            until: Only messages before this moment (aware).
            min_score: Only messages with this score or a better one, from 0 to 1.
            scope: ``"session"``, or ``"tenant"`` for all sessions of the memory's tenant in its
                journal; :attr:`Recalled.session` is where a message is from, and copies in forks
                are not returned besides. The first such call reads them all.
            tool_results: With ``scope="tenant"``, results of tools in other sessions too: what a
                web page said there is nothing that the user or the agent has said.

        Raises:
            MemoryUseError: ``k`` below 1, a filter that makes no sense, or a memory without a
                tenant or a journal and ``scope="tenant"``.
            EmbedderMismatchError: The messages were embedded by another model.
        """
        checked_text("recall()", query)
        if not is_count(k, least=1):
            raise MemoryUseError(f"recall(k={k!r}): a whole number, at least 1")
        everywhere = is_of_tenant(scope, self._tenant, self.journal)
        query_filter = Query(where=where, since=since, until=until)
        min_score = checked_score(min_score)
        await self.open()
        with self.work_for(EMBEDDING):
            sessions = await self._together(tool_results=tool_results) if everywhere else None
            return await self._recall(
                query, k, query_filter, min_score=min_score, sessions=sessions
            )

    async def _recall(
        self,
        query: str,
        k: int,
        wanted: Query = ANY,
        *,
        where: Callable[[str], bool] | None = None,
        min_score: float | None = None,
        sessions: Together | None = None,
        goal: Message | None = None,
    ) -> list[Recalled]:
        """Return the messages that fit a query best, as ``rerank`` orders them.

        Args:
            query: A question, or any text.
            k: The most messages to return.
            wanted: What they must meet.
            where: Only messages for whose ID this is true, in place of ``wanted.where``.
            min_score: Only messages with this score or a better one.
            sessions: Where to look; None for this session.
            goal: The goal, if it is the query: an embedder that has failed is not called for it.
        """
        indexed, fits = self._indexed, wanted.predicate()
        await indexed.wake()
        vectors = {"": indexed.vectors} if sessions is None else sessions.vectors
        index = indexed.index if sessions is None else sessions.index

        def get_own(item_id: str) -> tuple[str, Message | None]:
            return self._session_name, self.store.log.get(item_id)

        get = get_own if sessions is None else sessions.find

        def accepted(item_id: str) -> bool:
            message = get(item_id)[1]
            return message is not None and fits(message)

        where = where if wanted.where is None else accepted
        itself = self.store.goal_id
        asked = goal if goal is not None or itself is None else self.store.log.get(itself)
        if sessions is not None:
            where = sessions.each_once(where, self._session_name)
            itself = itself and sessions.id_in(self._session_name, itself)
        hits = await search(
            index,
            vectors,
            indexed.questions,
            query,
            k if self._rerank is None else 3 * k,
            where=where,
            since=wanted.since,
            until=wanted.until,
            now=self.store.clock(),
            patient=goal is None,
            min_score=min_score,
            goal=itself,
            is_goal=asked is not None and asked.content == query,
        )
        found: list[Recalled] = []
        for hit in hits:
            name, message = get(hit.id)
            if message is not None:
                text = message.content
                passage = passage_of(index, vectors, indexed.questions, query, hit.id, text)
                found.append(Recalled(message, hit.score, hit.why, name, passage))
        return await self._in_order(query, found, k)

    async def _together(self, *, tool_results: bool) -> Together:
        """Return all sessions of the tenant, ready to be searched."""
        await self._indexed.wake()
        if self._other_sessions is None:
            assert self.journal is not None
            assert self._tenant is not None
            self._other_sessions = TenantSessions(self.journal, self._tenant, self._reader)
        others = await self._other_sessions.but(self._session_name)
        for memory in others:
            await memory._indexed.wake()
        together = self._other_sessions.together[tool_results]
        searched = others if self._of_user else [self, *others]  # facts are not a conversation
        await together.catch_up(self._session_name, searched)
        return together

    def _reader(self, session: str) -> VectorMemory:
        return _SessionOfTenant(
            journal=self.journal,
            session=session,
            tenant=self._tenant,
            embedder=self.embedder,
            ttl=self.store.ttl,
            clock=self.store.clock,
            readonly=True,
            shared=True,
            **self._vectors_at,
        )


class _SessionOfTenant(VectorMemory):
    """Reads a session that is searched in the index of all sessions of its tenant."""

    _own_index = False
