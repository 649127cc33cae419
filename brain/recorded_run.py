"""A run as a memory has recorded it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from agent_brain.errors import BrainUseError
from agent_brain.memories.base import Memory
from agent_brain.memories.control import Decision
from agent_brain.memories.message import Message, Role
from agent_brain.memories.trace.model_calls import ModelCallRecord
from agent_brain.tools.result import Media

WITHOUT_END = ("cancelled", "timeout", "stopped", "budget", "paused", "sleeping")
"""Why a run stopped that did not come to an end of its net."""

CallKey: TypeAlias = tuple[str, str, int]


class ReplayError(BrainUseError):
    """Raised when a run cannot be replayed: what it needs was not recorded, or is gone."""


@dataclass(frozen=True, slots=True)
class RecordedResult:
    """What a tool returned.

    Attributes:
        name: The tool.
        args: Its arguments.
        content: The whole text; None if it is not known.
        is_error: Whether the call failed.
        media: Images and files.
    """

    name: str
    args: dict[str, Any]
    content: str | None = None
    is_error: bool = False
    media: tuple[Media, ...] = ()


@dataclass(slots=True)
class RecordedRun:
    """A run as a memory has it.

    Attributes:
        run_id: The run.
        start: A copy in RAM of the memory as it was when the run began.
        calls: Its model calls, if it was traced.
        states: The state that begins after so many moves.
        results: What tools returned, by branch, the ID of the call, and how many calls before it
            had that ID.
        asked: The messages that asked for the calls of a branch and an ID, and their numbers.
        questions: What tools asked a person, by the IDs of the calls.
        decisions: What a person decided, by moves, then by the IDs of the calls, in order.
        decided: The decisions that the results of calls tell, by the IDs of the calls.
        answers: What a person answered, by moves, then by the IDs of the questions.
        sent: Messages that were sent to the run, by moves.
        waits: The parts of the run that ended with waiting for a person.
        moves: How many moves it had made in the end.
        status: Its status in the end.
        stop_reason: Why it had ended.
        turn: The messages of its turn in the end.
        requests: How many model calls it had made.
        traced: Whether it was traced; otherwise ``calls`` tells only the responses.
        knows_states: Whether ``states`` has all of them.
    """

    run_id: str
    start: Memory
    calls: list[ModelCallRecord]
    states: dict[int, str] = field(default_factory=dict)
    results: dict[CallKey, RecordedResult] = field(default_factory=dict)
    asked: dict[tuple[str, str], list[tuple[str, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    questions: dict[str, str] = field(default_factory=dict)
    decisions: dict[int, dict[str, Decision]] = field(default_factory=lambda: defaultdict(dict))
    decided: dict[str, Decision] = field(default_factory=dict)
    answers: dict[int, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    sent: dict[int, list[Message]] = field(default_factory=lambda: defaultdict(list))
    waits: set[str] = field(default_factory=set)
    moves: int = 0
    status: str = "running"
    stop_reason: str | None = None
    turn: Sequence[Message] = ()
    requests: int = 0
    traced: bool = True
    knows_states: bool = True

    @property
    def goal(self) -> Message | None:
        """The goal of the run; None if it is not in the memory any more."""
        return next((message for message in self.turn if message.role is Role.USER), None)

    @property
    def was_cut(self) -> bool:
        """Whether something other than the net has ended the run, or nothing has."""
        return self.status == "running" or self.stop_reason in WITHOUT_END

    @property
    def ended(self) -> bool:
        """Whether the net has ended the run."""
        return self.status == "ended" and not self.was_cut
