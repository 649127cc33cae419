"""IDs that a client sends back to answer what a run waits for.

They name the session, so that the run is found although the client names another session, or none:
the ID of a session that has no user cannot be guessed.
"""

from __future__ import annotations

from urllib.parse import quote, unquote

PREFIX = "wait:"


def wait_id(session: str, key: str) -> str:
    """Return the ID for the call or the question ``key`` of a session."""
    return f"{PREFIX}{quote(session, safe='')}:{key}"


def read_wait_id(text: str) -> tuple[str, str] | None:
    """Return the session and the key in ``text``; None if it is not such an ID."""
    if not text.startswith(PREFIX):
        return None
    session, colon, key = text.removeprefix(PREFIX).partition(":")
    return (unquote(session), key) if colon and session else None


def call_key(text: str) -> str:
    """Return the ID that a call has in the run, from the one that the client knows."""
    found = read_wait_id(text)
    return text if found is None or not found[1] else found[1]
