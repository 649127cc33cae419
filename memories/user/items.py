"""What a user's memory stores besides facts, and how all of it is stored in messages."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    Field,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

from agent_brain.memories.errors import JournalError
from agent_brain.memories.message import Message
from agent_brain.memories.user.facts import DERIVED, USER, Again, Ended, Fact

FACT, RECORD = "fact", "record"  # keys in the metadata of a message
_IN_MESSAGE = {"id", "text", "said_at"}  # fields of a fact that the message has itself


def _in_one_line(name: str) -> str:
    if not name.isprintable() or not name.strip():
        raise PydanticCustomError("name", "It must be a text in one line")
    return name


class Block(BaseModel, frozen=True, extra="forbid"):
    """A short text about the user that the model edits.

    Attributes:
        name: Its name, such as ``"persona"``.
        text: The text.
        version: How often it was written.
        at: When it was written.
    """

    name: Annotated[str, Field(max_length=64), AfterValidator(_in_one_line)]
    text: Annotated[str, Field(max_length=2_000)]
    version: int
    at: AwareDatetime


class ReadUpTo(BaseModel, frozen=True, extra="forbid"):
    """How far a conversation was read.

    Attributes:
        conversation: Its name.
        after: A cursor of ``find_news()``: what that does not return was read.
        last: The ID of the last message behind the cursor that was read.
        entries: The number of the session's last entry when all of it was read.
        refused: How many facts were refused, by reason.
    """

    conversation: str
    after: int = 0
    last: str | None = None
    entries: int | None = None
    refused: dict[str, int] = {}


class Exported(BaseModel, frozen=True):
    """What is known about a user, as JSON data: see :meth:`UserMemory.export`.

    It has facts or blocks.

    Attributes:
        version: The version of the format.
        facts: The facts.
        blocks: All versions of the blocks.
        again: When facts were said again.
    """

    version: Literal[1]
    facts: list[Fact] = []
    blocks: list[Block] = []
    again: list[Again] = []

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not {"facts", "blocks"} & self.model_fields_set:
            raise PydanticCustomError("nothing", "It has neither facts nor blocks")
        return self


_RECORDS: dict[str, type[BaseModel]] = {
    "block": Block,
    "read": ReadUpTo,
    "ended": Ended,
    "again": Again,
}


def _title(slot: str | None) -> str:
    """Return what stands before a fact, so that it is found by the name of its slot."""
    return "" if slot is None else f"{slot}: "


def as_message(item: BaseModel) -> Message:
    """Return what stores a fact or a record.

    A fact is a user message, which recall finds; a record is a system message, which it does not.
    """
    if isinstance(item, Fact):
        data = item.model_dump(mode="json", exclude={*_IN_MESSAGE, *DERIVED}, exclude_defaults=True)
        return Message.user(
            _title(item.slot) + item.text,
            id=item.id,
            name=None if item.about == USER else item.about,
            created_at=item.said_at,
            metadata={FACT: data},
        )
    kind = next(name for name, known in _RECORDS.items() if type(item) is known)
    return Message.system("", metadata={RECORD: {kind: item.model_dump(mode="json")}})


def as_item(message: Message) -> BaseModel | None:
    """Return the fact or the record that a message stores; None if it stores none.

    Raises:
        JournalError: It is not what was written.
    """
    try:
        if FACT in message.metadata:
            data: Any = message.metadata[FACT]
            text = message.content.removeprefix(_title(data.get("slot")))
            own = {"id": message.id, "text": text, "said_at": message.created_at}
            return Fact.model_validate(data | own)
        if RECORD in message.metadata:
            ((kind, value),) = message.metadata[RECORD].items()  # type: ignore[union-attr]
            return _RECORDS[kind].model_validate(value)
    except (ValidationError, TypeError, ValueError, KeyError) as error:
        raise JournalError(f"Message {message.id} does not store a fact: {error}") from error
    return None
