"""A run as a memory has recorded it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_brain.errors import BrainUseError
from agent_brain.memories.message import Message, Role
from agent_brain.memories.runs.work import EMBEDDING
from agent_brain.memories.trace.recorded_call import RecordedCall
from agent_brain.tools.action import Action

WITHOUT_END = ("cancelled", "timeout", "stopped", "budget", "paused", "sleeping")
"""Why a run stopped that did not come to an end of its net."""


class ReplayError(BrainUseError):
    """Raised when a run cannot be replayed: what it needs was not recorded, or is gone."""


@dataclass(slots=True)
class RecordedRun:
    """A run as a memory has it.

    Attributes:
        run_id: The run.
        calls: Its calls of models and tools, in order, also those of steps that ran again.
        turn: The messages of its turn in the end.
        control: The registers of the run in the end.
        states: The state that begins after each number of moves.
        answers: What a person answered to states, by moves, then by the IDs of the questions.
        sent: Messages that were sent to the run, by moves.
        waits: The parts of the run that ended with a state waiting.
        cached: Responses that a cache of calls gave to states, in order: nothing was recorded.
        traced: Whether it was traced; otherwise the calls tell only the responses.
        knows_states: Whether ``states`` has all of them.
    """

    run_id: str
    calls: list[RecordedCall]
    turn: Sequence[Message]
    control: Mapping[str, Any]
    states: dict[int, str] = field(default_factory=dict)
    answers: dict[int, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    sent: dict[int, list[Message]] = field(default_factory=lambda: defaultdict(list))
    waits: set[str] = field(default_factory=set)
    cached: list[RecordedCall] = field(default_factory=list)
    traced: bool = True
    knows_states: bool = True

    @property
    def goal(self) -> Message | None:
        """The goal of the run; None if it is not in the memory any more."""
        return next((message for message in self.turn if message.role is Role.USER), None)

    @property
    def moves(self) -> int:
        """How many moves it had made in the end."""
        return int(self.control.get("moves", 0))

    @property
    def status(self) -> str:
        """Its status in the end."""
        return str(self.control.get("status", "running"))

    @property
    def stop_reason(self) -> str | None:
        """Why it had ended."""
        reason: str | None = self.control.get("stop_reason")
        return reason

    @property
    def open_calls(self) -> list[Action]:
        """The calls of tools that it waited with in the end, also those of branches."""
        asked = self.control.get("human_requests") or {}
        calls = [*self.control.get("next_actions", ()), *asked.get("calls", ())]
        return [Action.model_validate(call) for call in calls] if self.status == "waiting" else []

    @property
    def was_cut(self) -> bool:
        """Whether something other than the net has ended the run, or nothing has."""
        return self.status == "running" or self.stop_reason in WITHOUT_END

    @property
    def ended(self) -> bool:
        """Whether the net has ended the run."""
        return self.status == "ended" and not self.was_cut


def requests_of(control: Mapping[str, Any]) -> int:
    """Return how many model calls a run has made, without embeddings."""
    spent = control.get("spent", {})
    return int(spent.get("requests", 0)) - int(spent.get("embeddings", 0))


def without_repeated(
    calls: Iterable[RecordedCall], waits: Collection[str] = ()
) -> list[RecordedCall]:
    """Return the calls without those of steps that were interrupted and run again later.

    Args:
        calls: The calls of a run, or of several.
        waits: The parts of the run whose last step is not undone when it runs again.
    """

    def step(call: RecordedCall) -> tuple[object, ...]:
        kind = call.purpose, call.action is None
        return call.run_id, call.branch, call.path, call.move, kind

    known = [call for call in calls if call.purpose != EMBEDDING]
    last = {step(call): call.part for call in known}
    return [call for call in known if call.part == last[step(call)] or call.part in waits]


def calls_tools_natively(calls: Iterable[RecordedCall]) -> bool:
    """Return whether the model of recorded calls calls tools itself, instead of writing JSON."""
    known = [*calls]
    told = "\n".join(m.content for c in known for m in c.messages if m.role is Role.SYSTEM)
    return any(call.tools for call in known) or "Tools, as JSON" not in told
