"""The limits on all turns of a task together."""

from __future__ import annotations

import copy
import math
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import anyio

from agent_brain.brain import Brain
from agent_brain.common.secrets import get_logger
from agent_brain.errors import LimitCheckError
from agent_brain.limits import Limits, StopReason
from agent_brain.memories.sharing.member import MemberMemory
from agent_brain.states.events import Event, UsageReported
from agent_brain.teams.notes import used_by

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
