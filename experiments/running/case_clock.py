"""The time of a case, which stands still while its models make it wait."""

from __future__ import annotations

import math
from collections.abc import Awaitable

from anyio import CancelScope, current_time

from agent_brain.hooks.rate_limits import Call, Gate, RateLimits
from agent_brain.states.errors import LLMRateLimitError
from agent_brain.states.hooks import ModelRequest


class CaseClock:
    """The time of a case, which stands still while a call waits for a rate limit.

    Attributes:
        scope: Cancels the case when its time is up.
        waited: Seconds that it stood still.

    Args:
        seconds: The time of the case; None for no limit.
    """

    def __init__(self, seconds: float | None) -> None:
        self._left = math.inf if seconds is None else seconds
        self.scope = CancelScope(deadline=current_time() + self._left)
        self.waited = 0.0
        self._waiting = 0
        self._since = 0.0

    def pause(self) -> None:
        """Stop; calls may be nested, as branches wait at the same time."""
        self._waiting += 1
        if self._waiting == 1:
            self._since = current_time()
            self._left = self.scope.deadline - self._since
            self.scope.deadline = math.inf

    def go_on(self) -> None:
        """Go on, once everything that waits has said so."""
        self._waiting -= 1
        if not self._waiting:
            now = current_time()
            self.waited += now - self._since
            self.scope.deadline = now + self._left

    def stop(self) -> None:
        """Go on, whatever waits: the case has ended."""
        if self._waiting:
            self._waiting = 1
            self.go_on()


class PaceHook(RateLimits):
    """Makes the calls of one case wait for their models.

    Args:
        limits: What all cases wait for.
        clock: The clock of the case.
    """

    def __init__(self, limits: RateLimits, clock: CaseClock) -> None:
        super().__init__()
        self._gates = limits._gates
        self._clock = clock
        self._retrying: set[str] = set()  # calls that wait for another attempt

    async def _wait(
        self, gate: Gate, calls: dict[str, Call] | None, call_id: str, tokens: int
    ) -> None:
        self._clock.pause()
        try:
            await super()._wait(gate, calls, call_id, tokens)
        finally:
            self._clock.go_on()

    def before_attempt(self, request: ModelRequest) -> Awaitable[None] | None:
        """Wait until calls of the model may go; the wait before a retry has ended."""
        self._end_retry(request)
        return super().before_attempt(request)

    def _end_retry(self, request: ModelRequest) -> None:
        if request.response_id in self._retrying:
            self._retrying.remove(request.response_id)
            self._clock.go_on()

    def on_attempt_error(self, request: ModelRequest, error: Exception) -> None:
        """Let all calls of the model wait, if the provider says so."""
        super().on_attempt_error(request, error)
        if isinstance(error, LLMRateLimitError):
            self._retrying.add(request.response_id)
            self._clock.pause()

    def on_model_error(self, request: ModelRequest, error: Exception) -> None:
        """Let all calls of the model wait, if it says so and its attempts have not."""
        self._end_retry(request)
        super().on_model_error(request, error)

    def leave(self) -> None:
        """Note that the case has ended."""
        self._clock.stop()
        for place in [*self._calls]:
            self._end(place)
