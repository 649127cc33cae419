"""Limits on the requests of each client. Private."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from agent_brain.serving.web.requests import HttpError

MAX_CLIENTS = 10_000  # whose rates are remembered


class Throttle:
    """A limit on the requests of each client per minute, and on requests at once in all.

    A client may send ``per_minute`` requests at once when it was quiet (a token bucket).

    Args:
        per_minute: Requests of one client per minute; None for no limit.
        at_once: Requests in progress; None for no limit.
        clock: Returns seconds.
    """

    def __init__(
        self,
        per_minute: float | None,
        at_once: int | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._per_minute = per_minute
        self._at_once = at_once
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # left, and when
        self._active = 0

    def enter(self, client: str) -> None:
        """Count a request of ``client``; :meth:`leave` ends it.

        Raises:
            HttpError: Too many requests (429), or the server is full (503).
        """
        if self._at_once is not None and self._active >= self._at_once:
            message = "The server handles as many requests as it may: try again later"
            raise HttpError(503, "overloaded", message, {"retry-after": "1"})
        if self._per_minute is not None:
            self._take(client, self._per_minute)
        self._active += 1

    def leave(self) -> None:
        """Note that a request has ended."""
        self._active -= 1

    def _take(self, client: str, per_minute: float) -> None:
        now = self._clock()
        left, at = self._buckets.get(client, (per_minute, now))
        left = min(per_minute, left + (now - at) * per_minute / 60)
        if left < 1:
            self._buckets[client] = (left, now)
            wait = max(1, round((1 - left) * 60 / per_minute))
            message = f"More than {per_minute:g} requests a minute: wait {wait} seconds"
            raise HttpError(429, "rate_limited", message, {"retry-after": str(wait)})
        self._buckets[client] = (left - 1, now)
        self._buckets.move_to_end(client)
        if len(self._buckets) > MAX_CLIENTS:
            self._buckets.popitem(last=False)
