"""Tool results with media."""

from __future__ import annotations

import re
from base64 import b64decode
from dataclasses import dataclass
from typing import Any

_MEDIA_TYPE = re.compile(r"[^/\s]+/[^/\s]+")


@dataclass(frozen=True, slots=True)
class Media:
    """An image or another file returned by a tool.

    Attributes:
        media_type: MIME type, such as ``"image/png"``.
        data: The bytes, base64-encoded.
        name: File name, if any.

    Raises:
        ValueError: The type or the bytes are missing, or the bytes are not base64-encoded.
    """

    media_type: str
    data: str
    name: str | None = None

    def __post_init__(self) -> None:
        if not _MEDIA_TYPE.fullmatch(self.media_type) or not self.data:
            raise ValueError("media need a type such as 'image/png', and base64-encoded bytes")
        try:
            b64decode("".join(self.data.split()), validate=True)
        except ValueError as error:
            raise ValueError(f"the bytes of media must be base64-encoded: {error}") from None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool that returns media besides text.

    Example::

        return ToolResult("The chart", media=(Media("image/png", encoded),))

    Attributes:
        content: What the model reads: text unchanged, any other value as JSON.
        media: Shown to models that accept images.
    """

    content: Any
    media: tuple[Media, ...] = ()
