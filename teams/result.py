"""The result of a task of a team."""

from __future__ import annotations

from dataclasses import dataclass, field

from agent_brain.memories.message import Message
from agent_brain.states.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamResult:
    """The result of a task of a team.

    Attributes:
        answer: What ``finish_task`` was called with, or else the last message of an agent.
        stop_reason: Why the task ended: one of :class:`StopReason`, or ``"max_rounds"``.
        rounds: Number of rounds.
        steps: Number of steps of all turns.
        usage: Tokens and cost of all model calls.
        messages: The task and what is in the record behind it.
        waiting: The agents that wait for a person.
        task_id: The ID of the task.
    """

    answer: str
    stop_reason: str
    rounds: int
    steps: int
    usage: Usage
    messages: list[Message] = field(repr=False)
    waiting: tuple[str, ...] = ()
    task_id: str = ""
