"""The times that journals take as options."""

from __future__ import annotations

from datetime import timedelta

from agent_brain.memories.errors import MemoryDefinitionError
from agent_brain.memories.store.expiry import as_duration

LONGEST = 1_000_000  # seconds to wait for an answer
_MILLISECOND, _LONGEST = timedelta(milliseconds=1), timedelta(seconds=10**10)


def ttl_milliseconds(ttl: timedelta | float | None) -> int | None:
    """Return how long sessions are kept, in milliseconds; None for ever.

    Raises:
        MemoryDefinitionError: It is not a duration of at least a millisecond.
    """
    duration = as_duration("ttl", ttl)
    if duration is None:
        return None
    if not _MILLISECOND <= duration <= _LONGEST:
        raise MemoryDefinitionError(f"ttl={ttl!r}: give from 0.001 to 10,000,000,000 seconds")
    return duration // _MILLISECOND


def check_timeout(timeout: float) -> None:
    """Check how long to wait for an answer.

    Raises:
        MemoryDefinitionError: It is not a number of seconds from 0.001 to :data:`LONGEST`.
    """
    if type(timeout) not in (int, float) or not 0.001 <= timeout <= LONGEST:
        raise MemoryDefinitionError(
            f"timeout={timeout!r}: give a number of seconds from 0.001 to {LONGEST}"
        )
