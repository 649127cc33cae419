"""What the events of an interrupted run lack, and which of them its repeated step undoes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agent_brain.memories.control import Control
from agent_brain.memories.runs.calls import Call
from agent_brain.states.events import (
    ActionFinished,
    ActionStarted,
    AgentEvent,
    Position,
    StateExited,
)

ENDS = ("run_finished", "run_failed")
Counting = Mapping[int, Mapping[str, Any]]


def missing_exit(counting: Counting, control: Control) -> StateExited | None:
    """Return the end of a step that was stored, if the process ended before its event was.

    Args:
        counting: The events that count, by number.
        control: The registers of the run.
    """
    entered, inside = None, 0
    for event in counting.values():
        kind, path = event["kind"], event["path"]
        if kind == "state_entered" and not path:
            entered, inside = event, 0
        elif kind in ("state_exited", *ENDS) and not path:
            entered = None
        elif kind == "state_exited":
            inside += 1
    if entered is None or control.step <= entered["step"] + inside:
        return None
    if inside and not control.done and control.state == entered["state"]:
        return None  # a step of a net inside, whose event is missing
    at = Position(entered["run_id"], entered["step"], entered["state"])
    return StateExited(None if control.done else control.state, at=at)


def undone(counting: Counting) -> list[tuple[int, int]]:
    """Return the numbers of the events that a repeated step undoes, as ranges.

    These are the events of the interrupted step; of nets inside it and of branches, which continue
    where they were, those of their own interrupted steps.
    """
    complete: dict[tuple[str, ...], int] = {}
    for number, event in counting.items():
        if event["kind"] == "state_exited":
            complete[tuple(event["path"])] = number
        elif event["kind"] in ENDS:
            complete[()] = number
    outer = complete.get((), 0)
    lost = [
        number
        for number, event in counting.items()
        if event["state"] is not None and number > max(outer, complete.get(tuple(event["path"]), 0))
    ]
    return _ranges(lost)


def kept_calls(counting: Counting, pending: Mapping[str, Call], at: Position) -> list[AgentEvent]:
    """Return the events of calls that are not repeated, for a step that is.

    Args:
        counting: The events that count, by number.
        pending: The calls of the step, by ID.
        at: The repeated step.
    """
    shown = {
        event["action"]["id"] for event in counting.values() if event["kind"] == "action_finished"
    }
    events: list[AgentEvent] = []
    for call in pending.values():
        if call.result is not None and call.reported and call.action.id not in shown:
            events.append(ActionStarted(call.action, at=at))
            events.append(ActionFinished(call.action, call.result, at=at))
    return events


def _ranges(numbers: Iterable[int]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found
