"""IDs that a client sends back to answer what a run waits for. Private.

They name the session, so that a client without a session of its own finds the run that waits. The
ID of such a session cannot be guessed.
"""

from __future__ import annotations

from urllib.parse import quote, unquote


def wait_id(session: str, key: str) -> str:
    """Return the ID for the call or the question ``key`` of a session."""
    return f"{quote(session, safe='')}:{key}"


def read_wait_id(text: str) -> tuple[str, str] | None:
    """Return the session and the key in ``text``; None if it is not such an ID."""
    session, colon, key = text.partition(":")
    return (unquote(session), key) if colon and session else None
