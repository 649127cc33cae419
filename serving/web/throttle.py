"""Limits on the requests of each client."""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from agent_brain.serving.web.requests import HttpError

MAX_CLIENTS = 10_000  # whose rates are remembered


@dataclass(eq=False, repr=False)
class Throttle:
    """Limits on the requests of each client per minute and at once, and on those at once in all.

    A client may send ``per_minute`` requests at once when it was quiet (a token bucket).

    Args:
        per_minute: Requests of one client per minute; None for no limit.
        at_once: Requests in progress; None for no limit.
        at_once_each: Requests of one client in progress; None for no limit.
        clock: Returns seconds.
    """

    per_minute: float | None
    at_once: int | None
    at_once_each: int | None = None
    clock: Callable[[], float] = time.monotonic
    # What is left to each, and when that was so.
    _buckets: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)
    _active: Counter[str] = field(default_factory=Counter)  # requests in progress of each client
    _total: int = 0

    def enter(self, client: str) -> None:
        """Count a request of ``client``; :meth:`leave` ends it.

        Raises:
            HttpError: Too many requests (429), or the server is full (503).
        """
        if self.at_once is not None and self._total >= self.at_once:
            message = "The server handles as many requests as it may: try again later"
            raise HttpError(503, "overloaded", message, {"retry-after": "1"})
        if self.at_once_each is not None and self._active[client] >= self.at_once_each:
            message = f"You have {self.at_once_each} requests in progress: end one of them first"
            raise HttpError(429, "rate_limited", message, {"retry-after": "1"})
        if self.per_minute is not None:
            self._take(client, self.per_minute)
        self._active[client] += 1
        self._total += 1

    def leave(self, client: str) -> None:
        """Note that a request of ``client`` has ended."""
        self._total -= 1
        self._active[client] -= 1
        if not self._active[client]:
            del self._active[client]

    def _take(self, client: str, per_minute: float) -> None:
        now = self.clock()
        most = max(1.0, per_minute)
        left, at = self._buckets.get(client, (most, now))
        left = min(most, left + (now - at) * per_minute / 60)
        if left < 1:
            self._buckets[client] = (left, now)
            wait = max(1, round((1 - left) * 60 / per_minute))
            message = f"More than {per_minute:g} requests a minute: wait {wait} seconds"
            raise HttpError(429, "rate_limited", message, {"retry-after": str(wait)})
        self._buckets[client] = (left - 1, now)
        self._buckets.move_to_end(client)
        if len(self._buckets) > MAX_CLIENTS:
            self._buckets.popitem(last=False)
