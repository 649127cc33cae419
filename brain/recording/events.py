"""The events of a replay, whose parts become one run."""

from __future__ import annotations

from agent_brain.limits import WAITING
from agent_brain.memories.message import Message
from agent_brain.states.events import Event, Position, RunFinished, RunStarted

OF_CALLS = ("action_started", "action_finished", "tool_progress")
ASKING = ("approval_requested", "input_requested")


class ReplayedEvents:
    """Collects the events of the parts of a run.

    A step that waited for a person is repeated when the run is resumed: of what happened before,
    only the calls count.
    """

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._step = 0  # where the events of the current step begin

    def add(self, event: Event) -> None:
        """Add an event."""
        if event.kind == "run_started":
            self._drop_end()
            return
        if event.kind == "state_entered" and not event.path:
            self._step = len(self._events)
        self._events.append(event)

    def _drop_end(self) -> None:
        """Drop the end of the part before, and what its last step did in vain."""
        if not self._events:
            return
        end = self._events.pop()
        if isinstance(end, RunFinished) and end.stop_reason in WAITING:
            step = self._events[self._step :]
            self._events[self._step :] = [event for event in step if event.kind in OF_CALLS]

    def as_one_run(self, goal: Message | None, net: str) -> list[Event]:
        """Return the events, beginning with the start of the run."""
        if not self._events:
            return []
        start = RunStarted(goal, net, resumed=False, at=Position(self._events[0].at.run_id, 0))
        return [start, *(event for event in self._events if event.kind not in ASKING)]
