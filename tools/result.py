"""What a tool may return besides plain values: text together with pictures."""

from __future__ import annotations

import re
from base64 import b64decode
from dataclasses import dataclass
from typing import Any

_MEDIA_TYPE = re.compile(r"[^/\s]+/[^/\s]+")


@dataclass(frozen=True, slots=True)
class Media:
    """A picture, or another file, that a tool returned.

    Attributes:
        media_type: MIME type, such as ``"image/png"``.
        data: The bytes, base64-encoded.
        name: A file name, if it has one.

    Raises:
        ValueError: It has no type, or no bytes, or they are not in base64.
    """

    media_type: str
    data: str
    name: str | None = None

    def __post_init__(self) -> None:
        if not _MEDIA_TYPE.fullmatch(self.media_type) or not self.data:
            raise ValueError("media need a type such as 'image/png', and their bytes in base64")
        try:
            b64decode("".join(self.data.split()), validate=True)
        except ValueError as error:
            raise ValueError(f"the bytes of media must be in base64: {error}") from None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """Return it from a tool whose result is more than text.

    Attributes:
        content: What the model reads: text as it is, any other value as JSON.
        media: What it is shown besides, if it can look at pictures.
    """

    content: Any
    media: tuple[Media, ...] = ()
