"""The text of messages and results, which does not compress. Needs the standard library alone."""

from __future__ import annotations

from base64 import b64encode
from random import Random

TEXT = b64encode(Random(0).randbytes(3_000_000)).decode()


def text(number: int, characters: int) -> str:
    """Return a text that differs from that of other numbers."""
    start = number * characters % (len(TEXT) - characters)
    return TEXT[start : start + characters]
