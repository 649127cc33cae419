"""A memory that shows the newest part of the conversation, and never half of a group."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import TypeAlias

from pydantic import JsonValue

from agent_brain.memories.errors import MemoryDefinitionError
from agent_brain.memories.journal.entry import Entry
from agent_brain.memories.message import Message, Role
from agent_brain.memories.store.events import live, told
from agent_brain.memories.store.expiry import utc_now
from agent_brain.memories.store.lock import Turns
from agent_brain.memories.store.session import Session
from agent_brain.memories.store.store import JournalLike
from agent_brain.memories.views.groups import arranged
from agent_brain.memories.views.tokens import Counter, kept_tokens
from agent_brain.memories.views.trimming import TrimmingMemory
from agent_brain.memories.views.window import Window
from agent_brain.tools.aio import maybe_await
from agent_brain.tools.text import count_tokens
from agent_brain.tools.toolset import ToolLike

OnEvict: TypeAlias = Callable[[list[Message]], Awaitable[object] | object]


class WindowedMemory(TrimmingMemory):
    """The newest messages, within a limit of messages, of tokens, or both.

    Whole groups leave, oldest first; a group is an assistant message with all its tool results, or
    any other message alone. The goal, pinned messages and the newest group always stay, even where
    they alone exceed a limit. System messages stay as long as they take at most half of each limit;
    beyond it the first and the newest of them stay. A group that is larger than the token budget
    has its tool results shortened in the context (head, marker, tail) before anything leaves; the
    record has them whole.

    What has left is dropped when its turn is over, so the memory does not grow; in a durable
    journal it stays on the disk, where :meth:`history` and :meth:`forget` find it.

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
        MemoryDefinitionError: A limit that is not a whole number from 1.
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
        self._handing = Turns()
        self._under_way: list[tuple[int, Message]] = []
        self._outlived: list[int] = []  # places of what has left, which a rollback brings back
        self._gone_before: set[str] = set()  # deleted while the journal was read
        self._reading = False
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
        return arranged(told(live(entries)).values())

    async def keep(self, name: str, value: JsonValue, *, erase: bool = False) -> None:
        """As :meth:`RecordMemory.keep`; messages may leave to make room for what is shown of it."""
        await super().keep(name, value, erase=erase)
        if self._leaving:
            await self._hand_over()

    async def checkpoint(self) -> None:
        """Write where the run stands, if that has changed."""
        await super().checkpoint()
        if self._outlived and self._session is not None:
            places, self._outlived = self._outlived, []
            await self._session.remove(places)

    # For a memory that sets ``on_evict``

    @property
    def leaving(self) -> list[tuple[int, Message]]:
        """What has left and ``on_evict`` has not taken yet, with its places."""
        return [*self._under_way, *self._leaving]

    def stayed(self, upto: int) -> list[tuple[int, Message]]:
        """The messages of the window that arrived before a place, with their places."""
        found: list[tuple[int, Message]] = []
        for message in self._record:
            place = self._record.place(message.id)
            if place < upto:
                found.append((place, message))
            elif message.role is not Role.TOOL:  # a result may be in front of what is older
                break
        return found

    def place(self, message_id: str) -> int | None:
        """When a message of the window arrived, as a number that grows; None if it is not here."""
        return self._record.place(message_id) if message_id in self._record else None

    def take_left_before(self) -> tuple[list[tuple[int, Message]], set[str]]:
        """What left the window while the journal was read, with its places; once.

        Returns:
            What left, and the ids of what was deleted and may be somewhere else.
        """
        left, self._left_before = self._left_before, []
        struck, self._gone_before = self._gone_before, set()
        return [(place, message) for place, message in left if message.id not in struck], struck

    async def unfinished(self) -> list[Message]:
        """What was recorded after the last checkpoint, wherever it is now."""
        await self._settle()
        session = self._session
        if session is None or not session.control_at:
            return []
        entries = await session.journal.read(session.key, session.safe_at)
        return list(told(live(entries), removed=True).values())

    # What happens to the record happens to the window

    def _replay(self, session: Session, entries: Sequence[Entry]) -> None:
        self._reading = True
        try:
            super()._replay(session, entries)
        finally:
            self._reading = False
        if not session.journal.persistent:
            self._outlived = [place for place, _ in self._left_before]
        if self.on_evict is None:
            self._left_before, self._gone_before = [], set()

    def _emptied(self) -> None:
        super()._emptied()
        self._outlived, self._gone_before = [], set()
        self._renew_window()

    def _forked(self) -> None:
        super()._forked()
        self._handing, self._under_way = Turns(), []

    def _renew_window(self) -> None:
        window = self._window
        self._window = Window(window.max_messages, window.max_tokens, window.counter)
        self._window.reserve(kept_tokens(self._kept, window.counter))

    def _added(self, messages: Sequence[Message]) -> None:
        if self._gone_before:
            self._gone_before.difference_update(message.id for message in messages)
        self._window.add(messages)
        self._let_go()

    def _let_go(self) -> None:
        leaving = self._window.overflow()
        if not leaving:
            return
        left = self._depart(leaving)
        if self.on_evict is not None or self._session is not None:
            self._leaving += left

    def _goal_changed(self) -> None:
        super()._goal_changed()
        self._window.set_goal(self._goal_id)

    def _kept_changed(self, name: str) -> None:
        self._window.reserve(kept_tokens(self._kept, self._window.counter))
        self._let_go()

    def _pins_changed(self) -> None:
        self._removed(())

    def _drop(self, ids: Sequence[str]) -> None:
        super()._drop(ids)
        if self._reading:
            self._gone_before.update(ids)

    def _removed(self, messages: Sequence[Message]) -> None:
        self._renew_window()
        self._fill(self._window)

    async def _hand_over(self) -> None:
        async with self._handing:
            leaving, self._leaving = self._leaving, []
            self._under_way = leaving
            try:
                if self.on_evict is not None and leaving:
                    await maybe_await(self.on_evict([message for _, message in leaving]))
            except BaseException:
                leaving, self._leaving = [*leaving, *self._leaving], []
                self._take_back(leaving)
                raise
            finally:
                self._under_way = []
        session = self._session
        if session is None or session.journal.persistent:
            return
        places = [place for place, _ in leaving]
        if session.control_at:
            self._outlived += places
        else:
            await session.remove(places)

    def _take_back(self, leaving: list[tuple[int, Message]]) -> None:
        for _, message in leaving:
            self._departed.pop(message.id, None)
        self._record.put_back(leaving)
        self._expiry.add(message for _, message in leaving)
        self._removed(())
