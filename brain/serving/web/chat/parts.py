"""The texts of a run that are being streamed to a user interface. Private."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from agent_brain.states.events import Event, TextDelta

Path: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A text that has begun and not ended.

    Attributes:
        id: Its ID in the protocol.
        thought: Whether it is reasoning.
        path: The subnets and branches around the state that says it.
        state: That state.
        response_id: The model response that it belongs to.
    """

    id: str
    thought: bool
    path: Path
    state: str | None
    response_id: str | None


class OpenParts:
    """The texts that have begun and not ended: at most one for each response and path."""

    def __init__(self) -> None:
        self._open: dict[tuple[Path, str | None], Part] = {}

    def get(self, event: TextDelta) -> Part | None:
        """Return the text that ``event`` continues or ends."""
        return self._open.get((event.path, event.response_id))

    def add(self, event: TextDelta, part_id: str) -> Part:
        """Begin a text."""
        part = Part(part_id, event.thought, event.path, event.state, event.response_id)
        self._open[event.path, event.response_id] = part
        return part

    def close_response(self, event: Event, response_id: str | None) -> list[Part]:
        """End the text of a response, and return it."""
        part = self._open.pop((event.path, response_id), None)
        return [] if part is None else [part]

    def close_state(self, path: Path, state: str | None) -> list[Part]:
        """End the texts of a state, and of everything inside it; return them."""
        inside = (*path, state)
        return self._close(
            lambda part: (
                (part.path == path and part.state == state) or part.path[: len(inside)] == inside
            )
        )

    def close_path(self, path: Path) -> list[Part]:
        """End the texts at a path and inside it; return them. The empty path means all."""
        return self._close(lambda part: part.path[: len(path)] == path)

    def _close(self, ends: Callable[[Part], bool]) -> list[Part]:
        found = [(key, part) for key, part in self._open.items() if ends(part)]
        for key, _ in found:
            del self._open[key]
        return [part for _, part in found]
