"""A memory that shows the newest part of the conversation, and never half of a group."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias, Unpack

from agent_brain.common.aio import maybe_await
from agent_brain.common.text import count_tokens
from agent_brain.memories.errors import MemoryDefinitionError
from agent_brain.memories.message import Message
from agent_brain.memories.options import StoreOptions
from agent_brain.memories.store.lock import Lock
from agent_brain.memories.store.queries import journal_messages
from agent_brain.memories.stored import StoredMemory
from agent_brain.memories.views.tokens import Counter
from agent_brain.memories.views.window import Window
from agent_brain.tools.toolset import ToolLike

OnEvict: TypeAlias = Callable[[list[Message]], Awaitable[object] | object]


class WindowedMemory(StoredMemory):
    """The newest messages, within a limit of messages, of tokens, or both.

    Whole groups leave, oldest first; a group is an assistant message with all its tool results, or
    any other message alone. The goal, pinned messages and the newest group always stay, even where
    they alone exceed a limit. System messages stay as long as they take at most half of each limit;
    beyond it the first and the newest of them stay. A group that is larger than the token budget
    has its tool results shortened in the context (head, marker, tail) before anything leaves; they
    are stored whole::

        memory = WindowedMemory(max_tokens=8_000)
        brain = Brain("react", memory)

    What has left is dropped from RAM when its turn is over; a durable journal keeps it, where
    :meth:`history` and :meth:`forget` find it.

    Args:
        tools: The tools that the agent may call.
        max_messages: How many messages at most; None for no such limit.
        max_tokens: How many tokens at most; None for no such limit.
        counter: Counts the tokens of a text; the default estimates, without a tokenizer.
        on_evict: Called with what leaves, oldest first, in lists; sync or async. While it raises,
            these messages stay, and ``update``, which has added its messages, raises the error.
        journal: As for :class:`StoredMemory`, like ``session``, ``tenant``, ``ttl``, ``clock``,
            ``readonly``, ``shared``, ``history``, ``lease_wait`` and ``dedupe``.

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
        **options: Unpack[StoreOptions],
    ) -> None:
        if on_evict is not None and not callable(on_evict):
            raise MemoryDefinitionError(f"on_evict= must be a function, not {on_evict!r}")
        if on_evict is not None and options.get("shared"):
            raise MemoryDefinitionError(
                "on_evict= and shared=True do not go together: every memory of the session would "
                "hand over the same messages"
            )
        super().__init__(tools, views=[Window(max_messages, max_tokens, counter)], **options)
        self._on_evict: OnEvict | None = None
        self.on_evict = on_evict
        self._is_layered = False  # whether a LayeredMemory takes what leaves; copies have their own
        self._start_handing()

    @property
    def on_evict(self) -> OnEvict | None:
        """Called with what leaves the window."""
        return self._on_evict

    @on_evict.setter
    def on_evict(self, function: OnEvict | None) -> None:
        self._on_evict = function
        self.store.takes_evicted = function is not None

    def _start_handing(self) -> None:
        self._handing = Lock()
        self._under_way: list[tuple[int, Message]] = []

    async def _forked(self) -> None:
        self.on_evict = None if self._is_layered else self._on_evict
        self._is_layered = False
        self._start_handing()

    async def history(self) -> list[Message]:
        """Return everything that is not deleted, also what has left the window, if it is stored."""
        await self._settle()
        if self.store.session is None:
            return list(self.store.log)
        return await journal_messages(self.store)

    @property
    def leaving(self) -> list[tuple[int, Message]]:
        """What has left and ``on_evict`` has not taken yet, with its places."""
        return [*self._under_way, *self.store.evicted]

    async def _hand_over(self) -> None:
        store = self.store
        if store.session is not None and store.session.held:
            await self.record()  # nothing is handed over that is not written
        async with self._handing:
            leaving, store.evicted = store.evicted, []
            self._under_way = leaving
            try:
                if self.on_evict is not None and leaving:
                    await maybe_await(self.on_evict([message for _, message in leaving]))
            except BaseException:
                back, store.evicted = [*leaving, *store.evicted], []
                store.take_back(back)
                raise
            finally:
                self._under_way = []
