"""Memories from whose record messages leave, while those of the current turn stay at hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agent_brain.memories.message import Message, Role
from agent_brain.memories.record_memory import RecordMemory
from agent_brain.memories.views.groups import arranged
from agent_brain.memories.views.window import Window


class TrimmingMemory(RecordMemory):
    """A record that a view takes messages out of; :meth:`turn` has the whole turn all the same.

    What has left during the current turn is kept in RAM until the next one begins.
    """

    @property
    def _keeps_departed(self) -> bool:
        """Whether what has left is kept in RAM beyond its turn."""
        return False

    def _emptied(self) -> None:
        self._departed: dict[str, tuple[int, Message]] = {}  # with their places
        self._spoke = 0  # place of the last assistant message that has left

    def _depart(self, ids: Sequence[str]) -> list[tuple[int, Message]]:
        """Take messages, which must be there, out of the record; returns them with their places."""
        began = self._turn_place()
        ordered = sorted(ids, key=self._record.place)
        places = [self._record.place(message_id) for message_id in ordered]
        left = list(zip(places, self._record.remove(ordered), strict=True))
        for place, message in left:
            if message.role is Role.ASSISTANT:
                self._spoke = max(self._spoke, place)
            if self._keeps_departed or (began is not None and place > began):
                self._departed[message.id] = place, message
        self._stop_watching(m.id for _, m in left if m.id not in self._departed)
        return left

    def _fill(self, window: Window) -> None:
        """Put the record into a new window, as if all of it had just been said."""
        window.set_goal(self._goal_id)
        for message in self._record:
            window.add([message])
            window.shorten_newest()
        waiting = window.waiting
        if waiting is not None and self._record.place(waiting) < self._spoke:
            window.abandon()

    def _turn_place(self) -> int | None:
        if self._goal_id is None or self._goal_id not in self._record:
            return None
        return self._record.place(self._goal_id)

    def _stop_watching(self, ids: Iterable[str]) -> None:
        """What has left expires no more, unless a copy of it stays somewhere."""
        if self._session is None or not self._session.journal.persistent:
            self._expiry.discard(ids)

    def _goal_changed(self) -> None:
        if self._keeps_departed:
            return
        began = self._turn_place()
        over = [i for i, (place, _) in self._departed.items() if began is None or place < began]
        for message_id in over:
            del self._departed[message_id]
        if over:
            self._stop_watching(over)

    def _drop(self, ids: Sequence[str]) -> None:
        super()._drop(ids)
        for message_id in ids:
            self._departed.pop(message_id, None)

    async def everything(self) -> list[Message]:
        """As :meth:`RecordMemory.everything`, with what is kept of the turn."""
        departed = {message.id: message for _, message in self._departed.values()}
        return list({**departed, **{m.id: m for m in await super().everything()}}.values())

    async def turn(self) -> list[Message]:
        """The current goal and what was recorded since, with what has left the view meanwhile."""
        behind = await super().turn()
        began = self._turn_place()
        if began is None or not self._departed:
            return behind
        placed = [(self._record.place(message.id), message) for message in behind]
        placed += [pair for pair in self._departed.values() if pair[0] > began]
        return arranged(message for _, message in sorted(placed, key=lambda pair: pair[0]))
