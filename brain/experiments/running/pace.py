"""Waiting for the rate limits of models, together. Private.

When a provider tells one call to wait, all calls of that model wait; after that one call goes
first, and the others follow when it was answered.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable

from anyio import CancelScope, Event, current_time, sleep

from agent_brain.states.errors import LLMRateLimitError
from agent_brain.states.hook_requests import ModelRequest, ModelResponse
from agent_brain.states.hooks import Hook
from agent_brain.states.models.litellm.errors import requested_wait
from agent_brain.states.retry import RetryPolicy

BACKOFF = 1.0  # seconds of the first wait at most, beside what the provider asks for
LONGEST = 60.0  # seconds of one wait


class Pace:
    """When the calls of one model may go on.

    Attributes:
        policy: How long to wait, if the provider does not say.
    """

    def __init__(self, policy: RetryPolicy | None = None) -> None:
        self.policy = policy or RetryPolicy(retries=1_000_000, backoff=BACKOFF, max_wait=LONGEST)
        self._until = 0.0
        self._refused = 0  # in a row
        self._first: object | None = None  # whose call goes first after a wait
        self._answered = Event()

    @property
    def is_open(self) -> bool:
        """Whether calls need not wait."""
        return not self._refused

    def refuse(self, seconds: float | None) -> None:
        """Let all calls wait.

        Args:
            seconds: What the provider asked for, if it did.
        """
        asked = None if seconds is None else min(seconds, LONGEST)
        wait = self.policy.wait(self._refused, asked) or 0.0
        self._refused += 1
        self._until = max(self._until, current_time() + wait)
        self._let_first_go(None)

    def answer(self) -> None:
        """Note that a call was answered: the others may go on."""
        if self._refused:
            self._refused = 0
            self._let_first_go(None)

    def leave(self, who: object) -> None:
        """Note that a caller has gone: if its call was the first, another goes first."""
        if self._first is who and who is not None:
            self._let_first_go(None)

    def _let_first_go(self, who: object) -> None:
        self._first = who
        self._answered.set()
        self._answered = Event()

    async def wait(self, who: object) -> None:
        """Wait until a call of ``who`` may go."""
        while self._refused and self._first is not who:
            left = self._until - current_time()
            if left > 0:
                await sleep(left)
            elif self._first is None:
                self._first = who
            else:
                await self._answered.wait()


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


class PaceHook(Hook):
    """Makes the calls of one case wait for their models.

    Args:
        pace_of: Returns the pace of a model.
        clock: The clock of the case.
    """

    def __init__(self, pace_of: Callable[[str], Pace], clock: CaseClock) -> None:
        self._pace_of = pace_of
        self._clock = clock
        self._waited_for: set[Pace] = set()
        self._attempted: dict[str, bool] = {}  # by call: whether it waits for another attempt

    def before_model_call(self, request: ModelRequest) -> Awaitable[None] | None:
        """Wait until calls of the model may go."""
        pace = self._pace_of(request.model)
        return None if pace.is_open else self._wait(pace)

    def before_attempt(self, request: ModelRequest) -> Awaitable[None] | None:
        """Wait until calls of the model may go; the wait before a retry has ended."""
        self._end_retry(request)
        self._attempted[request.response_id] = False
        return self.before_model_call(request)

    async def _wait(self, pace: Pace) -> None:
        self._waited_for.add(pace)
        self._clock.pause()
        try:
            await pace.wait(self)
        finally:
            self._clock.go_on()

    def _end_retry(self, request: ModelRequest) -> None:
        if self._attempted.pop(request.response_id, False):
            self._clock.go_on()

    def on_attempt_error(self, request: ModelRequest, error: Exception) -> None:
        """Let all calls of the model wait, if the provider says so."""
        if self._note(request, error):
            self._attempted[request.response_id] = True
            self._clock.pause()

    def on_model_error(self, request: ModelRequest, error: Exception) -> None:
        """Let all calls of the model wait, if it says so and its attempts have not."""
        known = request.response_id in self._attempted
        self._end_retry(request)
        if not known:
            self._note(request, error)

    def _note(self, request: ModelRequest, error: Exception) -> bool:
        pace = self._pace_of(request.model)
        refused = isinstance(error, LLMRateLimitError)
        if refused:
            pace.refuse(requested_wait(error.__cause__ or error))
        else:
            pace.leave(self)
        return refused

    def after_model_call(self, request: ModelRequest, response: ModelResponse) -> None:
        """Let other calls of the model go on."""
        self._attempted.pop(request.response_id, None)
        self._pace_of(request.model).answer()

    def leave(self) -> None:
        """Note that the case has ended."""
        self._clock.stop()
        for pace in self._waited_for:
            pace.leave(self)
