"""What the user asks for, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Ask:
    """One thing that the user wants.

    Attributes:
        kind: What sort of thing: a key of :data:`agent_brain.demo.needs.SIGNS`, ``"talk"``, or
            ``"other"`` for words that no parser knows, which may still fit a tool.
        text: The user's words for it.
        slots: What was found in the words, by role.
    """

    kind: str
    text: str
    slots: Mapping[str, Any] = field(default_factory=dict)
