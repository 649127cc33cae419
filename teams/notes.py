"""What an agent notes at the beginning of each turn, what it has used, and limits on that."""

from __future__ import annotations

import copy
import math
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

import anyio
from pydantic import BaseModel, Field

from agent_brain.brain import Brain
from agent_brain.common.secrets import get_logger
from agent_brain.errors import LimitCheckError
from agent_brain.limits import Limits, StopReason
from agent_brain.memories.control import Control
from agent_brain.memories.runs.counts import Spent
from agent_brain.memories.sharing.member import MemberMemory
from agent_brain.states.events import Event, UsageReported


class TurnNotes(BaseModel):
    """Kept with the session of an agent, and written when a turn begins.

    Attributes:
        task: The ID of the task; empty if the agent had no turn.
        round: The number of the round, from 1.
        upto: The place in the record up to which the round takes messages.
        steps: Steps of the agent's earlier turns for the task.
        spent: What these turns used.
    """

    task: str = ""
    round: int = 0
    upto: int = 0
    steps: int = 0
    spent: Spent = Field(default_factory=Spent)

    @classmethod
    def read(cls, member: MemberMemory) -> TurnNotes:
        """Return the notes of an agent's last turn."""
        return cls.model_validate(member.notes)

    @classmethod
    def of(cls, member: MemberMemory, task: str) -> TurnNotes:
        """Return the notes of an agent's last turn, if it was for a task; else empty ones."""
        notes = cls.read(member)
        return notes if notes.task == task else cls()


def works_on(member: MemberMemory, task: str) -> bool:
    """Return whether the last turn of an agent was for a task."""
    return TurnNotes.of(member, task).task == task


def note_next_turn(member: MemberMemory, task: str, number: int, upto: int) -> None:
    """Have an agent note a turn when it begins: its round, and what it has used until then."""
    used = used_by([member], task)
    notes = TurnNotes(task=task, round=number, upto=upto, steps=used.step, spent=used.spent)
    member.note_next_turn(**notes.model_dump(mode="json"))


def used_by(members: Iterable[MemberMemory], task: str) -> Control:
    """Return registers with the steps and the spending of all turns of agents for a task."""
    total = Control.fresh()
    for member in members:
        notes = TurnNotes.of(member, task)
        if notes.task == task:
            total.step += notes.steps + member.control.step
            total.spent = total.spent.plus(notes.spent).plus(member.control.spent)
    return total


logger = get_logger(__name__)
_SPENDING = ("usage_reported", "action_finished", "state_exited")  # kinds of events


class TeamLimits:
    """Limits on a task, from now on.

    Args:
        limits: The limits.
        members: The memories of the agents.
        task: The ID of the task.
    """

    def __init__(self, limits: Limits, members: Collection[MemberMemory], task: str) -> None:
        self._limits = limits
        self._members = members
        self._task = task
        self._deadline = anyio.current_time() + (limits.timeout or math.inf)
        self._warned: set[str] = set()

    def reached(self) -> str | None:
        """Return the limit that is reached, if any."""
        if anyio.current_time() >= self._deadline:
            return StopReason.TIMEOUT
        return self._limits.reached(used_by(self._members, self._task))

    def reached_by(self, event: Event) -> str | None:
        """Return the limit that is reached, if the event may have led to it.

        Raises:
            LimitCheckError: A strict limit cannot count a model call.
        """
        if event.kind not in _SPENDING:
            return None
        if isinstance(event, UsageReported) and self._limits.watches_use:
            for limit, problem in self._limits.not_counted(event.usage).items():
                if self._limits.strict:
                    raise LimitCheckError(problem)
                if limit not in self._warned:
                    self._warned.add(limit)
                    logger.warning(problem)
        return self.reached()

    def in_time(self, brain: Brain[Any]) -> Brain[Any]:
        """Return a brain whose runs end when the time is up, if there is a limit on it."""
        if self._deadline == math.inf:
            return brain
        left = max(self._deadline - anyio.current_time(), 0.001)
        own = brain.limits.timeout
        limited = copy.copy(brain)
        limited.limits = replace(brain.limits, timeout=left if own is None else min(left, own))
        return limited
