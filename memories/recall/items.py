"""What goes into the index beneath recall, and what comes out of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Item:
    """A message as the index takes it.

    Attributes:
        id: Unique in the index.
        text: What was said.
        sender: Who said it, by name; None where nobody is named.
        time: When, aware; None if that is not known.
        thread: The conversation that it belongs to; None is one conversation too.
        role: Tells speakers without a name apart.
        vector: Its embedding, if there is one already.
    """

    id: str
    text: str
    sender: str | None = None
    time: datetime | None = None
    thread: str | None = None
    role: str | None = None
    vector: ArrayLike | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Hit:
    """A message that was found.

    Attributes:
        id: Of the message.
        score: How well it fits; comparable between questions to one index.
        why: What each cue added to the score, by the names of
            :class:`~agent_brain.memories.recall.scoring.Parts`; those that added nothing are left
            out.
    """

    id: str
    score: float
    why: dict[str, float]
