"""Waiting for the rate limits of models, together.

When a provider tells one call to wait, all calls of that model wait; after that one call goes
first, and with each that is answered one more may be on its way at the same time.
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

    Calls that were on their way together are refused together: that is one refusal, and only a
    refusal of a call that began after it is another one.

    Attributes:
        policy: How long to wait, if the provider does not say.
    """

    def __init__(self, policy: RetryPolicy | None = None) -> None:
        self.policy = policy or RetryPolicy(retries=1_000_000, backoff=BACKOFF, max_wait=LONGEST)
        self._until = 0.0
        self._refused = 0  # in a row
        self._round = 0  # how often calls were refused in all
        self._begun: dict[str, int] = {}  # by call on its way: in which round it began
        self._at_once: int | None = None  # how many calls of this round may be on their way
        self._waiting = 0
        self._changed = Event()

    @property
    def is_open(self) -> bool:
        """Whether calls need not wait."""
        return self._at_once is None

    def begin(self, call: str) -> None:
        """Note that a call is on its way."""
        self._begun[call] = self._round

    def refuse(self, call: str, seconds: float | None) -> None:
        """Let all calls wait.

        Args:
            call: The call that was refused.
            seconds: What the provider asked for, if it did.
        """
        wait = 0.0 if seconds is None else min(seconds, LONGEST)
        if self._begun.pop(call, self._round) == self._round:
            wait = self.policy.wait(self._refused, wait) or 0.0
            self._refused += 1
            self._round += 1
            self._at_once = 1
        self._until = max(self._until, current_time() + wait)
        self._wake()

    def answer(self, call: str) -> None:
        """Note that a call was answered: others may go on."""
        begun = self._begun.pop(call, None)
        if self._at_once is not None and begun == self._round:
            self._refused = 0
            self._at_once = self._at_once + 1 if self._waiting else None
            self._wake()

    def leave(self, call: str) -> None:
        """Note that a call has ended otherwise: another may go in its place."""
        if self._begun.pop(call, None) is not None:
            self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = Event()

    async def wait(self, call: str) -> None:
        """Wait until a call may go, and note that it is on its way."""
        self._waiting += 1
        try:
            while not self._may_go(call):
                left = self._until - current_time()
                await (sleep(left) if left > 0 else self._changed.wait())
        finally:
            self._waiting -= 1
        self.begin(call)

    def _may_go(self, call: str) -> bool:
        if self._at_once is None or self._begun.get(call) == self._round:
            return True
        on_their_way = sum(begun == self._round for begun in self._begun.values())
        return current_time() >= self._until and on_their_way < self._at_once


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
        self._paces: dict[str, set[Pace]] = {}  # by call on its way
        self._attempted: dict[str, bool] = {}  # by call: whether it waits for another attempt

    def before_model_call(self, request: ModelRequest) -> Awaitable[None] | None:
        """Wait until calls of the model may go."""
        pace = self._pace_of(request.model)
        self._paces.setdefault(request.response_id, set()).add(pace)
        if not pace.is_open:
            return self._wait(pace, request.response_id)
        pace.begin(request.response_id)
        return None

    def before_attempt(self, request: ModelRequest) -> Awaitable[None] | None:
        """Wait until calls of the model may go; the wait before a retry has ended."""
        self._end_retry(request)
        self._attempted[request.response_id] = False
        return self.before_model_call(request)

    async def _wait(self, pace: Pace, call: str) -> None:
        self._clock.pause()
        try:
            await pace.wait(call)
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
        for pace in self._paces.pop(request.response_id, ()):
            pace.leave(request.response_id)

    def _note(self, request: ModelRequest, error: Exception) -> bool:
        pace = self._pace_of(request.model)
        refused = isinstance(error, LLMRateLimitError)
        if refused:
            pace.refuse(request.response_id, requested_wait(error.__cause__ or error))
        else:
            pace.leave(request.response_id)
        return refused

    def after_model_call(self, request: ModelRequest, response: ModelResponse) -> None:
        """Let other calls of the model go on."""
        self._attempted.pop(request.response_id, None)
        for pace in self._paces.pop(request.response_id, ()):
            pace.answer(request.response_id)

    def leave(self) -> None:
        """Note that the case has ended."""
        self._clock.stop()
        for call, paces in self._paces.items():
            for pace in paces:
                pace.leave(call)
