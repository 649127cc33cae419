"""A memory that shows the newest part of the conversation, and never half of a group."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import TypeAlias

from agent_brain.memories.changes import live, told
from agent_brain.memories.errors import MemoryDefinitionError
from agent_brain.memories.expiry import utc_now
from agent_brain.memories.journal.entry import Entry
from agent_brain.memories.message import Message
from agent_brain.memories.record_core import JournalLike
from agent_brain.memories.record_memory import RecordMemory
from agent_brain.memories.session import Session
from agent_brain.memories.tokens import Counter
from agent_brain.memories.window import Window
from agent_brain.tools.text import count_tokens
from agent_brain.tools.toolset import ToolLike

OnEvict: TypeAlias = Callable[[list[Message]], Awaitable[object] | object]


class WindowedMemory(RecordMemory):
    """The newest messages, within a limit of messages, of tokens, or both.

    Whole groups leave, oldest first; a group is an assistant message with all its tool results, or
    any other message alone. The goal, pinned messages and the newest group always stay, even where
    they alone exceed a limit. A group that is larger than the token budget has its tool results
    shortened in the context (head, marker, tail) before anything leaves; the record has them whole.

    What has left is dropped, so the memory does not grow; in a durable journal it stays on the
    disk, where :meth:`history` and :meth:`forget` find it.

    Args:
        tools: What the agent may call.
        max_messages: At most so many messages; None for no such limit.
        max_tokens: At most so many tokens; None for no such limit.
        counter: Counts the tokens of a text; the default estimates, without a tokenizer.
        on_evict: Gets what leaves, oldest first, in lists; sync or async. While it raises, what it
            was given stays, and ``update``, which has added its messages, raises the error.
        journal: As for :class:`RecordMemory`, like ``session``, ``tenant``, ``ttl``, ``clock`` and
            ``readonly``.

    Raises:
        MemoryDefinitionError: A limit below 1.
    """

    def __init__(
        self,
        tools: Iterable[ToolLike] = (),
        *,
        max_messages: int | None = 100,
        max_tokens: int | None = None,
        counter: Counter = count_tokens,
        on_evict: OnEvict | None = None,
        journal: JournalLike | None = None,
        session: str = "default",
        tenant: str | None = None,
        ttl: timedelta | float | None = None,
        clock: Callable[[], datetime] = utc_now,
        readonly: bool = False,
    ) -> None:
        self._window = Window(max_messages, max_tokens, counter)
        if on_evict is not None and not callable(on_evict):
            raise MemoryDefinitionError(f"on_evict= must be a function, not {on_evict!r}")
        self.on_evict = on_evict
        super().__init__(
            tools,
            journal=journal,
            session=session,
            tenant=tenant,
            ttl=ttl,
            clock=clock,
            readonly=readonly,
        )

    async def context(self) -> list[Message]:
        """What fits, in the order it happened."""
        if self._due is not None:
            await self._settle()
        return self._window.show(list(self._record))

    async def history(self) -> list[Message]:
        """Everything that is not deleted, with what has left the window, as far as it is kept."""
        await self._settle()
        if self._session is None:
            return list(self._record)
        entries = await self._session.journal.read(self._session.key)
        return list(told(live(entries)).values())

    def take_left_before(self) -> list[Message]:
        """What left the window while the journal was read, once; for who sets ``on_evict``."""
        left, self._left_before = self._left_before, []
        return [message for _, message in left]

    def _replay(self, session: Session, entries: Sequence[Entry]) -> None:
        super()._replay(session, entries)
        if self.on_evict is None:
            self._left_before = []

    def _emptied(self) -> None:
        window = self._window
        self._window = Window(window.max_messages, window.max_tokens, window.counter)

    def _added(self, messages: Sequence[Message]) -> None:
        self._window.add(messages)
        leaving = self._window.overflow()
        if leaving:
            self._evict(leaving)

    def _goal_changed(self) -> None:
        self._window.set_goal(self._goal_id)

    def _removed(self, messages: Sequence[Message]) -> None:
        self._emptied()
        self._window.set_goal(self._goal_id)
        for message in self._record:
            self._window.add([message])
            self._window.shorten_newest()

    def _evict(self, ids: Sequence[str]) -> None:
        if self.on_evict is None and self._session is None:
            self._record.remove(ids)
            return
        places = [self._record.place(message_id) for message_id in ids]
        self._leaving += zip(places, self._record.remove(ids), strict=True)

    async def _hand_over(self) -> None:
        leaving, self._leaving = self._leaving, []
        try:
            if self.on_evict is not None:
                done = self.on_evict([message for _, message in leaving])
                if inspect.isawaitable(done):
                    await done
        except BaseException:
            self._take_back(leaving)
            raise
        session = self._session
        if session is not None and not session.journal.persistent:
            await session.let_go(place for place, _ in leaving)

    def _take_back(self, leaving: list[tuple[int, Message]]) -> None:
        self._record.put_back(leaving)
        self._removed([])
