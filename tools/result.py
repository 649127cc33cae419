"""What a tool may return besides plain values: text together with pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Media:
    """A picture, or another file, that a tool returned.

    Attributes:
        media_type: MIME type, such as ``"image/png"``.
        data: The bytes, base64-encoded.
        name: A file name, if it has one.
    """

    media_type: str
    data: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """Return it from a tool whose result is more than text.

    Attributes:
        content: What the model reads: text as it is, any other value as JSON.
        media: What it is shown besides, if it can look at pictures.
    """

    content: Any
    media: tuple[Media, ...] = ()
