"""The content of messages: between AG-UI and Agent Brain."""

from __future__ import annotations

from collections.abc import Iterable

from ag_ui.core import (
    AudioPart,
    ContentPart,
    DataSource,
    DocumentPart,
    ImagePart,
    TextPart,
    UrlSource,
    VideoPart,
)

from agent_brain.memories.message import Attachment, Message, empty_file, in_order, is_empty_url

PARTS: dict[str, type[ImagePart | AudioPart | VideoPart]] = {
    "image": ImagePart,
    "audio": AudioPart,
    "video": VideoPart,
}


def content_of(message: Message) -> str | list[ContentPart]:
    """Return the content of a message for AG-UI."""
    if not message.attachments:
        return message.content
    parts = message.parts()
    return [TextPart(text=part) if isinstance(part, str) else _part(part) for part in parts]


def _part(attachment: Attachment) -> ContentPart:
    kind = attachment.media_type.split("/", 1)[0]
    source: UrlSource | DataSource
    if attachment.data is None:
        source = UrlSource(value=attachment.url or "", mime_type=attachment.media_type)
    else:
        source = DataSource(value=attachment.data, mime_type=attachment.media_type)
    part: ContentPart = PARTS.get(kind, DocumentPart)(source=source)
    return part


def read_content(content: str | Iterable[ContentPart]) -> tuple[str, tuple[Attachment, ...]]:
    """Return the text and the attachments of a message of AG-UI.

    Raises:
        ValueError: A part cannot be passed to a model.
    """
    if isinstance(content, str):
        return content, ()
    return in_order(p.text if isinstance(p, TextPart) else _attachment(p) for p in content)


def _attachment(part: ImagePart | AudioPart | VideoPart | DocumentPart) -> Attachment:
    source = part.source
    if isinstance(source, DataSource | UrlSource) and is_empty_url(source.value):
        raise ValueError(empty_file(None))
    if isinstance(source, DataSource):
        return Attachment(media_type=source.mime_type, data=source.value)
    if isinstance(source, UrlSource):
        default = "application/octet-stream" if part.type == "document" else f"{part.type}/*"
        return Attachment(media_type=source.mime_type or default, url=source.value)
    raise ValueError("A file of a provider cannot be read here: send its data or a URL")
