"""Waiting for the rate limits of models, together.

When a provider asks one call to wait, all calls of that model wait; after that one call goes
first, and with each that is answered one more may be on its way at the same time.
"""

from __future__ import annotations

from threading import RLock
from time import monotonic

from anyio import Event, sleep
from anyio.lowlevel import EventLoopToken, current_token

from agent_brain.states.retry import RetryPolicy
from agent_brain.tools.limiter import wake

BACKOFF = 1.0  # seconds of the first wait at most, beside what the provider asks for
LONGEST = 60.0  # seconds of one wait


class Pace:
    """When the calls of one model may continue, on all event loops and threads of the process.

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
        self._asleep: list[tuple[EventLoopToken, Event]] = []  # until something changes
        self._lock = RLock()

    @property
    def is_open(self) -> bool:
        """Whether calls need not wait."""
        return self._at_once is None

    def begin(self, call: str) -> None:
        """Note that a call is on its way."""
        with self._lock:
            self._begun[call] = self._round

    def refuse(self, call: str, seconds: float | None) -> None:
        """Let all calls wait.

        Args:
            call: The call that was refused.
            seconds: What the provider asked for, if it did.
        """
        wait = 0.0 if seconds is None else min(seconds, LONGEST)
        with self._lock:
            if self._begun.pop(call, self._round) == self._round:
                wait = self.policy.wait(self._refused, wait) or 0.0
                self._refused += 1
                self._round += 1
                self._at_once = 1
            self._until = max(self._until, monotonic() + wait)
            self._wake()

    def answer(self, call: str) -> None:
        """Note that a call was answered: others may continue."""
        with self._lock:
            begun = self._begun.pop(call, None)
            if self._at_once is not None and begun == self._round:
                self._refused = 0
                self._at_once = self._at_once + 1 if self._waiting else None
                self._wake()

    def leave(self, call: str) -> None:
        """Note that a call has ended otherwise: another may go in its place."""
        with self._lock:
            if self._begun.pop(call, None) is not None:
                self._wake()

    def _wake(self) -> None:
        asleep, self._asleep = self._asleep, []
        for token, changed in asleep:
            wake(token, changed)

    async def wait(self, call: str) -> None:
        """Wait until a call may go, and note that it is on its way."""
        with self._lock:
            self._waiting += 1
        try:
            while (left := self._try(call)) is not None:
                await (left.wait() if isinstance(left, Event) else sleep(left))
        finally:
            with self._lock:
                self._waiting -= 1

    def _try(self, call: str) -> float | Event | None:
        """Note that a call is on its way, or return for how long or for what it must wait."""
        with self._lock:
            if self._at_once is None or self._begun.get(call) == self._round:
                self.begin(call)
                return None
            left = self._until - monotonic()
            if left > 0:
                return left
            on_their_way = sum(begun == self._round for begun in self._begun.values())
            if on_their_way < self._at_once:
                self.begin(call)
                return None
            changed = Event()
            self._asleep.append((current_token(), changed))
            return changed
