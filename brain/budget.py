"""What all parts of one run share: the count of what was spent, and the limits to it."""

from __future__ import annotations

import anyio

from agent_brain.errors import BrainUseError
from agent_brain.limits import Limits, StopReason
from agent_brain.memories.control import Control
from agent_brain.states.usage import Usage
from agent_brain.tools.secrets import get_logger

logger = get_logger(__name__)


class Budget:
    """Counts into the registers of the run's own memory, also for branches on other memories."""

    __slots__ = ("_started", "_warned", "control", "limits")

    control: Control  # of the run's own memory; set when the run starts

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._started = 0.0
        self._warned: set[str] = set()

    def start_clock(self) -> None:
        """Begin to count the time."""
        self._started = anyio.current_time()

    def start(self, control: Control) -> None:
        """Count from what ``control`` says is spent; the clock runs since :meth:`start_clock`."""
        self.control = control
        self._started = (self._started or anyio.current_time()) - control.spent.seconds

    def spend(self, usage: Usage) -> None:
        """Add what a model call used.

        Raises:
            BrainUseError: A strict limit cannot count the call.
        """
        spent = self.control.spent
        spent.requests += usage.requests
        spent.input_tokens += usage.input_tokens
        spent.output_tokens += usage.output_tokens
        if usage.cost is None:
            spent.unpriced += usage.requests
        else:
            spent.cost += usage.cost
        if usage.estimated:
            spent.estimated += usage.requests
        spent.cached_tokens += usage.cached_tokens
        spent.reasoning_tokens += usage.reasoning_tokens
        if usage.cost is None and self.limits.watches_use:
            self._check_counted(usage)

    def _check_counted(self, usage: Usage) -> None:
        for limit, problem in self.limits.not_counted(usage).items():
            if self.limits.strict:
                raise BrainUseError(problem)
            if limit not in self._warned:
                self._warned.add(limit)
                logger.warning(problem)

    def usage(self) -> Usage:
        """What all model calls used together."""
        spent = self.control.spent
        return Usage(
            spent.input_tokens,
            spent.output_tokens,
            None if spent.unpriced else spent.cost,
            spent.requests,
            cached_tokens=spent.cached_tokens,
            reasoning_tokens=spent.reasoning_tokens,
            estimated=spent.estimated > 0,
        )

    def seconds(self) -> float:
        """Wall-clock seconds since the start, times before a resume included."""
        return anyio.current_time() - self._started if self._started else 0.0

    def reached(self, calls: int = 0) -> StopReason | None:
        """The limit that is reached, if any, when so many tool calls are asked for next."""
        timeout = self.limits.timeout
        if timeout is not None and self.seconds() >= timeout:
            return StopReason.TIMEOUT
        return self.limits.reached(self.control, calls)
