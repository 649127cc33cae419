"""Retry delays: exponential back-off with full jitter that respects ``Retry-After``.

Full jitter spreads clients that failed together better than any fixed schedule: see "Exponential
Backoff And Jitter", AWS Architecture Blog, 2015.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The number of retries, and the waits before them.

    Attributes:
        retries: Maximum number of retries.
        backoff: Upper bound of the first wait in seconds; it doubles with each retry.
        max_wait: Longest wait in seconds; if a provider asks for more, there is no retry.
    """

    retries: int = 3
    backoff: float = 0.5
    max_wait: float = 60.0

    def wait(
        self, done: int, asked: float | None = None, *, draw: Callable[[], float] = random.random
    ) -> float | None:
        """Return the seconds to wait before the next retry; None for no retry.

        Args:
            done: Number of retries so far.
            asked: The shortest wait that the provider asks for, in seconds.
            draw: Returns numbers from 0 to 1.
        """
        least = asked or 0.0
        if done >= self.retries or least > self.max_wait:
            return None
        bound = math.ldexp(self.backoff, min(done, 64))
        return min(least + draw() * min(bound, self.max_wait), self.max_wait)


def retry_after(headers: Mapping[str, str], *, now: datetime | None = None) -> float | None:
    """Return the seconds that the headers of a response ask to wait; None if they do not say.

    Understands ``Retry-After`` in seconds and as an HTTP date, and the ``retry-after-ms`` of
    OpenAI and Azure, which is more exact; for a date in the past it returns 0.

    Args:
        headers: By name, in any case.
        now: What an HTTP date is compared with, aware; the clock's time by default.
    """
    found = {name.lower(): value.strip() for name, value in headers.items()}
    milliseconds = _number(found.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    value = found.get("retry-after", "")
    seconds = _number(value)
    if seconds is not None:
        return seconds
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    if moment.tzinfo is None:  # "-0000": UTC whose local zone is not known
        moment = moment.replace(tzinfo=UTC)
    return max((moment - (now or datetime.now(UTC))).total_seconds(), 0.0)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return max(number, 0.0) if math.isfinite(number) else None
