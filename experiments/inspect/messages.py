"""Translate messages and tools between this library and Inspect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    Content,
    ContentAudio,
    ContentDocument,
    ContentImage,
    ContentReasoning,
    ContentText,
)
from inspect_ai.tool import ToolCall, ToolCallError, ToolInfo, ToolParams

from agent_brain.memories.message import Attachment, Message, Role
from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool

CONTENT = "inspect"
"""The key of the provider data that has a message as Inspect returned it."""
PROVIDER_DATA = "provider_data"
"""The key of the metadata of a message that has data for its provider, in both libraries."""
_SOUNDS: Mapping[str, Literal["mp3", "wav"]] = {
    "mpeg": "mp3",
    "mp3": "mp3",
    "wav": "wav",
    "x-wav": "wav",
}


def to_inspect(message: Message) -> ChatMessage:
    """Return a message as Inspect's models take it."""
    match message.role:
        case Role.SYSTEM:
            return ChatMessageSystem(id=message.id, content=message.content)
        case Role.USER:
            return ChatMessageUser(id=message.id, content=_content(message))
        case Role.ASSISTANT:
            calls = [*map(to_call, message.tool_calls)] or None
            data: Any = message.metadata.get(PROVIDER_DATA) or {}
            if CONTENT in data:  # as a model returned it, such as with signed reasoning
                returned = ChatMessageAssistant.model_validate(data[CONTENT])
                if returned.text == message.content:
                    return returned.model_copy(update={"id": message.id, "tool_calls": calls})
            return ChatMessageAssistant(id=message.id, content=message.content, tool_calls=calls)
        case Role.TOOL:
            return ChatMessageTool(
                id=message.id,
                content=_content(message),
                tool_call_id=message.tool_call_id,
                function=message.name,
                error=ToolCallError("unknown", message.content) if message.is_error else None,
            )


def _content(message: Message) -> str | list[Content]:
    if not message.attachments:
        return message.content
    parts = message.parts()
    return [ContentText(text=part) if isinstance(part, str) else _attached(part) for part in parts]


def _attached(attachment: Attachment) -> Content:
    source = attachment.url or f"data:{attachment.media_type};base64,{attachment.data}"
    kind, _, subtype = attachment.media_type.partition("/")
    if kind == "image":
        return ContentImage(image=source)
    if kind == "audio" and subtype in _SOUNDS:
        return ContentAudio(audio=source, format=_SOUNDS[subtype])
    name = attachment.name or ""
    return ContentDocument(document=source, filename=name, mime_type=attachment.media_type)


def to_call(action: Action) -> ToolCall:
    """Return a call as Inspect's models take it."""
    if action.unparsed is not None:
        wrong = f"The arguments are not a JSON object: {action.unparsed}"
        return ToolCall(id=action.id, function=action.name, arguments={}, parse_error=wrong)
    return ToolCall(id=action.id, function=action.name, arguments=dict(action.args))


def from_inspect(message: ChatMessage) -> Message:
    """Return one of Inspect's messages as one of this library; thoughts are left out."""
    match message:
        case ChatMessageSystem():
            return Message.system(message.text)
        case ChatMessageUser():
            return Message.user([*_parts(message)])
        case ChatMessageAssistant():
            calls = [*map(to_action, message.tool_calls or ())]
            data = (message.metadata or {}).get(PROVIDER_DATA)
            metadata = {PROVIDER_DATA: data} if data else {}
            return Message.assistant(message.text, calls, metadata=metadata)
        case ChatMessageTool():
            call = Action(name=message.function or "tool", id=message.tool_call_id or "call")
            text = message.error.message if message.error else message.text
            return Message.tool(text, call, is_error=message.error is not None)


def to_action(call: ToolCall) -> Action:
    """Return a call that a model requests."""
    if call.parse_error:
        return Action(name=call.function, id=call.id, unparsed=call.parse_error)
    return Action(name=call.function, args=call.arguments, id=call.id)


def _parts(message: ChatMessage) -> Iterator[str | Attachment]:
    for part in message.content if isinstance(message.content, list) else [message.content]:
        if isinstance(part, str):
            yield part
        elif isinstance(part, ContentText):
            yield part.text
        elif isinstance(part, ContentImage):
            yield _source(part.image, "image/png")
        elif isinstance(part, ContentAudio):
            yield _source(part.audio, f"audio/{part.format}")
        elif isinstance(part, ContentDocument):
            yield _source(part.document, part.mime_type, part.filename)


def _source(source: str, media_type: str, name: str = "") -> Attachment:
    if source.startswith("data:"):
        media_type = source[5:].partition(";")[0] or media_type
    return Attachment(media_type=media_type, url=source, name=name or None)


def thoughts_in(message: ChatMessageAssistant) -> Iterator[str]:
    """Yield what a model has thought, as far as it may be read."""
    for part in message.content if isinstance(message.content, list) else ():
        if isinstance(part, ContentReasoning) and not part.redacted:
            yield part.reasoning


def tool_info(tool: BaseTool) -> ToolInfo:
    """Return what a model is told of a tool."""
    schema = tool.input_schema
    whole = _without_references(schema, schema.get("$defs", {}), ())
    params = ToolParams.model_validate(whole | {"type": "object"})
    return ToolInfo(name=tool.name, description=tool.description, parameters=params)


def _without_references(schema: Any, known: Mapping[str, Any], inside: Sequence[str]) -> Any:
    """Return a schema with what it refers to in place, as Inspect's schemas have no references.

    What refers to itself accepts any value there.
    """
    if isinstance(schema, list):
        return [_without_references(item, known, inside) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    rest = {key: value for key, value in schema.items() if key not in ("$ref", "$defs")}
    if name in known and name not in inside:
        rest = {**known[name], **rest}
        inside = (*inside, name)
    return {key: _without_references(value, known, inside) for key, value in rest.items()}
