"""Thoughts of branches that think at once, one after another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from agent_brain.states.events import (
    ActionRequested,
    Event,
    RunFailed,
    RunFinished,
    StateExited,
    TextDelta,
    UsageReported,
)

Voice: TypeAlias = tuple[tuple[str, ...], str | None]


def voice_of(event: TextDelta) -> Voice:
    """Return what tells the thoughts of one model call, or of one state, from others."""
    return event.path, event.response_id


class Thoughts:
    """Passes on the thoughts of one branch as they come, and those of others after it."""

    def __init__(self) -> None:
        self._held: dict[Voice, list[TextDelta]] = {}  # those of the first are passed on
        self._ended: set[Voice] = set()

    def after(self, event: Event) -> Iterator[TextDelta]:
        """Yield the thoughts that are to be shown now."""
        match event:
            case TextDelta(thought=True):
                self._held.setdefault(voice_of(event), []).append(event)
            case ActionRequested():  # it is shown at once, and what led to it before
                for voice in [each for each in self._held if each[0] == event.path]:
                    yield from self._held.pop(voice)
            case TextDelta() | UsageReported() | StateExited() | RunFinished() | RunFailed():
                self._ended.update(voice for voice in self._held if _ends(event, voice))
        while self._held:
            first = next(iter(self._held))
            yield from self._held[first]
            self._held[first] = []
            if first not in self._ended:
                break
            del self._held[first]
        self._ended &= self._held.keys()


def _ends(event: Event, voice: Voice) -> bool:
    path, response = voice
    if isinstance(event, UsageReported):
        return response is not None and voice == (event.path, event.response_id)
    return path[: len(event.path)] == event.path
