"""JSON and server-sent events as bytes."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from agent_brain.common.text import clean_json, to_compact_json


def encode(value: Mapping[str, Any]) -> bytes:
    """Return ``value`` as JSON on one line, however lines are split."""
    with suppress(PydanticSerializationError):  # lone surrogates, which UTF-8 does not have
        data = to_json(value)
        if data.isascii():
            return data
    return to_compact_json(clean_json(value)).encode()


def frame(value: Mapping[str, Any], event: str | None = None) -> bytes:
    """Return ``value`` as a server-sent event."""
    if event is None:
        return b"data: %b\n\n" % encode(value)
    return b"event: %b\ndata: %b\n\n" % (event.encode(), encode(value))
