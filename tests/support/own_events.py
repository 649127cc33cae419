"""A net whose state yields an event of its own class, also from a branch."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

from agent_brain import Memory
from agent_brain.nets import Net
from agent_brain.states import Event, State

FIELDS = {"done": 3, "total": 7, "note": "é <b>\n"}


@dataclass(frozen=True, slots=True)
class PagesRead(Event):
    """How far a state has read."""

    kind: ClassVar[str] = "pages_read"
    done: int
    total: int
    note: str = "é <b>\n"


class Read(Enum):
    """The only state."""

    PAGES = "pages"


class _ReadState(State):
    async def run(self, memory: Memory) -> AsyncIterator[str | Event]:
        yield PagesRead(3, 7)
        yield "Three of seven."

    async def next_state(self, memory: Memory) -> None:
        return None


def reading_net() -> Net:
    """Return the net."""
    states: dict[Any, State] = {Read.PAGES: _ReadState()}
    return Net(states, name="reading")
