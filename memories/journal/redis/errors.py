"""What errors of Redis mean."""

from __future__ import annotations

from agent_brain.common.secrets import scrub
from agent_brain.memories.errors import JournalError

_MEANINGS = {  # by the name of the error's class, or by how its text begins
    "AuthenticationError": "refused the user or the password ({said}): check the journal's URL",
    "NoPermissionError": (
        "does not permit this ({said}): give the user +@read +@write +@scripting +info +time on "
        "the keys that begin with the journal's prefix"
    ),
    "ReadOnlyError": "is a read-only replica: use the URL of the primary. Nothing was written",
    "OutOfMemoryError": (
        "has no memory left for writes ({said}): raise its maxmemory, or remove what is not "
        "needed. Nothing of this call was written, and what was written before is whole"
    ),
    "BusyLoadingError": "is still loading its data ({said}): try again",
    "MovedError": "is a node of a Redis Cluster, which RedisJournal does not support ({said})",
    "MISCONF": "refuses writes, as it cannot save to its disk ({said}). Nothing was written",
    "NOREPLICAS": "refuses writes, as it has too few replicas ({said}). Nothing was written",
    "BUSY ": "is busy with a script that does not end ({said}): try again. Nothing was written",
}
_UNREACHABLE = "cannot be reached ({said}): check that it runs, and the journal's URL"
_BROKEN = (
    "did not answer ({said}). If this was a write, it may have been done: the journal says so when "
    "the session is read again"
)


def explain(place: str, error: Exception, *, sent: bool) -> JournalError:
    """Return the error of a journal for an error of the client.

    Args:
        place: Where the server is.
        error: What the client raised.
        sent: Whether something may have been sent.
    """
    said = scrub(" ".join(str(error).split())) or type(error).__name__
    kinds = {kind.__name__ for kind in type(error).__mro__}
    for mark, meaning in _MEANINGS.items():
        if mark in kinds or said.startswith(mark):
            return JournalError(f"Redis at {place} {meaning.format(said=said)}")
    if "UnicodeEncodeError" in kinds:
        return JournalError(f"A text cannot be encoded: {said}")
    if is_broken(error) or "TimeoutError" in kinds:
        return JournalError(
            f"Redis at {place} {(_BROKEN if sent else _UNREACHABLE).format(said=said)}"
        )
    if "ResponseError" in kinds:
        return JournalError(
            f"Redis at {place} refused a command ({said}): if another program has written to keys "
            "with the journal's prefix, give the journal a prefix of its own. Nothing was written"
        )
    return JournalError(f"Redis at {place} cannot be used: {said}")


def is_broken(error: BaseException | None) -> bool:
    """Return whether the connection broke, rather than that the server has answered something."""
    from redis import exceptions

    return type(error) is exceptions.ConnectionError or isinstance(error, OSError)


def is_forbidden(error: BaseException | None) -> bool:
    """Return whether the server does not have the command, or not for this user."""
    from redis.exceptions import NoPermissionError, ResponseError

    unknown = isinstance(error, ResponseError) and "unknown command" in str(error).lower()
    return unknown or isinstance(error, NoPermissionError)
