"""Messages: the entries of a conversation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from operator import itemgetter
from typing import Annotated, Any, Self, TypedDict, TypeVar, cast

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
from pydantic_core import PydanticCustomError
from typing_extensions import Unpack

from agent_brain.common.ids import ids_of
from agent_brain.common.models import set_dict, set_extra, set_names, set_private, template
from agent_brain.common.text import clean, clean_json, to_compact_json, to_text
from agent_brain.common.values import PLAIN
from agent_brain.memories.errors import MemoryUseError
from agent_brain.memories.schemas import DATA, from_data, to_data
from agent_brain.tools.action import Action

ModelT = TypeVar("ModelT", bound=BaseModel)
PARTIAL = "partial"
"""The key in the metadata of a partial answer; see :func:`is_partial`."""

CUT_OFF = "[This answer was cut off]"
"""What a model reads behind an answer that is not whole; see :func:`is_cut_off`."""

CUT_REASONS: Mapping[str, str] = {
    "length": "at the limit of output tokens",
    "content_filter": "by the provider's content filter",
}
"""Where a model response was cut off, by its finish reason; others were not."""


class Role(StrEnum):
    """The author of a message, as chat APIs name it."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class Attachment(BaseModel, frozen=True, extra="forbid", defer_build=True):
    """An image, a sound or a file in a message, given by its URL or its bytes.

    Attributes:
        media_type: MIME type, such as ``"image/png"``.
        url: An ``https:`` or ``data:`` URL. Give exactly one of ``url`` and ``data``.
        data: The bytes, base64-encoded.
        name: File name, shown to people and to models that take files.
        at: How many characters of the message's text stand before it; None puts it behind the text.
    """

    media_type: str = Field(pattern=r"^[^/\s]+/[^/\s]+$")
    url: str | None = None
    data: str | None = None
    name: str | None = None
    at: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.url is None) == (self.data is None):
            raise ValueError("give an attachment either url= or data= (base64), not both")
        if not (self.url or self.data):
            raise PydanticCustomError(PLAIN, "{problem}", {"problem": empty_file(self.name)})
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return the content part of an OpenAI-style message."""
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


class MessageFields(TypedDict, total=False):
    """Fields that every message may have; documented in :class:`Message`."""

    id: str
    name: str | None
    is_error: bool
    attachments: Attachment | Iterable[Attachment]
    created_at: datetime
    occurred_at: datetime | None
    expires_at: datetime | None
    cause_by: str | type | None
    sent_from: str | type | None
    send_to: str | Iterable[str]
    pinned: bool
    tags: str | Iterable[str]
    metadata: Mapping[str, Any]


def is_empty_url(url: str | None) -> bool:
    """Return whether there is nothing in a URL, or behind the comma of a ``data:`` URL."""
    return not url or (url.startswith("data:") and url.endswith(","))


def empty_file(name: str | None) -> str:
    """Return what to say of a file without bytes."""
    return f"The file {name!r} is empty" if name else "An attached file is empty"


# The names that APIs use.
_AUDIO_FORMATS = {"mpeg": "mp3", "x-wav": "wav", "wave": "wav", "vnd.wave": "wav"}


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("it is outside the years 1 to 9999 in UTC") from None


def _name_of(value: object) -> object:
    return value.__name__ if isinstance(value, type) else value


def _several(value: Any) -> Any:
    """Accept a single text, call or attachment where several are expected."""
    return (value,) if isinstance(value, str | Action | Attachment) else value


_Text = Annotated[str, BeforeValidator(clean_json)]
_Name = Annotated[str, BeforeValidator(_name_of)]
_Tags = Annotated[frozenset[str], BeforeValidator(_several), PlainSerializer(sorted)]
_Moment = Annotated[AwareDatetime, AfterValidator(_in_utc)]


_now = partial(datetime.now, UTC)
_new_message_id = ids_of("msg")


class Message(BaseModel, frozen=True, extra="forbid", defer_build=True):
    """A message of a conversation. Immutable, compared by content, hashable by ID.

    Example::

        question = Message.user("What is 17 times 23?", name="Ann")
        call = Action(name="multiply", args={"a": 17, "b": 23})
        messages = question + [Message.assistant(tool_calls=call), Message.tool(391, call)]

    Attributes:
        id: Unique ID. Adding a message with an ID that a memory already has changes nothing.
        role: The author (see :class:`Role`).
        content: The text. Lone surrogates, which JSON cannot represent, become U+FFFD.
        name: Name of the speaker, or of the tool that returned the result.
        tool_calls: Tool calls that an assistant message requests.
        tool_call_id: ID of the call that a tool message answers; tool messages need one.
        is_error: Whether the tool call failed.
        attachments: Images, sounds and files.
        created_at: Creation time, timezone-aware; stored in UTC.
        occurred_at: When what it describes happened, where that is another time; shown where the
            message is recalled, and what ``since`` and ``until`` go by.
        expires_at: When memories forget the message; None for never.
        cause_by: What caused it, such as the name of a state. A class is replaced by its name.
        sent_from: The sender, when several agents share a memory. A class is replaced by its name.
        send_to: The receivers; empty for everyone.
        pinned: Whether windows and summaries always keep it.
        tags: Labels to select messages by.
        metadata: Any other data, as JSON values. The dict is copied.
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
    occurred_at: _Moment | None = None
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
                    "a tool message needs tool_call_id, the ID of the call it answers: use "
                    "Message.tool(result, action)"
                )
        elif self.tool_call_id is not None:
            raise ValueError(f"tool_call_id belongs to tool messages, not to {self.role} messages")
        if self.tool_calls and self.role is not Role.ASSISTANT:
            raise ValueError(f"tool_calls belong to assistant messages, not to {self.role} ones")
        return self

    @classmethod
    def system(cls, content: str, **fields: Unpack[MessageFields]) -> Message:
        """Return a system message; ``fields`` are any other fields of a message."""
        if not fields and type(content) is str:
            return trusted(Role.SYSTEM, content)
        return cls(role=Role.SYSTEM, content=content, **cast("dict[str, Any]", fields))

    @classmethod
    def user(
        cls, content: str | Sequence[str | Attachment], **fields: Unpack[MessageFields]
    ) -> Message:
        """Return a user message.

        Args:
            content: The text, or texts and attachments in order, each text in a line of its own.
            **fields: Any other fields of a message.
        """
        if not fields and type(content) is str:
            return trusted(Role.USER, content)
        if isinstance(content, list | tuple):
            content, placed = in_order(content)
            fields["attachments"] = (*placed, *_several(fields.get("attachments", ())))
        given = cast("dict[str, Any]", {**fields, "content": content})
        return cls(role=Role.USER, **given)

    @classmethod
    def assistant(
        cls,
        content: str = "",
        tool_calls: Action | Iterable[Action] = (),
        **fields: Unpack[MessageFields],
    ) -> Message:
        """Return an assistant message with the tool calls that it requests."""
        calls = (tool_calls,) if isinstance(tool_calls, Action) else tuple(tool_calls)
        if not fields and type(content) is str and all(type(call) is Action for call in calls):
            return trusted(Role.ASSISTANT, content, tool_calls=calls)
        given = cast("dict[str, Any]", fields)
        return cls(role=Role.ASSISTANT, content=content, tool_calls=calls, **given)

    @classmethod
    def tool(cls, result: Any, action: Action, **fields: Unpack[MessageFields]) -> Message:
        """Return the result of ``action``: text unchanged, any other value as JSON."""
        if not fields:
            text = to_text(result)
            return trusted(Role.TOOL, text, name=action.name, tool_call_id=action.id)
        fields.setdefault("name", action.name)
        given = cast("dict[str, Any]", fields)
        return cls(role=Role.TOOL, content=to_text(result), tool_call_id=action.id, **given)

    def to_dict(self) -> dict[str, Any]:
        """Return the message in the format of OpenAI-style chat APIs, without empty fields."""
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
        return [
            {"type": "text", "text": part} if isinstance(part, str) else part.to_dict()
            for part in self.parts()
        ]

    def parts(self) -> list[str | Attachment]:
        """Return the text and the attachments in order; the text in pieces, without empty ones."""
        end, start = len(self.content), 0
        places: list[tuple[int, str | Attachment]] = [
            (end if each.at is None else min(each.at, end), each) for each in self.attachments
        ]
        pieces: list[str | Attachment] = []
        for at, piece in sorted([*places, (end, "")], key=itemgetter(0)):
            pieces += [self.content[start:at].removeprefix("\n" if start else ""), piece]
            start = at
        return [piece for piece in pieces if piece]

    def with_data(self, value: BaseModel) -> Self:
        """Return a copy with an object as structured content.

        If there is no text, its JSON becomes the text.

        Raises:
            MemoryUseError: Its class was not registered with :func:`register_schema`.
        """
        metadata = {**self.metadata, DATA: to_data(value)}
        content = self.content or value.model_dump_json()
        return self.model_copy(update={"metadata": metadata, "content": content})

    def data(self, schema: type[ModelT]) -> ModelT | None:
        """Return the structured content if it is an object of ``schema``; None if there is none.

        Args:
            schema: Its class, or ``BaseModel`` for any.

        Raises:
            MemoryUseError: Its class was not registered, or has changed so that it does not fit.
        """
        found = from_data(self.metadata.get(DATA))
        return found if isinstance(found, schema) else None

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


def in_order(parts: Iterable[str | Attachment]) -> tuple[str, tuple[Attachment, ...]]:
    """Return texts and attachments as one text, in lines, and the attachments with their places.

    Raises:
        MemoryUseError: One of ``parts`` is neither.
    """
    texts: list[str] = []
    found: list[tuple[int, Attachment]] = []
    for part in parts:
        if isinstance(part, Attachment):
            found.append((len("\n".join(texts)), part))
        elif isinstance(part, str):
            texts.append(part)
        else:
            raise MemoryUseError(f"A message has texts and attachments, not {part!r:.100}")
    text = "\n".join(texts)
    places = ((at if at < len(text) else None, part) for at, part in found)
    return text, tuple(part.model_copy(update={"at": at}) for at, part in places)


def is_partial(message: Message) -> bool:
    """Return whether ``message`` is the beginning of an answer whose run was cut short.

    A run that ends within a step, as it is cancelled, fails or reaches a limit, records the text
    that its reader has seen in that step. If the run is resumed, the whole answer replaces it.
    """
    return message.metadata.get(PARTIAL) is True


def is_cut_off(message: Message) -> bool:
    """Return whether the text of ``message`` is not whole.

    It is a partial answer, or its model has reached the limit of output tokens, or the provider's
    filter has ended it.
    """
    if is_partial(message):
        return True
    return message.metadata.get("finish_reason") in CUT_REASONS and not message.tool_calls


def text_for_model(message: Message) -> str:
    """Return the text of ``message`` as a model is shown it: if it was cut off, it says so."""
    return f"{message.content}\n\n{CUT_OFF}" if is_cut_off(message) else message.content


_NAMES = {*Message.model_fields}  # of every message: with every name in it, nothing is added
_template = template(Message, {name: field.default for name, field in Message.model_fields.items()})


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
    """Return a message without validating its fields; only ``content`` is cleaned.

    For values made by this library, on the hot path. All others go through ``Message(...)`` or its
    factories.
    """
    values = _template.copy()
    values["id"] = _new_message_id()
    values["role"] = role
    values["content"] = content if content.isascii() else clean(content)
    values["name"] = name
    values["tool_calls"] = tool_calls
    values["tool_call_id"] = tool_call_id
    values["is_error"] = is_error
    values["created_at"] = _now()
    values["cause_by"] = cause_by
    values["metadata"] = {}
    message = Message.__new__(Message)
    set_dict(message, values)
    set_names(message, _NAMES)
    set_extra(message, None)
    set_private(message, None)
    return message


_NOT_IN_NAMES = re.compile(r"[^\w-]+")  # characters that chat APIs refuse in names


def _wire_call(action: Action) -> dict[str, Any]:
    function = {"name": action.name, "arguments": to_compact_json(action.args)}
    return {"id": action.id, "type": "function", "function": function}


def as_message(goal: str | Message | Mapping[str, Any]) -> Message:
    """Return a goal as a message; text becomes a user message."""
    if isinstance(goal, Message):
        return goal
    if isinstance(goal, str):
        return Message.user(goal)
    if isinstance(goal, Mapping):
        return Message.model_validate(goal)
    raise MemoryUseError(
        f"A goal is a text or a Message, not {type(goal).__name__}: pass the last message as the "
        "goal, and add the earlier ones with 'await memory.update([…])'"
    )


def checked_messages(messages: Iterable[Message]) -> Sequence[Message]:
    """Return ``messages`` as a sequence of messages.

    Raises:
        MemoryUseError: They are something else.
    """
    if type(messages) is not list:
        if isinstance(messages, Message | str | bytes | dict) or not isinstance(messages, Iterable):
            raise MemoryUseError(
                f"update() takes a list of messages, not {type(messages).__name__}: "
                "await memory.update([message])"
            )
        messages = list(messages)
    for message in messages:
        if not isinstance(message, Message):
            raise MemoryUseError(
                f"update() takes a list of messages, and {message!r:.100} is not one: create one "
                "with Message.user(…), Message.assistant(…), Message.tool(…) or Message(**fields)"
            )
    return messages
