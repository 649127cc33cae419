"""Keeps the index of a session, and its vectors, up to date with its log.

Changes of the log are noted at once and without awaiting; :meth:`Indexed.catch_up` does the work
in pieces and removes each from its list when it is done, so nothing is lost if it is cancelled. The
log may change meanwhile, so each message is compared with the log when its piece is done.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
import anyio.to_thread
from pydantic_core import from_json

from agent_brain.memories.message import Message, Role
from agent_brain.memories.recall.results import CONVERSATION
from agent_brain.memories.store.log import MessageLog, decode
from agent_brain.memories.views.base import View

if TYPE_CHECKING:
    from agent_brain.memories.recall.index import RecallIndex
    from agent_brain.memories.vectors.vectors import Vectors

EAGER = 5_000  # messages that are indexed when a session is opened, not when it is first searched
PIECE, PIECE_LETTERS = 500, 100_000  # the most messages and characters that are indexed at once
THREADS = ("thread", CONVERSATION, "session")  # metadata that names the conversation
SYSTEM = str(Role.SYSTEM)
ON_LOOP, ON_LOOP_LETTERS = 32, 20_000  # a smaller piece needs no thread


class Item(NamedTuple):
    """A message as the index takes it.

    Attributes:
        id: Unique in the index.
        text: What was said.
        sender: The name of the speaker; None if nobody is named.
        time: When it was said, aware; None if that is not known.
        thread: The conversation that it belongs to; None is one conversation too.
        role: Tells speakers without a name apart.
    """

    id: str
    text: str
    sender: str | None = None
    time: datetime | None = None
    thread: str | None = None
    role: str | None = None


class Indexed(View):
    """The messages of a log in an index, and their vectors.

    Args:
        vectors: Those of the messages.
        own: Have an index; else there is one only if vectors need the texts in it, as others have
            an index of the same messages.

    Attributes:
        index: What recall searches; None as long as it is empty.
        vectors: Those of the messages.
        awake: Messages are indexed as they come. A large session that was only opened is indexed
            when it is first searched.
        block: What was recalled for the goal, with the state that it was recalled in.
        questions: The vectors of the last questions.
    """

    tail = 0

    def __init__(self, vectors: Vectors, *, own: bool = True) -> None:
        self.vectors = vectors
        self.awake = True
        self._own = own
        self._idle = not own and vectors.embedder is None
        self._lock = anyio.Lock()
        self._start()

    def _start(self) -> None:
        self.index: RecallIndex | None = None
        self._unread = True  # the log may have any number of messages that are not noted below
        self._waiting: dict[str, None] = {}
        self.forget_answers()

    def forget_answers(self) -> None:
        """Forget what was recalled for the goal, and the last questions."""
        self.block: tuple[object, list[Message]] = (None, [])
        self.questions: dict[str, Any] = {}

    # Changes of the log

    def attach(self, log: MessageLog) -> None:
        """As :meth:`View.attach`."""
        super().attach(log)
        self.vectors.attach(log)

    def fresh(self) -> Indexed:
        """As :meth:`View.fresh`."""
        return Indexed(self.vectors.fresh(), own=self._own)

    def reset(self) -> None:
        """As :meth:`View.reset`."""
        self._start()
        self.vectors.reset()

    def add(self, messages: Sequence[Message]) -> None:
        """Add messages, to be indexed by the next :meth:`catch_up`."""
        if not self._unread:
            self._waiting.update((message.id, None) for message in messages)

    def remove(self, messages: Sequence[Message]) -> None:
        """Remove messages at once."""
        ids = [message.id for message in messages]
        for message_id in ids:
            self._waiting.pop(message_id, None)
        if self.index is not None:
            self.index.remove(ids)
        self.vectors.remove(messages)
        self.forget_answers()

    def update_pins(self) -> None:
        """As :meth:`View.update_pins`."""
        self.forget_answers()

    # Work

    def rest_if_large(self) -> None:
        """Leave the work to the first search if there is much of it."""
        self.awake = not self._unread or len(self.log) <= EAGER

    @property
    def behind(self) -> bool:
        """Whether there are messages that cannot be found yet, or not by all that they have."""
        unread = self._unread and len(self.log) > 0
        return (not self._idle and (unread or bool(self._waiting))) or self.vectors.behind

    @property
    def due(self) -> bool:
        """Whether there are many of them, or some to embed: a few others can wait for a search."""
        few = len(self._waiting) <= ON_LOOP and not self._unread
        return self.behind and not (few and self.vectors.embedder is None)

    async def wake(self) -> None:
        """Make all messages findable, also in a large session that was only opened."""
        self.awake = True
        if self.behind:
            await self.catch_up()

    async def catch_up(self, *, embed: bool = True) -> None:
        """Make all messages findable, by their vectors too if ``embed``."""
        if self.awake:
            failure: Exception | None = None  # raised inside, it would become a group
            async with anyio.create_task_group() as group:
                if embed and len(self.log) > EAGER and self.vectors.behind:
                    group.start_soon(self.vectors.prepare)
                try:
                    await self._index_all()
                except Exception as error:
                    failure = error
            if failure is not None:
                raise failure
            if embed:
                await self.vectors.catch_up(0 if self.index is None else self.index.passages)

    async def _index_all(self) -> None:
        async with self._lock:
            if self._unread and not self._idle:
                ids = [*self.log.ids()]
                if self.log.moved:
                    ids.sort(key=self.log.place)  # as they were added
                self._waiting, self._unread = dict.fromkeys(ids), False
            while waiting := [*self._waiting]:
                at = 0
                while at < len(waiting) and self._waiting:  # there was no reset meanwhile
                    at += await self._index_piece(waiting[at : at + PIECE])

    async def _index_piece(self, ids: list[str]) -> int:
        """Index the first of these messages; return how many."""
        found = self.log.peek_each(ids)
        ends = [*accumulate(map(_length, found))]
        size = max(bisect(ends, PIECE_LETTERS), 1)
        ids, found, letters = ids[:size], found[:size], ends[size - 1]
        if self.index is None:
            self.index = await anyio.to_thread.run_sync(_new_index)
        index = self.index
        if size > ON_LOOP or letters > ON_LOOP_LETTERS:
            texts = await anyio.to_thread.run_sync(_add, index, found)
        else:
            texts = _add(index, found)
        if index is not self.index:  # there was a reset meanwhile
            return size
        now = self.log.peek_each(ids)
        changed = {i for i, one, other in zip(ids, found, now, strict=True) if one is not other}
        if changed:  # they are indexed again if they still wait
            index.remove(changed)
            texts = {i: text for i, text in texts.items() if i not in changed}
        for message_id in ids:
            if message_id not in changed:
                self._waiting.pop(message_id, None)
        self.vectors.add(texts)
        return size


def _length(message: Message | str | None) -> int:
    """Return how many characters there are to read."""
    text = message if isinstance(message, str) or message is None else message.content
    return len(text or "")


def is_recalled(message: Message) -> bool:
    """Return whether a message can be found: not those of the system and those without words."""
    return message.role is not Role.SYSTEM and bool(message.content.strip())


def text_of(message: Message | str | None) -> str | None:
    """Return the text of a message, which may be JSON text; None if it is not recalled."""
    item = as_item(message)
    return None if item is None else item.text


def _fields(line: str) -> dict[str, Any]:
    """Return the fields of a message in JSON, in a fraction of the time that decoding it takes.

    Raises:
        JournalError: It is not a message.
    """
    try:
        fields: dict[str, Any] = from_json(line, cache_strings="keys")
        time = fields.pop("occurred_at", None) or fields["created_at"]
        fields["created_at"] = datetime.fromisoformat(time)
    except (ValueError, KeyError, TypeError):
        return decode(line, 0).model_dump()
    return fields


def as_item(message: Message | str | None) -> Item | None:
    """Return a message as the index takes it; None if it is not recalled."""
    if message is None:
        return None
    fields = _fields(message) if isinstance(message, str) else message.__dict__
    text, role = fields.get("content", ""), fields["role"]
    if role == SYSTEM or not text or text.isspace():
        return None
    thread = None
    if metadata := fields.get("metadata"):
        threads = (metadata[name] for name in THREADS if isinstance(metadata.get(name), str))
        thread = next(threads, None)
    sender = fields.get("name") or fields.get("sent_from")
    time = fields.get("occurred_at") or fields["created_at"]
    # in a third of the time that Item() takes
    return tuple.__new__(Item, (fields["id"], text, sender, time, thread, str(role)))


def _new_index() -> RecallIndex:
    from agent_brain.memories.recall.index import RecallIndex  # which takes a while the first time

    return RecallIndex()


def _add(index: RecallIndex, messages: Iterable[Message | str | None]) -> dict[str, str]:
    """Add messages, which may be JSON text, to ``index``; return the texts of those by ID."""
    items = [item for item in map(as_item, messages) if item is not None]
    index.add(items)
    return {item.id: item.text for item in items}
