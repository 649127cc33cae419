"""Searches a session, or all sessions of a tenant; embeds a question once."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack

import anyio
import anyio.to_thread

from agent_brain.common.secrets import get_logger
from agent_brain.memories.embedders import Embedder, embed_all
from agent_brain.memories.errors import EmbeddingError, MemoryUseError
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.message import Message, Role
from agent_brain.memories.recall.indexing import EAGER, as_item
from agent_brain.memories.recall.passages import LONGEST, fitting, shortened
from agent_brain.memories.sessions.listing import is_session, tenant_prefix
from agent_brain.memories.store.log import MessageLog
from agent_brain.memories.store.many import in_thread_if_many
from agent_brain.memories.store.session import long_term_session, read_session_key
from agent_brain.memories.vectors.vectors import Vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from agent_brain.memories.recall.index import Hit, RecallIndex, Wanted
    from agent_brain.memories.vector import VectorMemory

log = get_logger(__name__)
Scope: TypeAlias = Literal["session", "tenant"]
VectorsBy: TypeAlias = Mapping[str, Vectors]
"""The vectors of sessions, by what the IDs of their messages begin with in the index."""
NEAREST_FILTERED = 2_000  # with filters, as most of them may not pass
QUESTIONS = 16  # whose vectors are kept


async def search(
    index: RecallIndex | None,
    vectors: VectorsBy,
    questions: dict[str, Any],
    question: str,
    k: int,
    *,
    patient: bool = True,
    **wanted: Unpack[Wanted],
) -> list[Hit]:
    """Return the ``k`` messages that fit ``question`` best.

    Args:
        index: The messages.
        vectors: Their vectors.
        questions: The vectors of the last questions, which searches with one embedder may share.
        question: Any text.
        k: The most messages to return.
        patient: Call the embedder even if it failed the last time.
        **wanted: As for :meth:`RecallIndex.search`.

    Raises:
        EmbedderMismatchError: The messages were embedded by another model.
    """
    question = shortened(question)
    if index is None or not question.strip():
        return []
    cosines: dict[str, float] | None = None
    embedding = next((v for v in vectors.values() if v.dimension is not None), None)
    if embedding is not None and (patient or not embedding.failing):
        vector = await _embedded(embedding.embedder, index.dense_question(question), questions)
        if vector is not None:
            from agent_brain.memories.recall.scoring import NEAREST

            filtered = any(wanted.get(name) is not None for name in ("where", "since", "until"))
            count = max(NEAREST_FILTERED if filtered else NEAREST, k)
            count += wanted.get("is_goal", False)  # whose cosine is not counted
            count = min(count, len(index))
            cosines = {
                prefix + message_id: cosine
                for prefix, each in vectors.items()
                for message_id, cosine in (
                    await each.nearest(vector, min(count, len(index)))
                ).items()
            }
    known = partial(_known, vectors)
    find = partial(index.search, question, k, cosines=cosines, vectors=known, **wanted)
    return await anyio.to_thread.run_sync(find) if len(index) > EAGER else find()


def passage_of(
    index: RecallIndex | None,
    vectors: VectorsBy,
    questions: Mapping[str, Any],
    question: str,
    item_id: str,
    text: str,
) -> str:
    """Return the passage of a message that fits the question of a search best.

    Args:
        index: What was searched.
        vectors: As for :func:`search`.
        questions: Likewise, with the vector of this question, if there is one.
        question: The question.
        item_id: The ID of the message.
        text: Its text.

    Returns:
        The passage; an empty text if the message has only one.
    """
    if len(text) <= LONGEST:
        return ""
    question = shortened(question)
    cosines: list[float] = []
    vector = None if index is None else questions.get(index.dense_question(question))
    if vector is not None and (rows := _known(vectors, [item_id]).get(item_id)) is not None:
        from agent_brain.memories.vectors.ram import unit_vectors

        (unit,) = unit_vectors([vector])
        cosines = (rows @ unit).tolist()
    return fitting(question, text, cosines)


def _known(vectors: VectorsBy, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
    """Return the vectors of items that are in RAM, a row for each passage, by ID."""
    return {
        prefix + message_id: rows
        for prefix, each in vectors.items()
        for message_id, rows in each.known(
            [item_id.removeprefix(prefix) for item_id in ids if item_id.startswith(prefix)]
        ).items()
    }


async def _embedded(embedder: Embedder | None, text: str, known: dict[str, Any]) -> Any:
    """Return the vector of a text; None without an embedder, or if it fails."""
    if embedder is None:
        return None
    if text not in known:
        try:
            vector = (await embed_all(embedder, [text]))[0]
        except Exception as error:
            log.warning(
                "A question could not be embedded, so recall uses only its words: %s",
                error,
                exc_info=not isinstance(error, EmbeddingError),
            )
            return None
        if len(known) >= QUESTIONS:
            known.clear()
        known[text] = vector
    return known[text]


class TenantSessions:
    """Read-only memories of the sessions of one tenant.

    Args:
        journal: Has the sessions.
        tenant: Whose sessions.
        make: Makes the read-only memory of a session.
    """

    def __init__(self, journal: Journal, tenant: str, make: Callable[[str], VectorMemory]) -> None:
        self._journal = journal
        self._prefix = tenant_prefix(tenant)
        self._make = make
        self._lock = anyio.Lock()
        self._memories: dict[str, VectorMemory] = {}
        self.together = {tools: Together(tools=tools) for tools in (False, True)}

    async def but(self, session: str) -> list[VectorMemory]:
        """Return the memories of all sessions but ``session``, as they are in the journal now."""
        async with self._lock:
            lasts = await self._journal.lasts(self._prefix)
            names = {key: read_session_key(key)[0] for key in lasts if is_session(key)}
            for key in self._memories.keys() - names.keys():
                await self._memories.pop(key).aclose()
            copies = {long_term_session(name) for name in names.values()}  # the same messages
            others = [
                key
                for key, name in names.items()
                if name not in copies and session not in (name, long_term_session(name))
            ]
            for key in others:
                if key not in self._memories:
                    self._memories[key] = self._make(names[key])
                store = self._memories[key].store
                read = store.session is not None and store.session.last == lasts[key]
                if not read or store.stale or store.expiry:
                    await self._memories[key].open()
            return [self._memories[key] for key in others]

    async def aclose(self) -> None:
        """Close the memories."""
        while self._memories:
            await self._memories.popitem()[1].aclose()


class Together:
    """The messages of several sessions in one index; an ID begins with the name of the session.

    Args:
        tools: Have results of tools in the other sessions too.

    Attributes:
        index: What recall searches.
        parts: The memories of the sessions, by what the IDs of their messages begin with.
    """

    def __init__(self, *, tools: bool) -> None:
        self.index: RecallIndex | None = None
        self.parts: dict[str, VectorMemory] = {}
        self._tools = tools
        self._lock = anyio.Lock()
        self._known: dict[str, dict[str, Message | str | None]] = {}  # what was indexed
        self._places: dict[str, tuple[int, int]] = {}

    @property
    def vectors(self) -> VectorsBy:
        """The vectors of the sessions."""
        return {prefix: memory._vectors for prefix, memory in self.parts.items()}

    async def catch_up(self, own: str, memories: Iterable[VectorMemory]) -> None:
        """Take up what sessions have now.

        Args:
            own: The name of the session of who asks.
            memories: Those of all sessions.
        """
        from agent_brain.memories.recall.index import RecallIndex

        async with self._lock:
            index = self.index = RecallIndex() if self.index is None else self.index
            self.parts = {_prefix(memory._session_name): memory for memory in memories}
            for prefix in self._known.keys() - self.parts.keys():
                index.remove(prefix + i for i in self._known.pop(prefix))
                self._places.pop(prefix, None)
            for prefix, memory in self.parts.items():
                messages = memory.store.log
                place = messages.last, len(messages)
                if self._places.get(prefix) != place:
                    tools = self._tools or prefix == _prefix(own)
                    take = partial(self._take, index, prefix, messages, tools=tools)
                    await in_thread_if_many([*messages.ids()], take)
                    self._places[prefix] = place

    def _take(
        self,
        index: RecallIndex,
        prefix: str,
        messages: MessageLog,
        ids: Iterable[str],
        *,
        tools: bool,
    ) -> None:
        now = {i: messages.peek(i) for i in ids}
        known = self._known.get(prefix, {})
        index.remove(prefix + i for i, message in known.items() if now.get(i) is not message)
        items = (as_item(message) for i, message in now.items() if known.get(i) is not message)
        index.add(
            item._replace(id=prefix + item.id, thread=prefix + (item.thread or ""))
            for item in items
            if item is not None and (tools or item.role != Role.TOOL)
        )
        self._known[prefix] = now

    def find(self, item_id: str) -> tuple[str, Message | None]:
        """Return the session of an item, and the message."""
        prefix, message_id = _apart(item_id)
        memory = self.parts[prefix]
        return memory._session_name, memory.store.log.get(message_id)

    def each_once(self, where: Callable[[str], bool] | None, own: str) -> Callable[[str], bool]:
        """Return a filter of items, called for the best ones first, that takes no message twice.

        Forks and long-term memories have copies of messages.

        Args:
            where: Only items for which this is true.
            own: The session whose copy is taken, if it has one.
        """
        seen: set[str] = set()
        own_memory = self.parts.get(_prefix(own))

        def accepted(item_id: str) -> bool:
            prefix, message_id = _apart(item_id)
            elsewhere = (
                own_memory is not None
                and self.parts[prefix] is not own_memory
                and message_id in own_memory.store.log
            )
            if message_id in seen or elsewhere or not (where is None or where(item_id)):
                return False
            seen.add(message_id)
            return True

        return accepted

    def holding(self, message_ids: Collection[str]) -> tuple[str, ...]:
        """Return what the IDs begin with in the sessions that have one of these messages."""
        return tuple(
            prefix
            for prefix, memory in self.parts.items()
            if any(memory.store.log.find(message_id) is not None for message_id in message_ids)
        )

    def id_in(self, session: str, message_id: str) -> str:
        """Return the ID of a message in the index."""
        return _prefix(session) + message_id


def _prefix(session: str) -> str:
    """Return what the IDs of the messages of a session begin with; it has one line break."""
    return f"{json.dumps(session)}\n"


def _apart(item_id: str) -> tuple[str, str]:
    prefix, end, message_id = item_id.partition("\n")
    return prefix + end, message_id


def is_of_tenant(scope: str, tenant: str | None, journal: Journal | None) -> bool:
    """Return whether ``scope`` is ``"tenant"``, of a memory with this tenant and journal.

    Raises:
        MemoryUseError: It is not a scope, or the memory cannot recall from it.
    """
    if scope == "session":
        return False
    if scope != "tenant":
        raise MemoryUseError(f"scope= must be 'session' or 'tenant', not {scope!r}")
    if tenant is None:
        raise MemoryUseError(
            "recall(scope='tenant') needs a memory with a tenant: VectorMemory(tenant='alice', …)"
        )
    if journal is None:
        raise MemoryUseError(
            "recall(scope='tenant') reads the other sessions from a journal: give the memory path= "
            "or journal="
        )
    return True
