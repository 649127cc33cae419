"""The content of OpenAI's messages as ours: text, and images, sounds and files."""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from agent_brain.memories.message import Attachment, empty_file, in_order, is_empty_url
from agent_brain.serving.web.openai.errors import invalid

Part: TypeAlias = Mapping[str, Any]
Content: TypeAlias = str | Sequence[Part] | None

_DATA_URL = re.compile(r"data:(?P<type>[^/\s;,]+/[^/\s;,]+)(?:;[^,]*)?;base64,[A-Za-z0-9+/=_-]+")
_AUDIO_TYPES = {"mp3": "audio/mpeg", "wav": "audio/wav"}
_TEXT_TYPES = ("text", "input_text", "output_text", "refusal", "summary_text", "reasoning_text")


def read_content(content: Content, param: str) -> tuple[str, tuple[Attachment, ...]]:
    """Return the text and the attachments of a message.

    Args:
        content: A text, or a list of parts of Chat Completions or of Responses.
        param: The name of the field, for errors.

    Raises:
        ApiError: A part cannot be read.
    """
    if content is None or isinstance(content, str):
        return content or "", ()
    parts: list[str | Attachment] = []
    for index, part in enumerate(content):
        where = f"{param}[{index}]"
        kind = part.get("type") if isinstance(part, Mapping) else None
        if not isinstance(kind, str):
            raise invalid("A part must be an object with a 'type'", where)
        if kind in _TEXT_TYPES:
            parts.append(_text(part, "refusal" if kind == "refusal" else "text", where))
        elif kind in _READERS:
            parts.append(_READERS[kind](part, where))
        else:
            raise invalid(
                f"Parts of type {kind!r} are not supported: send text, images, audio or files",
                where,
            )
    return in_order(parts)


def _text(part: Part, key: str, where: str) -> str:
    value = part.get(key)
    if not isinstance(value, str):
        raise invalid(f"{key!r} must be a text", where)
    return value


def _image(part: Part, where: str) -> Attachment:
    source = part.get("image_url")
    url = source.get("url") if isinstance(source, Mapping) else source
    if not isinstance(url, str):
        raise invalid("An image needs the https: or data: URL 'image_url'", where)
    return _from_url(url, where, default="image/*")


def _audio(part: Part, where: str) -> Attachment:
    audio = part.get("input_audio")
    audio = audio if isinstance(audio, Mapping) else {}
    media_type, data = _AUDIO_TYPES.get(str(audio.get("format"))), audio.get("data")
    if media_type is None or not isinstance(data, str) or not data:
        raise invalid("'input_audio' needs base64 'data', and 'format' mp3 or wav", where)
    return Attachment(media_type=media_type, data=data)


def _file(part: Part, where: str) -> Attachment:
    source = part.get("file")
    fields = source if isinstance(source, Mapping) else part  # Chat Completions nests them
    url = fields.get("file_data") or fields.get("file_url")
    if not isinstance(url, str):
        raise invalid("A file needs the data: URL 'file_data': this server stores no files", where)
    name = fields.get("filename")
    name = name if isinstance(name, str) and name else None
    guess = mimetypes.guess_type(name or "")[0] or "application/octet-stream"
    return _from_url(url, where, default=guess, name=name)


def _from_url(url: str, where: str, *, default: str, name: str | None = None) -> Attachment:
    if match := _DATA_URL.fullmatch(url):
        return Attachment(media_type=match["type"], url=url, name=name)
    if is_empty_url(url):
        raise invalid(empty_file(name), where)
    if url.startswith("data:"):
        raise invalid("A data: URL must look like data:image/png;base64,…", where)
    if not url.startswith("https://"):
        raise invalid("The URL must begin with https: or data:", where)
    try:
        path = urlsplit(url).path
    except ValueError as error:
        raise invalid(f"The URL is not valid: {error}", where) from None
    guess = mimetypes.guess_type(path)[0]
    fits = guess is not None and (default[:5] != "image" or guess.startswith("image/"))
    return Attachment(media_type=guess if guess and fits else default, url=url, name=name)


_READERS: dict[str, Callable[[Part, str], Attachment]] = {
    "image_url": _image,
    "input_image": _image,
    "input_audio": _audio,
    "file": _file,
    "input_file": _file,
}
