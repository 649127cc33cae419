"""Translate messages into litellm's form, for any provider."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from agent_brain.memories.message import Attachment, Message, Role

ORIGIN = "origin"
MESSAGE = "message"
CALLS = "calls"
SERVED = "served_calls"
"""Keys in the provider data of a message: the family of models that it is for, fields of the
message, fields of its calls by their ids, and calls that the provider has run itself."""

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")
_NO_NAME = "unnamed_tool"


def origin(model: str, provider: str | None) -> str:
    """Return the family of ``model``, whose members understand each other's provider data.

    It consists of the provider and the model's name without a version: ``"anthropic claude"``.
    """
    name = model.removeprefix(f"{provider}/")
    return f"{provider} {re.split(r'[-:@_0-9]', name, maxsplit=1)[0]}"


def to_wire(
    messages: Sequence[Message], *, family: str, sees: bool = True, max_images: int | None = None
) -> list[dict[str, Any]]:
    """Return the messages of a request.

    Empty texts are left out: some providers reject them, and litellm would replace them by a
    sentence of its own. Tool names that a model made up are cleaned, since providers reject a whole
    request for one. Pictures that are not sent, and answers of pictures alone, leave a note.

    Args:
        messages: The conversation.
        family: The :func:`origin` of the model. Provider data of other families is not sent.
        sees: Whether the model accepts pictures.
        max_images: Number of pictures to send, the newest; None for all.
    """
    left = max_images
    wire: list[dict[str, Any]] = []
    for message in reversed(messages):
        if message.attachments and message.role is not Role.ASSISTANT:
            message, left = _with_pictures(message, left if sees else 0, sees=sees)
        own = message.attachments if message.role is Role.ASSISTANT else ()
        entry = (message.model_copy(update={"attachments": ()}) if own else message).to_dict()
        if message.role is Role.ASSISTANT:
            if own and sees and "gemini" in family:  # the models that draw, and are asked for more
                entry["images"] = [each.to_dict() for each in own if _is_picture(each)]
            _name_calls(entry)
            _add_provider_data(entry, message.metadata.get("provider_data"), family)
            if not message.content.strip():
                if not entry.get("tool_calls") and not own:
                    continue
                entry["content"] = None if entry.get("tool_calls") else _notes(own)
        wire.append(entry)
    return wire[::-1]


def _with_pictures(message: Message, left: int | None, *, sees: bool) -> tuple[Message, int | None]:
    """Return the message with at most ``left`` of its pictures, and the number left after it."""
    kept: list[Attachment] = []
    notes: list[str] = []
    for attachment in reversed(message.attachments):
        if not _is_picture(attachment):
            kept.append(attachment)
        elif left is None or left > 0:
            kept.append(attachment)
            left = None if left is None else left - 1
        else:
            notes.append(_note(attachment, sees=sees))
    if not notes:
        return message, left
    text = "\n".join([*([message.content] if message.content else []), *reversed(notes)])
    return message.model_copy(update={"content": text, "attachments": (*reversed(kept),)}), left


def _is_picture(attachment: Attachment) -> bool:
    return attachment.media_type.startswith("image/")


def _notes(made: Sequence[Attachment]) -> str:
    """Return what stands for pictures and files that a model has made, without words."""
    return " ".join("[picture]" if _is_picture(each) else "[file]" for each in made)


def _note(picture: Attachment, *, sees: bool) -> str:
    url = picture.url if picture.url and not picture.url.startswith("data:") else None
    what = " ".join(filter(None, ("picture", picture.name, url)))
    why = "only the newest pictures are sent" if sees else "this model cannot see pictures"
    return f"[{what}: {why}]"


def _name_calls(entry: dict[str, Any]) -> None:
    for call in entry.get("tool_calls", ()):
        name = _NOT_IN_NAMES.sub("_", call["function"]["name"])[:64]
        call["function"]["name"] = name or _NO_NAME


def _add_provider_data(entry: dict[str, Any], data: object, family: str) -> None:
    if not isinstance(data, Mapping) or data.get(ORIGIN) != family:
        return
    fields, calls = data.get(MESSAGE), data.get(CALLS)
    if isinstance(fields, Mapping):
        entry.update(fields)
    for call in entry.get("tool_calls", ()):
        if isinstance(calls, Mapping) and isinstance(calls.get(call["id"]), Mapping):
            call["provider_specific_fields"] = dict(calls[call["id"]])
    if isinstance(served := data.get(SERVED), list):
        entry["tool_calls"] = [*served, *entry.get("tool_calls", ())]
