"""What is stored about a user: facts, blocks and what was read, in one session of a journal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from pydantic import AwareDatetime, BaseModel, ValidationError

from agent_brain.memories.errors import JournalError
from agent_brain.memories.message import Message
from agent_brain.memories.store.events import Added, Change, Removed
from agent_brain.memories.user.facts import DERIVED, USER, Again, Fact, resolve
from agent_brain.memories.vector import VectorMemory

T = TypeVar("T", bound=BaseModel)
FACT, RECORD = "fact", "record"  # keys in the metadata of a message
_IN_MESSAGE = {"id", "text", "said_at"}  # fields of a fact that the message has itself
_NEVER = datetime.max.replace(tzinfo=UTC)


class Block(BaseModel, frozen=True, extra="forbid"):
    """A short text about the user that the model edits.

    Attributes:
        name: Its name, such as ``"persona"``.
        text: The text.
        version: How often it was written.
        at: When it was written.
    """

    name: str
    text: str
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


class Ended(BaseModel, frozen=True, extra="forbid"):
    """Facts that ended, and whose successor was forgotten.

    Attributes:
        ids: Their IDs.
        at: When they ended.
    """

    ids: tuple[str, ...]
    at: AwareDatetime


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


class UserLog(VectorMemory):
    """The session that stores what is known about a user, in a message for each item."""

    _of_user = True

    def __init__(self, **options: Any) -> None:
        super().__init__(recent=1, k=0, **options)
        self._read_at: tuple[int, int] | None = None
        self._items: dict[str, BaseModel | None] = {}  # by the IDs of their messages
        self._facts: dict[str, Fact] = {}
        self._until = _NEVER  # when a fact ends by itself

    async def look(self) -> None:
        """Read what others have written."""
        await self.open()
        if self.store.log.encoded:
            await self.store.log.decoded()
        self._look()

    def _look(self) -> None:
        log = self.store.log
        place = log.last, len(log)
        if place != self._read_at:
            known = self._items
            self._items = {m.id: known[m.id] if m.id in known else as_item(m) for m in log}
            self._read_at, self._facts = place, {}

    async def write(self, plan: Callable[[], Sequence[BaseModel]]) -> None:
        """Add the items that ``plan`` returns in one append.

        How far a conversation was read before is removed with it.

        Args:
            plan: Called when all that is stored has been read, and again if another process writes
                first. What it raises leaves all as it was.
        """
        await self._get_ready()
        await self._write("write()")

        def changes() -> list[Change]:
            self._look()
            made = plan()
            read = {item.conversation for item in made if isinstance(item, ReadUpTo)}
            gone = [
                message_id
                for message_id, item in self._items.items()
                if isinstance(item, ReadUpTo) and item.conversation in read
            ]
            added: list[Change] = [Added([as_message(item) for item in made])] if made else []
            return [*added, *([Removed(gone)] if gone else [])]

        await self.store.change(changes)
        self._look()
        await self._catch_up()

    @property
    def place(self) -> tuple[int, int]:
        """What changes with each write; after :meth:`look`."""
        return self._read_at or (0, 0)

    def item(self, message: Message) -> BaseModel | None:
        """Return what a message stores."""
        return self._items.get(message.id) or as_item(message)

    def all(self, kind: type[T]) -> list[T]:
        """Return all items of a kind, as they were stored; after :meth:`look`."""
        return [item for item in self._items.values() if isinstance(item, kind)]

    def facts(self) -> dict[str, Fact]:
        """Return all facts by ID, with what has become of each; after :meth:`look`."""
        now = self.store.clock()
        if not self._facts or now >= self._until:
            self._facts = resolve(self.all(Fact), now, self._ended(), self.all(Again))
            ends = (end for f in self._facts.values() for end in (f.valid_to, f.expires_at))
            self._until = min((end for end in ends if end and end > now), default=_NEVER)
        return self._facts

    def facts_at(self, moment: datetime) -> list[Fact]:
        """Return the facts that held at a moment, by what is known now; after :meth:`look`."""
        begun = [fact for fact in self.all(Fact) if fact.valid_from <= moment]
        again = [each for each in self.all(Again) if each.at <= moment]
        held = resolve(begun, moment, self._ended(), again)
        known = self.facts()
        current = [known[i] for i, fact in held.items() if fact.status == "current"]
        return [fact for fact in current if fact.status != "claim"]

    def _ended(self) -> dict[str, datetime]:
        return {i: each.at for each in self.all(Ended) for i in each.ids}

    def blocks(self, name: str) -> list[Block]:
        """Return the versions of a block, oldest first; after :meth:`look`."""
        return [block for block in self.all(Block) if block.name == name]

    def read_up_to(self, conversation: str) -> ReadUpTo:
        """Return how far a conversation was read; after :meth:`look`."""
        read = [each for each in self.all(ReadUpTo) if each.conversation == conversation]
        return read[-1] if read else ReadUpTo(conversation=conversation)
