"""From what a server answers to what a model reads. Knows the SDK's types by their fields alone."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from agent_brain.tools.result import Media, ToolResult
from agent_brain.tools.text import to_text

_PICTURE = re.compile(r"image/[A-Za-z0-9.+-]+")


def to_result(content: Iterable[Any], structured: Any) -> ToolResult:
    """The text of all parts, in order, and the pictures among them.

    A picture leaves a note in the text, so that a model without eyes knows of it. What is neither
    text nor picture is described. Structured content is used where there is no text: a server is
    asked by the protocol to say the same in both.
    """
    texts: list[str] = []
    media: list[Media] = []
    for part in content:
        text, picture = _read(part)
        texts.append(text)
        if picture is not None:
            media.append(picture)
    if structured is not None and not any(texts):
        texts = [to_text(structured)]
    return ToolResult("\n\n".join(texts), tuple(media))


def _read(part: Any) -> tuple[str, Media | None]:
    match part.type:
        case "text":
            return part.text, None
        case "image" | "audio":
            return _read_data(part.data, part.mime_type, None)
        case "resource_link":
            about = f": {part.description}" if part.description else ""
            return f"[resource {part.uri} ({part.mime_type or 'unknown type'}){about}]", None
        case "resource":
            resource = part.resource
            if hasattr(resource, "text"):
                return f"[resource {resource.uri}]\n{resource.text}", None
            return _read_data(resource.blob, resource.mime_type or "", str(resource.uri))
        case other:
            return f"[a part of type {other!r}, which cannot be shown]", None


def _read_data(data: str, media_type: str, name: str | None) -> tuple[str, Media | None]:
    label = f"{name} ({media_type or 'unknown type'})" if name else media_type or "unknown data"
    if data and _PICTURE.fullmatch(media_type):
        try:
            return f"[attached: {label}]", Media(media_type, data, name)
        except ValueError:
            return f"[{label}, which cannot be read: it is not in base64]", None
    return f"[{label}, about {len(data) * 3 // 4} bytes, which cannot be shown]", None
