"""A run as a test needs it, read from what a session has kept of it. Private."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agent_brain.memories.message import Role
from agent_brain.memories.sessions.timeline import Part
from agent_brain.memories.trace.model_calls import ModelCallRecord
from agent_brain.states.errors import LLMError
from agent_brain.states.models.call_data import error_from_data, piece_from_data
from agent_brain.step_data import calls_of
from agent_brain.testing.export_events import ExportError, Piece, RecordedRun, tidied

CUT_OFF = ("timeout", "cancelled", "stopped", "sleeping", "paused", "waiting", "approval", "input")


def read_kept_run(
    parts: Sequence[Part], calls: Sequence[ModelCallRecord], *, net: str, answer: str
) -> RecordedRun:
    """Read a traced run.

    Args:
        parts: The parts of its session from its begin to its end.
        calls: Its model calls.
        net: The name of its net.
        answer: Its answer; empty if it failed.

    Raises:
        ExportError: It was resumed, cut off or not traced, or branches of it ran concurrently.
    """
    end = _end(parts, answer)
    goal = next((m for m in parts[0].messages if m.role is Role.USER), None)
    if goal is None:
        raise ExportError("What the user said when the run began is not kept")
    _check(parts, calls)
    calls = [call for call in calls if call.purpose is None]  # without those of the memory
    native = _is_native(calls)
    turns = [tidied(_pieces(call), native=native) for call in calls]
    path = [*_states(parts)]
    limits = _limits(parts[-1].control) if end.get("stop_reason") == "max_steps" else {}
    recorded = RecordedRun(
        goal.model_dump(mode="json"),
        net,
        end,
        path,
        metered=True,
        turns=turns,
        native=native,
        limits=limits,
    )
    for call in _finished(parts):
        recorded.calls.setdefault(call["name"], []).append(call["args"])
        reply = str(call["result"]), call["state"] == "failed"
        recorded.replies.setdefault(call["name"], []).append(reply)
    return recorded


def _end(parts: Sequence[Part], answer: str) -> dict[str, Any]:
    last = parts[-1].step if parts else None
    if last is None or last.status != "ended" or last.stop_reason in CUT_OFF:
        reason = "" if last is None or last.stop_reason is None else f": {last.stop_reason}"
        raise ExportError(f"The run did not come to an end of its own{reason}")
    if last.stop_reason == "failed":
        failure = str(parts[-1].control.get("failure") or "Exception")
        return {"kind": "run_failed", "error": {"type": failure.partition(":")[0]}}
    return {"kind": "run_finished", "stop_reason": last.stop_reason, "answer": answer}


def _limits(control: Mapping[str, Any]) -> dict[str, Any]:
    """Return the limit that ends the run at the same step; a fallback has run after that."""
    return {"max_steps": control.get("step", 0) - (1 if control.get("done") else 0)}


def _check(parts: Sequence[Part], calls: Sequence[ModelCallRecord]) -> None:
    """Check that the model calls are those of one run in their order.

    Raises:
        ExportError: They are not.
    """
    if any(call.branch for call in calls):
        raise ExportError("Branches ran concurrently, and the order of their calls is arbitrary")
    if len({call.part for call in calls}) > 1:
        raise ExportError("The run was interrupted and resumed")
    if any(call.cut for call in calls):
        raise ExportError("A model call was cut off")
    if parts[-1].control.get("output") is not None:
        raise ExportError("The run has an output of a type, which the session does not keep")
    spent = parts[-1].control.get("spent") or {}
    if spent.get("requests", 0) and not calls:
        raise ExportError("The run was not traced: its model calls are not kept")


def _is_native(calls: Iterable[ModelCallRecord]) -> bool:
    """Return whether the model calls tools itself, instead of writing JSON."""
    found = [*calls]
    told = "\n".join(m.content for call in found for m in call.messages if m.role is Role.SYSTEM)
    return any(call.tools for call in found) or "Tools, as JSON" not in told


def _pieces(call: ModelCallRecord) -> list[Piece]:
    pieces: list[Piece] = [piece_from_data(piece) for piece in call.response]
    if call.error is not None:
        error = error_from_data(dict(call.error))
        if not isinstance(error, LLMError):
            raise ExportError(f"The model raised a {type(error).__name__}")
        pieces.append(error)
    return pieces


def _states(parts: Iterable[Part]) -> Iterable[str]:
    """Yield the states that the run entered, without those of subnets."""
    moves = -1
    for part in parts:
        start = part.start
        if part.begins_run or _is_over(part) or start.get("done"):
            continue
        if start.get("moves", 0) <= moves:
            continue
        moves = start.get("moves", 0)
        if start.get("state") and not start.get("subnets") and not start.get("ended"):
            yield start["state"]


def _is_over(part: Part) -> bool:
    """Return whether nothing ran in a part: the run was only ended, and its open calls closed."""
    step = part.step
    return step is not None and step.status == "ended" and step.stop_reason != "failed"


def _finished(parts: Iterable[Part]) -> Iterable[dict[str, Any]]:
    """Yield the calls that reached a tool, in the order in which they began."""
    for part in parts:
        for call in () if _is_over(part) else calls_of(part):
            if call["result"] is not None and isinstance(call["args"], dict):
                yield call
