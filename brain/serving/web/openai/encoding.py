"""JSON and server-sent events as bytes. Private."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_brain.tools.text import clean_json, to_compact_json

DONE = b"data: [DONE]\n\n"


def encode(value: Mapping[str, Any]) -> bytes:
    """Return ``value`` as JSON on one line."""
    try:
        return to_compact_json(value).encode()
    except UnicodeEncodeError:  # lone surrogates
        return to_compact_json(clean_json(value)).encode()


def frame(value: Mapping[str, Any], event: str | None = None) -> bytes:
    """Return ``value`` as a server-sent event."""
    name = b"" if event is None else b"event: %b\n" % event.encode()
    return b"%bdata: %b\n\n" % (name, encode(value))
