"""One message of a conversation, as data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Self, cast

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    Field,
    JsonValue,
    PlainSerializer,
    model_validator,
)
from typing_extensions import Unpack

from agent_brain.memories.errors import MemoryUseError
from agent_brain.memories.store.fields import MessageFields
from agent_brain.tools.action import Action
from agent_brain.tools.ids import new_id
from agent_brain.tools.text import clean, clean_json, to_compact_json, to_text


class Role(StrEnum):
    """Who a message is from, in the words of the chat APIs."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class Attachment(BaseModel, frozen=True, extra="forbid"):
    """An image, a sound or a file that belongs to a message: by URL or by its bytes.

    Attributes:
        media_type: MIME type, such as ``"image/png"``.
        url: Where it is (``https:`` or ``data:``); exactly one of ``url`` and ``data`` is given.
        data: The bytes, base64-encoded.
        name: A file name, for people and for models that take files.
    """

    media_type: str = Field(pattern=r"^[^/\s]+/[^/\s]+$")
    url: str | None = Field(default=None, min_length=1)
    data: str | None = Field(default=None, min_length=1)
    name: str | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.url is None) == (self.data is None):
            raise ValueError("give an attachment either url= or data= (base64), and not both")
        return self

    def to_dict(self) -> dict[str, Any]:
        """The content part of an OpenAI-style message."""
        source = self.url or f"data:{self.media_type};base64,{self.data}"
        kind = self.media_type.split("/", 1)[0]
        if kind == "image":
            return {"type": "image_url", "image_url": {"url": source}}
        if kind == "audio" and self.data is not None:
            subtype = self.media_type.split("/", 1)[1]
            audio = {"data": self.data, "format": _AUDIO_FORMATS.get(subtype, subtype)}
            return {"type": "input_audio", "input_audio": audio}
        key = "file_data" if source.startswith("data:") else "file_id"  # a URL, as LiteLLM takes it
        return {"type": "file", "file": {key: source, "filename": self.name or "file"}}


_AUDIO_FORMATS = {"mpeg": "mp3", "x-wav": "wav", "wave": "wav", "vnd.wave": "wav"}  # as APIs say


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("it lies outside the years 1 to 9999 of UTC") from None


def _name_of(value: object) -> object:
    return value.__name__ if isinstance(value, type) else value


def _several(value: object) -> object:
    """One text, call or attachment stands for a collection of it."""
    return (value,) if isinstance(value, str | Action | Attachment) else value


_Text = Annotated[str, BeforeValidator(clean_json)]
_Name = Annotated[str, BeforeValidator(_name_of)]
_Tags = Annotated[frozenset[str], BeforeValidator(_several), PlainSerializer(sorted)]
_Moment = Annotated[AwareDatetime, AfterValidator(_in_utc)]


def _now() -> datetime:
    return datetime.now(UTC)


def _new_message_id() -> str:
    return new_id("msg")


class Message(BaseModel, frozen=True, extra="forbid"):
    """What was said, by whom, when and why. Immutable; equal by content, hashable by id.

    Attributes:
        id: Unique; adding a message whose id a memory already has changes nothing.
        role: See :class:`Role`.
        content: The text; lone surrogates, which JSON cannot carry, become U+FFFD.
        name: Who speaks, such as a participant's name, or the tool that answered.
        tool_calls: Calls that an assistant message asks for.
        tool_call_id: The call that a tool message answers; a tool message needs one.
        is_error: The tool did not do what was asked.
        attachments: Images, sounds, files.
        created_at: When it was said, aware; kept in UTC.
        expires_at: When it stops being remembered; None never.
        cause_by: What brought it about: a state's name, an event; a class gives its name.
        sent_from: Sender, where several agents share a memory; a class gives its name.
        send_to: Receivers, or one; empty is everyone.
        pinned: Never leaves a window or a summary.
        tags: Labels, or one, to find and forget it by.
        metadata: Anything else, as JSON values; a copy of what is given.
    """

    id: str = Field(default_factory=_new_message_id, min_length=1)
    role: Role
    content: _Text = ""
    name: _Text | None = None
    tool_calls: Annotated[tuple[Action, ...], BeforeValidator(_several)] = ()
    tool_call_id: str | None = None
    is_error: bool = False
    attachments: Annotated[tuple[Attachment, ...], BeforeValidator(_several)] = ()
    created_at: _Moment = Field(default_factory=_now)
    expires_at: _Moment | None = None
    cause_by: _Name | None = None
    sent_from: _Name | None = None
    send_to: Annotated[tuple[str, ...], BeforeValidator(_several)] = ()
    pinned: bool = False
    tags: Annotated[frozenset[str], BeforeValidator(_several), PlainSerializer(sorted)] = (
        frozenset()
    )
    metadata: Annotated[dict[str, JsonValue], BeforeValidator(clean_json)] = Field(
        default_factory=dict
    )

    @model_validator(mode="after")
    def _fits_its_role(self) -> Self:
        if self.role is Role.TOOL:
            if not self.tool_call_id:
                raise ValueError(
                    "a tool message needs tool_call_id, the id of the call it answers: use "
                    "Message.tool(result, action)"
                )
        elif self.tool_call_id is not None:
            raise ValueError(f"tool_call_id belongs to tool messages, not to {self.role} messages")
        if self.tool_calls and self.role is not Role.ASSISTANT:
            raise ValueError(f"tool_calls belong to assistant messages, not to {self.role} ones")
        return self

    @classmethod
    def system(cls, content: str, **fields: Unpack[MessageFields]) -> Message:
        """Instructions; ``fields`` are any other fields of a message."""
        return cls(role=Role.SYSTEM, content=content, **cast("dict[str, Any]", fields))

    @classmethod
    def user(cls, content: str, **fields: Unpack[MessageFields]) -> Message:
        """What a person said; ``fields`` are any other fields of a message."""
        return cls(role=Role.USER, content=content, **cast("dict[str, Any]", fields))

    @classmethod
    def assistant(
        cls,
        content: str = "",
        tool_calls: Action | Iterable[Action] = (),
        **fields: Unpack[MessageFields],
    ) -> Message:
        """What a model said, and the calls it asks for."""
        calls = (tool_calls,) if isinstance(tool_calls, Action) else tuple(tool_calls)
        given = cast("dict[str, Any]", fields)
        return cls(role=Role.ASSISTANT, content=content, tool_calls=calls, **given)

    @classmethod
    def tool(cls, result: Any, action: Action, **fields: Unpack[MessageFields]) -> Message:
        """The result of ``action``: text as it is, any other value as JSON."""
        fields.setdefault("name", action.name)
        given = cast("dict[str, Any]", fields)
        return cls(role=Role.TOOL, content=to_text(result), tool_call_id=action.id, **given)

    def to_dict(self) -> dict[str, Any]:
        """The message as OpenAI-style chat APIs take it; fields without a value are left out."""
        wire: dict[str, Any] = {"role": self.role.value, "content": self._wire_content()}
        if self.role is Role.TOOL:
            wire["tool_call_id"] = self.tool_call_id
        elif self.name:
            wire["name"] = _NOT_IN_NAMES.sub("_", self.name)[:64]
        if self.tool_calls:
            wire["tool_calls"] = [_wire_call(call) for call in self.tool_calls]
        return wire

    def _wire_content(self) -> str | list[dict[str, Any]]:
        if not self.attachments:
            return self.content
        text = [{"type": "text", "text": self.content}] if self.content else []
        return text + [attachment.to_dict() for attachment in self.attachments]

    def __add__(self, other: Message | list[Message]) -> list[Message]:
        if isinstance(other, Message):
            return [self, other]
        if isinstance(other, list):
            return [self, *other]
        return NotImplemented

    def __radd__(self, other: list[Message]) -> list[Message]:
        return [*other, self] if isinstance(other, list) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.id)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Message:
        return self


_set = object.__setattr__
_FIELDS = set(Message.model_fields)  # shared by all trusted messages, which are frozen


def trusted(
    role: Role,
    content: str,
    *,
    name: str | None = None,
    tool_calls: tuple[Action, ...] = (),
    tool_call_id: str | None = None,
    is_error: bool = False,
    cause_by: str | None = None,
) -> Message:
    """A message of values that are known to fit, without looking at them again.

    For the hot path of the built-in states, whose values come from this library: validating them
    costs several times as much as all else that happens to a message. What comes from outside goes
    through ``Message(...)`` or its factories.
    """
    values: dict[str, Any] = {
        "id": new_id("msg"),
        "role": role,
        "content": clean(content),
        "name": name,
        "tool_calls": tool_calls,
        "tool_call_id": tool_call_id,
        "is_error": is_error,
        "attachments": (),
        "created_at": _now(),
        "expires_at": None,
        "cause_by": cause_by,
        "sent_from": None,
        "send_to": (),
        "pinned": False,
        "tags": frozenset(),
        "metadata": {},
    }
    message = Message.__new__(Message)
    _set(message, "__dict__", values)
    _set(message, "__pydantic_fields_set__", _FIELDS)
    _set(message, "__pydantic_extra__", None)
    _set(message, "__pydantic_private__", None)
    return message


_NOT_IN_NAMES = re.compile(r"[^\w-]+")  # what chat APIs refuse in the name of a speaker


def _wire_call(action: Action) -> dict[str, Any]:
    function = {"name": action.name, "arguments": to_compact_json(action.args)}
    return {"id": action.id, "type": "function", "function": function}


def as_message(goal: str | Message | Mapping[str, Any]) -> Message:
    """A goal as the user message it is; a message is taken as it is."""
    if isinstance(goal, Message):
        return goal
    if isinstance(goal, str):
        return Message.user(goal)
    if isinstance(goal, Mapping):
        return Message.model_validate(goal)
    raise MemoryUseError(
        f"A goal is a text or a Message, not {type(goal).__name__}: give the last message as the "
        "goal, and record what was said before it with 'await memory.update([…])'"
    )
