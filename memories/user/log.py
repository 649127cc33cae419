"""What is stored about a user: facts, blocks and what was read, in one session of a journal."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, cast

from pydantic import AwareDatetime, BaseModel, ValidationError

from agent_brain.memories.errors import JournalError, MemoryUseError
from agent_brain.memories.message import Message
from agent_brain.memories.recall.results import Recalled
from agent_brain.memories.recall.tenant import Scope
from agent_brain.memories.runs.work import EMBEDDING
from agent_brain.memories.store.events import Added, Change, Removed
from agent_brain.memories.store.filters import Query, checked_text
from agent_brain.memories.store.removal import scrub
from agent_brain.memories.user.facts import DERIVED, USER, Again, Ended, Fact, resolve
from agent_brain.memories.user.known import Known
from agent_brain.memories.vector import VectorMemory
from agent_brain.memories.views.base import View

FACT, RECORD = "fact", "record"  # keys in the metadata of a message
BLOCK_LETTERS, NAME_LETTERS = 2_000, 64  # of a block, at most
MOST_BLOCKS = 20
_IN_MESSAGE = {"id", "text", "said_at"}  # fields of a fact that the message has itself


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


class Items(View):
    """What the messages of a log store, and what comes and goes until it is taken up.

    Attributes:
        known: What is stored; after :meth:`look`.
    """

    tail = 0

    def __init__(self) -> None:
        self.known = Known()
        self.reset()

    def fresh(self) -> Items:
        """As :meth:`View.fresh`."""
        return Items()

    def reset(self) -> None:
        """As :meth:`View.reset`."""
        self._unread = True  # the log may have any number of other messages than these:
        self._changes: list[tuple[Message, bool]] = []  # whether they are there, in order

    def add(self, messages: Sequence[Message]) -> None:
        """As :meth:`View.add`."""
        self._changes += ((message, True) for message in messages)

    def remove(self, messages: Sequence[Message]) -> None:
        """As :meth:`View.remove`."""
        self._changes += ((message, False) for message in messages)

    def look(self) -> None:
        """Take up what has changed."""
        changes: Iterable[tuple[Message, bool]] = self._changes
        if self._unread:
            self.known = Known(self.known.version + 1)
            changes = ((message, True) for message in self.log)
        for message, there in changes:
            if not there:
                self.known.remove(message.id)
            elif (item := as_item(message)) is not None:
                self.known.add(message.id, item)
        self._unread, self._changes = False, []


def _added(items: Sequence[BaseModel]) -> list[Change]:
    return [Added([as_message(item) for item in items])] if items else []


class UserLog(VectorMemory):
    """The session that stores what is known about a user, in a message for each item."""

    _of_user = True

    def __init__(self, **options: Any) -> None:
        super().__init__(recent=1, k=0, **options)

    def _new_views(self, recent: int, max_tokens: int | None) -> list[View]:
        return [*super()._new_views(recent, max_tokens), Items()]

    @property
    def _items(self) -> Items:
        return cast("Items", self.store.views[-1])

    @property
    def known(self) -> Known:
        """What is stored; after :meth:`look`."""
        return self._items.known

    async def look(self) -> None:
        """Read what others have written."""
        await self.open()
        if self.store.log.encoded:
            await self.store.log.decoded()
        self._items.look()

    async def write(self, plan: Callable[[], Sequence[BaseModel]]) -> Sequence[BaseModel]:
        """Add the items that ``plan`` returns in one append; return these.

        How far a conversation was read before is removed with it.

        Args:
            plan: Called when all that is stored has been read, and again if another process writes
                first. What it raises leaves all as it was.
        """
        made: Sequence[BaseModel] = ()

        def changes() -> list[Change]:
            nonlocal made
            made = plan()
            read = {item.conversation for item in made if isinstance(item, ReadUpTo)}
            gone = [i for i, item in self.known.items(ReadUpTo) if item.conversation in read]
            return [*_added(made), *([Removed(gone)] if gone else [])]

        await self._change(changes)
        return made

    async def exchange(self, plan: Callable[[], tuple[Sequence[str], Sequence[BaseModel]]]) -> None:
        """Put items in the place of others in one append, and forget those.

        Args:
            plan: Returns the IDs of the messages that store those, and the items; called as by
                :meth:`write`.
        """
        gone: Sequence[str] = ()

        def changes() -> list[Change]:
            nonlocal gone
            gone, made = plan()
            return [Removed(gone, forgotten=True), *_added(made)] if gone else []

        await self._change(changes)
        if gone:
            await scrub(self)

    async def _change(self, plan: Callable[[], list[Change]]) -> None:
        """Write what ``plan`` returns when all that is stored has been read."""

        def changes() -> list[Change]:
            self._items.look()
            return plan()

        await self._get_ready()
        await self._write("write()")
        await self.store.change(changes)
        self._items.look()
        await self._catch_up()

    async def find(
        self,
        query: str,
        k: int,
        where: Callable[[Message], bool],
        *,
        scope: Scope = "session",
        but: Collection[str] = (),
    ) -> list[Recalled]:
        """As :meth:`recall`, of what :meth:`look` has seen: without looking at the journal again.

        Args:
            query: A question, or any text.
            k: The most messages to return.
            where: Only messages that this function accepts.
            scope: ``"tenant"`` for the messages of all sessions.
            but: IDs of messages: not of the sessions that have one of them.
        """
        with self.work_for(EMBEDDING):
            sessions = await self._together(tool_results=False) if scope == "tenant" else None
            if sessions is not None and not sessions.parts:
                return []
            if sessions is None or not (left_out := sessions.holding(but)):
                return await self._recall(query, k, Query(where=where), sessions=sessions)

            def apart(item_id: str) -> bool:
                found = None if item_id.partition(":")[0] in left_out else sessions.find(item_id)[1]
                return found is not None and where(found)

            return await self._recall(query, k, where=apart, sessions=sessions)

    def facts(self) -> dict[str, Fact]:
        """Return all facts by ID, with what has become of each; after :meth:`look`."""
        return self.known.facts(self.store.clock())

    def facts_at(self, moment: datetime) -> list[Fact]:
        """Return the facts that held at a moment, by what is known now; after :meth:`look`."""
        ended = {i: each.at for each in self.known.all(Ended) for i in each.ids}
        begun = [fact for fact in self.known.all(Fact) if fact.valid_from <= moment]
        again = [each for each in self.known.all(Again) if each.at <= moment]
        held = resolve(begun, moment, ended, again)
        known = self.facts()
        current = [known[i] for i, fact in held.items() if fact.status == "current"]
        return [fact for fact in current if fact.status != "claim"]

    def newest_blocks(self) -> list[Block]:
        """Return the current version of each block that is not empty, by name; after a look."""
        newest = {block.name: block for block in self.known.all(Block)}
        return [newest[name] for name in sorted(newest) if newest[name].text]

    def blocks(self, name: str) -> list[Block]:
        """Return the versions of a block, oldest first; after :meth:`look`."""
        return [block for block in self.known.all(Block) if block.name == name]

    async def write_block(self, name: str, text: str, expect: int | None, now: datetime) -> Block:
        """Write a version of a block; see :meth:`UserMemory.edit_block`."""
        checked_text("a block's text", text)
        named = isinstance(name, str) and name.isprintable()
        if not named or not 0 < len(name.strip()) <= NAME_LETTERS:
            raise MemoryUseError(
                f"A block's name has 1 to {NAME_LETTERS} characters in one line, not {name!r}"
            )
        if len(text) > BLOCK_LETTERS:
            raise MemoryUseError(
                f"Block {name!r} would have {len(text):,} characters, and at most "
                f"{BLOCK_LETTERS:,} are allowed: shorten it. Nothing was written"
            )

        def plan() -> list[Block]:
            versions = self.blocks(name)
            at = versions[-1].version if versions else 0
            if expect is not None and expect != at:
                now_there = f"version {at}: {versions[-1].text!r}" if versions else "not there"
                raise MemoryUseError(
                    f"Block {name!r} is {now_there}, and version {expect} was to be replaced. "
                    "Nothing was written: read it again"
                )
            if not versions and len({each.name for each in self.known.all(Block)}) >= MOST_BLOCKS:
                raise MemoryUseError(f"There are {MOST_BLOCKS} blocks already, the most allowed")
            return [Block(name=name, text=text, version=at + 1, at=now)]

        (written,) = await self.write(plan)
        return cast("Block", written)

    def read_up_to(self, conversation: str) -> ReadUpTo:
        """Return how far a conversation was read; after :meth:`look`."""
        read = [each for each in self.known.all(ReadUpTo) if each.conversation == conversation]
        return read[-1] if read else ReadUpTo(conversation=conversation)
