"""Gives the messages of one memory to another one, each once, also after a crash."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any, cast

from pydantic import JsonValue

from agent_brain.common.secrets import get_logger
from agent_brain.memories.errors import SessionConflictError
from agent_brain.memories.journal.entry import Rows
from agent_brain.memories.message import Message, Role
from agent_brain.memories.recall.results import CONVERSATION
from agent_brain.memories.store import removal
from agent_brain.memories.store.erasure import Erasure
from agent_brain.memories.store.events import MESSAGES, Change, ValueSet, effective
from agent_brain.memories.store.lock import Lock
from agent_brain.memories.store.log import MessageLog, id_of
from agent_brain.memories.store.many import in_slices, in_thread_if_many
from agent_brain.memories.store.removal import REMOVING

if TYPE_CHECKING:
    from agent_brain.memories.stored import StoredMemory
    from agent_brain.memories.windowed import WindowedMemory

log = get_logger(__name__)

HANDED = "handed_over"  # the name of the value with the place up to which all was handed over
MARK_EVERY = 64  # places after which the value is written again


class HandOver:
    """Hands messages from a short-term memory to a long-term one, in order.

    The long-term memory is written first, then the value in the session of the short-term one. What
    a crash leaves between the two is recognised by its IDs.

    Args:
        short: The short-term memory.
        long: The long-term memory.
        keeps: Whether it gets a message.

    Attributes:
        places: The places of messages that were handed over, by ID; they grow along the dict.
        upto: Everything up to this place was handed over before.
    """

    def __init__(
        self, short: WindowedMemory, long: StoredMemory, keeps: Callable[[Message], bool]
    ) -> None:
        self._short = short
        self._long = long
        self._keeps = keeps
        self._removing = Lock()
        self.reset()
        short.on_evict, short._is_layered = self.take, True
        if short.store.session is not None:
            short.store.session.marker = HANDED

    def reset(self) -> None:
        """Start with a conversation of which nothing was handed over."""
        self.places: dict[str, int] = {}
        self._stored: dict[str, int] | None = None  # places in the session, once they were read
        self.upto = 0

    def lose(self, ids: Iterable[str]) -> None:
        """Note that messages were removed from both memories."""
        for message_id in ids:
            self.places.pop(message_id, None)
            if self._stored:
                self._stored.pop(message_id, None)

    def place(self, message_id: str) -> int | None:
        """Return the place of a message that was handed over, if it is known."""
        return self.places.get(message_id) or (self._stored or {}).get(message_id)

    async def read_places(self) -> dict[str, int]:
        """Read the places of what was handed over before the session was opened, once."""
        session = self._short.store.session
        if self._stored is None:
            rows = Rows() if session is None else await session.rows()
            self._stored = await in_thread_if_many(rows, _places)
        return self._stored

    async def take(self, messages: list[Message]) -> None:
        """Hand over what leaves the window."""
        await self._hand(self._short.leaving[: len(messages)])

    async def rest(self) -> int:
        """Hand over what is in the window; return how many messages are new."""
        messages = self._short.store.log
        if messages.last <= self.upto:
            return 0
        count = await self._hand([(messages.place(m.id), m) for m in messages])
        await self._mark(messages.last)
        return count

    async def rest_at_end(self) -> None:
        """Hand over what is in the window, unless another memory continues the conversation."""
        if self._short.readonly or self._long.readonly:
            return
        try:
            try:
                await self.rest()
            except SessionConflictError as error:
                session = self._short.store.session
                if session is not None and error.session == session.key:
                    raise
                await self._long.reopen()  # its messages are known by their IDs
                await self.rest()
        except SessionConflictError:
            log.info("The conversation is handed over by the memory that continues it")

    async def _hand(self, left: Sequence[tuple[int, Message]]) -> int:
        """Hand over ``left``, with what arrived before it and stays in the window."""
        upto = max((place for place, _ in left), default=0)
        pairs = {pair[1].id: pair for pair in [*_before(self._short.store.log, upto), *left]}
        new = (pair for i, pair in pairs.items() if pair[0] > self.upto and i not in self.places)
        due = sorted(new, key=lambda pair: pair[0])
        missing = [m for _, m in due if self._keeps(m) and await self._long.get(m.id) is None]
        if missing and not self._long.readonly:
            await self._long.update([*map(self._marked, missing)])
        self.places.update((message.id, place) for place, message in due)
        return len(missing)

    def _marked(self, message: Message) -> Message:
        """Return ``message`` with the name of its conversation, where other ones are kept too."""
        name = self._short.session
        if not self._long.shared or name is None or CONVERSATION in message.metadata:
            return message
        metadata = {**message.metadata, CONVERSATION: name}
        return message.model_copy(update={"metadata": metadata})

    async def mark_if_due(self) -> None:
        """Write up to where everything was handed over, from time to time."""
        handed = next(reversed(self.places.values()), 0)
        if self._short.durable and handed >= self.upto + MARK_EVERY:
            await self._mark(handed)

    async def _mark(self, upto: int) -> None:
        await self._short.keep(HANDED, {"upto": upto})
        self.upto = upto

    async def forget(self, ids: Sequence[str], gone: Erasure) -> None:
        """Forget messages in both memories; what a crash interrupts, the next opening finishes."""

        def note() -> list[Change]:
            ids_noted, texts = self._noted.get("ids", []), self._noted.get("texts", [])
            noted: JsonValue = {"ids": [*ids_noted, *ids], "texts": [*texts, *sorted(gone.parts)]}
            return [ValueSet(REMOVING, noted)]

        await removal.remove(self._short, lambda: ids, gone, note)
        self.lose(ids)
        await self.finish_removal()

    async def clear(self, ids: Sequence[str], *, everything: bool, keep: Sequence[str]) -> None:
        """Clear the short-term memory, and the long-term one or these messages of it."""
        noted: JsonValue = {"clear": True, "keep": [*keep]}
        if not everything:
            noted = {"ids": [*self._noted.get("ids", []), *ids]}
        note = [ValueSet(REMOVING, noted)]
        await removal.clear(self._short, keep=keep, note=note)
        self.reset()
        await self.finish_removal()

    @property
    def _noted(self) -> dict[str, Any]:
        noted = self._short.store.values.get(REMOVING)
        return noted if isinstance(noted, dict) else {}

    async def finish_removal(self) -> None:
        """Forget in the long-term memory what is noted, then in the short-term one."""
        if self._short.readonly or self._long.readonly:
            return
        async with self._removing:
            if not (noted := self._noted):
                return
            ids, texts = noted.get("ids", []), noted.get("texts", [])
            if noted.get("clear"):
                await self._long.clear(keep=noted["keep"])
            elif ids:
                await self._long.forget(ids)
            for memory in (self._long, self._short):
                for text in texts:
                    await memory.forget(text=text)
            known = await removal.everything(self._short)

            def note() -> list[Change]:
                later = {
                    "ids": self._noted.get("ids", [])[len(ids) :],
                    "texts": self._noted.get("texts", [])[len(texts) :],
                }
                return [ValueSet(REMOVING, later if any(later.values()) else None)]

            chosen = frozenset(ids)
            await removal.erase(self._short, ids, removal.EXPIRED, chosen, known, note)

    async def finish(self) -> None:
        """Finish what a crash has interrupted: removing, and handing over."""
        if self._noted:
            await self.finish_removal()
        session = self._short.store.session
        left, removed = ([], {}) if session is None else session.reading.take()
        marked = self._short.store.values.get(HANDED)
        if isinstance(marked, dict):
            self.upto = max(self.upto, cast(int, marked["upto"]))
        if left:
            self.places, self._stored = {}, None  # the session was read again
            await self._hand([pair for pair in left if pair[1].id not in removed])
        gone = [i for i in removed if await self._long.get(i) is not None]
        if gone and not self._long.readonly:
            await self._long.delete(gone)

    async def after(self, place: int) -> list[tuple[int, Message]]:
        """Return what was handed over from places after ``place``, in order, as it is now."""
        if place < self.upto:
            places = await self.read_places() | self.places
            await self._long.open()
            await self._long.store.log.decoded()
        else:
            places = dict(takewhile(lambda pair: pair[1] > place, reversed(self.places.items())))
        found: list[tuple[int, Message]] = []
        async for i, at in in_slices(places.items()):
            if at > place and (message := await self._long.get(i)) is not None:
                found.append((at, message))
        return sorted(found, key=lambda pair: pair[0])


def _places(rows: Rows) -> dict[str, int]:
    """Return the places of the messages of ``rows``, by ID."""
    return {id_of(line): seq for seq, kind, line in effective(rows) if kind in MESSAGES}


def _before(log: MessageLog, upto: int) -> list[tuple[int, Message]]:
    """Return the messages of a window that arrived before a place, with their places."""
    found: list[tuple[int, Message]] = []
    for message in log:
        place = log.place(message.id)
        if place < upto:
            found.append((place, message))
        elif message.role is not Role.TOOL:  # a result may be in front of what is older
            break
    return found
