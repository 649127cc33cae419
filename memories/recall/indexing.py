"""Keeps the index of a session up to date with its log.

Changes of the log are noted at once and without awaiting; :meth:`Indexing.catch_up` does the work
in pieces and removes each from its list when it is done, so nothing is lost if it is cancelled. The
log may change meanwhile, so each message is compared with the log when its piece is done.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import anyio.to_thread
from pydantic_core import from_json

from agent_brain.memories.message import Message, Role
from agent_brain.memories.recall.items import Item
from agent_brain.memories.recall.results import CONVERSATION
from agent_brain.memories.store.log import MessageLog, decode

if TYPE_CHECKING:
    from agent_brain.memories.recall.index import RecallIndex

EAGER = 5_000  # messages that are indexed when a session is opened, not when it is first searched
PIECE, PIECE_LETTERS = 1_000, 100_000  # the most messages and characters that are indexed at once
LISTED = 5_000  # messages that are listed at once
THREADS = ("thread", CONVERSATION, "session")  # metadata that names the conversation
SYSTEM = str(Role.SYSTEM)
ON_LOOP, ON_LOOP_LETTERS = 32, 20_000  # a smaller piece needs no thread


class Indexing:
    """The index of one session.

    Args:
        indexed: Called with the texts of messages, by ID, that can be found from now on.
        idle: Index nothing, as others have an index of the same messages.

    Attributes:
        index: What recall searches; None as long as it is empty.
        awake: Messages are indexed as they come. A large session that was only opened is indexed
            when it is first searched.
    """

    def __init__(self, indexed: Callable[[Mapping[str, str]], None], *, idle: bool = False) -> None:
        self.index: RecallIndex | None = None
        self.awake = True
        self._indexed = indexed
        self._idle = idle
        self._log = MessageLog()
        self._unread = True  # the log may have any number of messages that are not noted below
        self._waiting: dict[str, None] = {}
        self._lock = anyio.Lock()

    def attach(self, log: MessageLog) -> None:
        """Read messages from ``log`` from now on."""
        self._log = log

    def add(self, messages: Iterable[Message]) -> None:
        """Add messages, which are in the log, to be indexed by the next :meth:`catch_up`."""
        if not self._unread:
            self._waiting.update((message.id, None) for message in messages)

    def remove(self, messages: Iterable[Message]) -> None:
        """Remove messages at once."""
        ids = [message.id for message in messages]
        for message_id in ids:
            self._waiting.pop(message_id, None)
        if self.index is not None:
            self.index.remove(ids)

    def reset(self) -> None:
        """Start again with the messages of the log."""
        self.index, self._unread = None, True
        self._waiting = {}

    def rest_if_large(self) -> None:
        """Leave the work to the first search if there is much of it."""
        self.awake = not self._unread or len(self._log) <= EAGER

    @property
    def behind(self) -> bool:
        """Whether there are messages that cannot be found yet."""
        unread = self._unread and len(self._log) > 0
        return not self._idle and (unread or bool(self._waiting))

    async def catch_up(self) -> None:
        """Make all messages findable."""
        async with self._lock:
            if self._unread and not self._idle:
                await self._list()
            while self._waiting:
                await self._index_piece()

    async def _list(self) -> None:
        self._unread, ids = False, [*self._log.ids()]
        if self._log.moved:
            ids.sort(key=self._log.place)  # as they were added
        try:
            for start in range(0, len(ids), LISTED):
                self._waiting.update(dict.fromkeys(ids[start : start + LISTED]))
                await anyio.lowlevel.checkpoint()
        except BaseException:  # it was cancelled
            self._unread = True
            raise

    async def _index_piece(self) -> None:
        log, ids = self._log, [*islice(self._waiting, PIECE)]
        messages = log.peek_all(ids)
        letters = [*accumulate(map(_letters, messages))]
        count = max(bisect_right(letters, PIECE_LETTERS), 1)
        ids, messages = ids[:count], messages[:count]
        if self.index is None:
            self.index = await anyio.to_thread.run_sync(_new_index)
        index = self.index
        if count > ON_LOOP or letters[count - 1] > ON_LOOP_LETTERS:
            texts = await anyio.to_thread.run_sync(_add, index, messages)
        else:
            texts = _add(index, messages)
        if index is not self.index:  # there was a reset meanwhile
            return
        now = zip(ids, messages, log.peek_all(ids), strict=True)
        changed = {i for i, message, there in now if there is not message}
        if changed:  # they are indexed again if they still wait
            index.remove(changed)
            texts = {i: text for i, text in texts.items() if i not in changed}
        for message_id in ids:
            if message_id not in changed:
                self._waiting.pop(message_id, None)
        self._indexed(texts)


def _letters(message: Message | str | None) -> int:
    if isinstance(message, str):
        return len(message)
    return 0 if message is None else len(message.content)


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
        fields: dict[str, Any] = from_json(line)
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
    return Item(fields["id"], text, sender, time, thread, str(role))


def _new_index() -> RecallIndex:
    from agent_brain.memories.recall.index import RecallIndex  # which takes a while the first time

    return RecallIndex()


def _add(index: RecallIndex, messages: Iterable[Message | str | None]) -> dict[str, str]:
    """Add messages, which may be JSON text, to ``index``; return the texts of those by ID."""
    items = [item for item in map(as_item, messages) if item is not None]
    index.add(items)
    return {item.id: item.text for item in items}
