"""A conversation as a client sends it: what was said before, the task, and their content."""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from agent_brain.memories.message import (
    Attachment,
    Message,
    Role,
    empty_file,
    in_order,
    is_empty_url,
)
from agent_brain.serving.web.openai.errors import invalid
from agent_brain.tools.action import Action

Part: TypeAlias = Mapping[str, Any]
Content: TypeAlias = str | Sequence[Part] | None
_DATA_URL = re.compile(r"data:(?P<type>[^/\s;,]+/[^/\s;,]+)(?:;[^,]*)?;base64,[A-Za-z0-9+/=_-]+")
_AUDIO_TYPES = {"mp3": "audio/mpeg", "wav": "audio/wav"}
_TEXT_TYPES = ("text", "input_text", "output_text", "refusal", "summary_text", "reasoning_text")
_INSTRUCTIONS = ("system", "developer")


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


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation.

    Attributes:
        history: What was said before.
        task: The last message, of the user.
    """

    history: list[Message]
    task: Message


def conversation(messages: Sequence[Message], param: str) -> Conversation:
    """Return ``messages`` as a conversation.

    Instructions that follow the last message of the user are put before it.

    Args:
        messages: The messages, in order.
        param: The name of the field, for errors.

    Raises:
        ApiError: The last message is not the user's, or a tool call has no result.
    """
    said = [message for message in messages if message.role is not Role.SYSTEM]
    if not said or said[-1].role is not Role.USER:
        raise invalid("The last message must be the user's: it is the task", param)
    task = said[-1]
    if not task.content.strip() and not task.attachments:
        raise invalid("The last message is empty: it is the task", param)
    history = [message for message in messages if message is not task]
    _check_calls([*history, task], param)
    return Conversation(history, task)


def _check_calls(messages: Iterable[Message], param: str) -> None:
    """Refuse calls without a result and results without a call, as OpenAI does."""
    waiting: set[str] = set()
    for message in messages:
        if message.role is Role.TOOL:
            if message.tool_call_id not in waiting:
                raise invalid(
                    f"The tool message for {message.tool_call_id!r} does not follow a message "
                    "with that call, or answers it twice",
                    param,
                )
            waiting.discard(message.tool_call_id)
        elif waiting:
            raise invalid(
                f"Tool messages must follow for all tool calls: {', '.join(sorted(waiting))}",
                param,
            )
        else:
            waiting = {action.id for action in message.tool_calls}


def read_message(
    role: str,
    content: Content,
    param: str,
    *,
    name: str | None = None,
    calls: Sequence[Action] = (),
    call_id: str | None = None,
) -> Message:
    """Return a message of a client as ours.

    Args:
        role: The role, as the client names it.
        content: The content.
        param: The name of the field, for errors.
        name: Who speaks.
        calls: The tool calls of an assistant message.
        call_id: The call that a tool message answers.

    Raises:
        ApiError: It cannot be read.
    """
    text, attachments = read_content(content, f"{param}.content")
    if role in _INSTRUCTIONS:
        return Message.system(text)
    if role == "user":
        return Message.user(text, name=name, attachments=attachments)
    if role == "assistant":
        return Message.assistant(text, calls, name=name)
    if role == "tool" and call_id:
        return Message(role=Role.TOOL, content=text, name=name, tool_call_id=call_id)
    if role == "tool":
        raise invalid("A tool message needs the 'tool_call_id' of its call", param)
    raise invalid(
        f"Unknown role {role!r}: use system, developer, user, assistant or tool", f"{param}.role"
    )
