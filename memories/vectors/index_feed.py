"""Feeds messages to the index beneath recall, in pieces that do not hold up the event loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from agent_brain.memories.message import Message, Role

if TYPE_CHECKING:
    from agent_brain.memories.recall.index import RecallIndex
    from agent_brain.memories.recall.items import Item

PIECE, PIECE_LETTERS = 256, 100_000  # at most so many messages go in at once
ON_LOOP, ON_LOOP_LETTERS = 32, 20_000  # a piece that is so small needs no thread


class IndexFeed:
    """Messages that wait to be indexed, and the index.

    A piece is struck from the list when it is indexed, so whoever is cut off loses nothing; and as
    the list may change while a thread is at work, it is then compared with the list anew.

    Attributes:
        index: None while there is no message.
        lock: Held while messages are indexed.
    """

    def __init__(self) -> None:
        self.index: RecallIndex | None = None
        self.lock = anyio.Lock()
        self._waiting: dict[str, Message] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, messages: Iterable[Message]) -> None:
        """Have messages wait. Those of the system, and those without words, are not recalled."""
        for message in messages:
            if is_recalled(message):
                self._waiting[message.id] = message

    def drop(self, ids: Sequence[str]) -> None:
        """These messages are gone."""
        for message_id in ids:
            self._waiting.pop(message_id, None)
        if self.index is not None:
            self.index.remove(ids)

    def reset(self) -> None:
        """All messages are gone."""
        self.index, self._waiting = None, {}

    async def run(self, done: Callable[[Message], None]) -> None:
        """Index what waits; ``done`` is called for each message, unless it has gone meanwhile."""
        async with self.lock:
            while self._waiting:
                await self._index_piece(self._next_piece(), done)

    def _next_piece(self) -> list[Message]:
        piece: list[Message] = []
        letters = 0
        for message in islice(self._waiting.values(), PIECE):
            letters += len(message.content)
            if piece and letters > PIECE_LETTERS:
                break
            piece.append(message)
        return piece

    async def _index_piece(self, piece: Sequence[Message], done: Callable[[Message], None]) -> None:
        from agent_brain.memories.recall.index import RecallIndex

        if self.index is None:
            self.index = RecallIndex()
        index = self.index
        items = [_item(message) for message in piece]
        if len(items) > ON_LOOP or sum(len(item.text) for item in items) > ON_LOOP_LETTERS:
            await anyio.to_thread.run_sync(index.add, items)
        else:
            index.add(items)
        if index is not self.index:  # it was reset meanwhile
            return
        for message in piece:
            if self._waiting.get(message.id) is not message:  # it was dropped meanwhile
                index.remove([message.id])
                continue
            del self._waiting[message.id]
            done(message)


def is_recalled(message: Message) -> bool:
    """Whether a message can be found; those of the system, and those without words, cannot."""
    return message.role is not Role.SYSTEM and bool(message.content.strip())


def _item(message: Message) -> Item:
    from agent_brain.memories.recall.items import Item

    thread = message.metadata.get("thread")
    return Item(
        id=message.id,
        text=message.content,
        sender=message.name or message.sent_from,
        time=message.created_at,
        thread=thread if isinstance(thread, str) else None,
        role=message.role.value,
    )
