"""All sessions of a tenant, for recall: one index, and the vectors of each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import anyio

from agent_brain.memories.errors import MemoryUseError
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.message import Message, Role
from agent_brain.memories.recall.indexing import as_item
from agent_brain.memories.sessions.listing import is_session, tenant_prefix
from agent_brain.memories.store.log import MessageLog
from agent_brain.memories.store.many import in_thread_if_many
from agent_brain.memories.store.session import long_term_session, read_session_key

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from agent_brain.memories.embedders import Embedder
    from agent_brain.memories.recall.index import RecallIndex
    from agent_brain.memories.vector import VectorMemory
    from agent_brain.memories.vectors.vectors import Vectors

Scope: TypeAlias = Literal["session", "tenant"]


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
                if not _has_read(self._memories[key], lasts[key]):
                    await self._memories[key].open()
            return [self._memories[key] for key in others]

    async def aclose(self) -> None:
        """Close the memories."""
        while self._memories:
            await self._memories.popitem()[1].aclose()


def _has_read(memory: VectorMemory, last: int) -> bool:
    """Return whether a memory has nothing to read if this is the last entry of its session."""
    store = memory.store
    known = store.session is not None and store.session.last == last
    return known and not store.stale and not store.expiry


class Part(NamedTuple):
    """The messages of a session and their vectors."""

    log: MessageLog
    vectors: Vectors


class Together:
    """The messages of several sessions in one index; an ID is a session's number and the own ID.

    It also has what :func:`~agent_brain.memories.recall.search.search` uses of vectors.

    Args:
        tools: Have results of tools in the other sessions too.

    Attributes:
        parts: The names of the sessions and what they have, by number.
    """

    def __init__(self, *, tools: bool) -> None:
        self.index: RecallIndex | None = None
        self._tools = tools
        self._lock = anyio.Lock()
        self._numbers: dict[str, str] = {}  # by the names of sessions
        self._next = count()
        self.parts: dict[str, tuple[str, Part]] = {}
        self._known: dict[str, dict[str, Message | str | None]] = {}  # what was indexed
        self._places: dict[str, tuple[int, int]] = {}

    async def catch_up(self, own: str, parts: Mapping[str, Part]) -> None:
        """Take up what sessions have now.

        Args:
            own: The name of the session of who asks.
            parts: All sessions by name.
        """
        from agent_brain.memories.recall.index import RecallIndex

        async with self._lock:
            index = self.index = RecallIndex() if self.index is None else self.index
            for name in self._numbers.keys() - parts.keys():
                number = self._numbers.pop(name)
                index.remove(f"{number}:{i}" for i in self._known.pop(number, {}))
                self._places.pop(number, None)
            for name in parts.keys() - self._numbers.keys():
                self._numbers[name] = str(next(self._next))
            self.parts = {self._numbers[name]: (name, part) for name, part in parts.items()}
            for number, (name, part) in self.parts.items():
                place = part.log.last, len(part.log)
                if self._places.get(number) != place:
                    tools = self._tools or name == own
                    take = partial(self._take, number, part.log, tools=tools)
                    await in_thread_if_many([*part.log.ids()], take)
                    self._places[number] = place

    def _take(self, number: str, log: MessageLog, ids: Iterable[str], *, tools: bool) -> None:
        now = {i: log.peek(i) for i in ids}
        known = self._known.get(number, {})
        gone = [i for i, message in known.items() if now.get(i) is not message]
        assert self.index is not None
        self.index.remove(f"{number}:{i}" for i in gone)
        items = (as_item(message) for i, message in now.items() if known.get(i) is not message)
        self.index.add(
            item._replace(id=f"{number}:{item.id}", thread=f"{number}:{item.thread or ''}")
            for item in items
            if item is not None and (tools or item.role != Role.TOOL)
        )
        self._known[number] = now

    def find(self, item_id: str) -> tuple[str, Message | None]:
        """Return the session of an item, and the message."""
        number, _, message_id = item_id.partition(":")
        name, part = self.parts[number]
        return name, part.log.get(message_id)

    def each_once(self, where: Callable[[str], bool] | None, own: str) -> Callable[[str], bool]:
        """Return a filter of items, called for the best ones first, that takes no message twice.

        Forks and long-term memories have copies of messages.

        Args:
            where: Only items for which this is true.
            own: The session whose copy is taken, if it has one.
        """
        seen: set[str] = set()
        own_log = next((part.log for name, part in self.parts.values() if name == own), ())

        def accepted(item_id: str) -> bool:
            number, _, message_id = item_id.partition(":")
            elsewhere = message_id in own_log and self.parts[number][0] != own
            if message_id in seen or elsewhere or not (where is None or where(item_id)):
                return False
            seen.add(message_id)
            return True

        return accepted

    def holding(self, message_ids: Collection[str]) -> set[str]:
        """Return the numbers of the sessions that have one of these messages."""
        return {
            number
            for number, (_, part) in self.parts.items()
            if any(part.log.find(message_id) is not None for message_id in message_ids)
        }

    def id_in(self, session: str, message_id: str) -> str:
        """Return the ID of a message in the index."""
        return f"{self._numbers[session]}:{message_id}"

    @property
    def _vectors(self) -> dict[str, Vectors]:
        return {number: part.vectors for number, (_, part) in self.parts.items()}

    @property
    def embedder(self) -> Embedder | None:
        """The embedder of the sessions."""
        return next(iter(self._vectors.values())).embedder

    @property
    def dimension(self) -> int | None:
        """The number of numbers in a vector; None if that is not known."""
        return next((v.dimension for v in self._vectors.values() if v.dimension), None)

    @property
    def failing(self) -> bool:
        """Whether the embedder failed when it was last called."""
        return next(iter(self._vectors.values())).failing

    async def nearest(self, vector: NDArray[np.float32], most: int) -> dict[str, float]:
        """As :meth:`Vectors.nearest`, of each session."""
        return {
            f"{number}:{message_id}": cosine
            for number, vectors in self._vectors.items()
            for message_id, cosine in (await vectors.nearest(vector, most)).items()
        }

    def known(self, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """As :meth:`Vectors.known`."""
        found = {}
        for item_id in ids:
            number, _, message_id = item_id.partition(":")
            for rows in self._vectors[number].known([message_id]).values():
                found[item_id] = rows
        return found


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
