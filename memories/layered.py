"""Two memories as one: what leaves the short-term one goes into the long-term one."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from os import PathLike
from typing import TYPE_CHECKING, Any, Unpack, cast

from pydantic import BaseModel, JsonValue, ValidationError

from agent_brain.memories.base import Memory
from agent_brain.memories.checks import whole_number
from agent_brain.memories.errors import MemoryDefinitionError, MemoryUseError, SnapshotError
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.message import Message, Role
from agent_brain.memories.recall.results import Recalled, checked_score, recalled_block
from agent_brain.memories.record_memory import RecordMemory
from agent_brain.memories.snapshot import Snapshot
from agent_brain.memories.store.erasure import deleted, forgotten
from agent_brain.memories.store.expiry import utc_now
from agent_brain.memories.store.filters import Filters, Names, Query, Where, Which, names
from agent_brain.memories.store.queries import forgettable
from agent_brain.memories.store.store import checked
from agent_brain.memories.views.groups import arranged, newest, whole_groups, with_partners
from agent_brain.memories.windowed import WindowedMemory
from agent_brain.memories.wrapper import WrappingMemory
from agent_brain.tools.text import count_tokens
from agent_brain.tools.toolset import ToolLike

if TYPE_CHECKING:
    from agent_brain.memories.recall.tenant import Scope
    from agent_brain.memories.vector import VectorMemory

LONG = "long"  # under this name a snapshot says what of it the long-term memory holds


class LayeredMemory(WrappingMemory):
    """A window of recent messages over a memory that keeps what has left it.

    The context is what the long-term memory says to the goal (what it recalls, quoted in a message
    that says so; if it cannot recall, its own context), and the recent messages, in the order it
    all happened; none of them twice. The query face concerns both.

    The long-term memory gets the conversation in order: when a message leaves the window, those
    before it that stay (the goal, pinned ones) are copied along. Goal, control and what is kept
    beside the messages are with the short-term memory.

    Args:
        short: Holds the current turn, the goal and where the run stands; its evictions are taken.
        long: Gets what leaves ``short``: any memory with the query face, such as VectorMemory.
        k: How many messages to recall, at most.
        recall_tokens: How many tokens they may take.
        min_score: Recall for the goal only messages with this score or a better one, from 0 to 1;
            None leaves it to ``long``.

    Raises:
        MemoryDefinitionError: The two do not go together.
    """

    def __init__(
        self,
        short: WindowedMemory,
        long: RecordMemory,
        *,
        k: int = 10,
        recall_tokens: int = 1500,
        min_score: float | None = None,
    ) -> None:
        if not isinstance(short, WindowedMemory) or not isinstance(long, RecordMemory):
            raise MemoryDefinitionError(
                f"LayeredMemory takes a WindowedMemory and a built-in memory, not {short!r} and "
                f"{long!r}"
            )
        if short.on_evict is not None:
            raise MemoryDefinitionError("LayeredMemory sets on_evict of its short memory itself")
        whole_number("k", k)
        whole_number("recall_tokens", recall_tokens, least=0)
        super().__init__(short)
        self.short = short
        self.long = long
        self.k = k
        self.recall_tokens = recall_tokens
        self.min_score = checked_score(min_score)
        self._places: dict[str, int] = {}  # of what was handed over; they grow along the dict
        short.on_evict = self._take_over

    @property
    def wrapped(self) -> tuple[Memory, ...]:
        """The short-term and the long-term memory."""
        return self.short, self.long

    # Handing over

    async def _take_over(self, messages: list[Message]) -> None:
        await self._hand(self.short.leaving[: len(messages)])

    async def _hand(self, left: Sequence[tuple[int, Message]]) -> None:
        """Give ``left`` to the long-term memory, with those before it that stay in the window."""
        if not left:
            return
        stayed = self.short.stayed(max(place for place, _ in left))
        due = sorted(
            (pair for pair in [*left, *stayed] if pair[1].id not in self._places),
            key=lambda pair: pair[0],
        )
        missing = [m for _, m in due if await self.long.get(m.id) is None]
        if missing and not self.long.readonly:
            await self.long.update(missing)
        self._places.update((message.id, place) for place, message in due)

    async def _catch_up(self) -> None:
        """Finish what a crash has interrupted: handing over, and deleting."""
        left, struck = self.short.take_left_before()
        if left:
            self._places = {}  # the session was read again
            await self._hand(left)
        gone = [message_id for message_id in struck if await self.long.get(message_id) is not None]
        if gone and not self.long.readonly:
            await self.long.delete(gone)

    async def open(self) -> None:
        """Open both; what left ``short`` before a crash and did not arrive is handed over now."""
        await self.short.open()
        await self.long.open()
        await self._catch_up()

    # Writing

    async def set_goal(self, goal: str | Message) -> None:
        """Start a turn."""
        await self.open()
        await self.short.set_goal(goal)

    async def begin(
        self, goal: Message, run_id: str, state: str, *, before: Sequence[Message] = ()
    ) -> None:
        """Start a turn and a run of it, in one write of the short-term memory."""
        await self.open()
        await self.short.begin(goal, run_id, state, before=before)

    async def update(self, messages: list[Message]) -> None:
        """Add ``messages``; those that are in the long-term memory already are ignored."""
        await self.open()
        known = {m.id for m in checked(messages) if await self.long.get(m.id) is not None}
        await self.short.update([m for m in messages if m.id not in known] if known else messages)

    async def checkpoint(self) -> None:
        """Make what happened so far durable, in both."""
        await self.long.checkpoint()
        await self.short.checkpoint()

    async def rollback(self) -> None:
        """Drop what was written after the last checkpoint, from both."""
        await self.open()
        unfinished = [message.id for message in await self.short.unfinished()]
        if unfinished:
            await self.long.strike(unfinished)
            self._lose(unfinished)
        await self.short.rollback()
        await self._catch_up()

    async def reopen(self) -> None:
        """Read both sessions again, with what others have written to them."""
        await self.short.reopen()
        await self.long.reopen()
        await self._catch_up()

    async def aclose(self) -> None:
        """Close both."""
        try:
            await self.short.aclose()
        finally:
            await self.long.aclose()

    # Reading

    async def context(self) -> list[Message]:
        """What is recalled for the goal, and the recent messages."""
        await self.open()
        recent = await self.short.context()
        held = {message.id for message in await self._held()}
        if not hasattr(self.long, "recall"):
            shown = {message.id for message in recent}
            earlier = await self.long.context()
            whole = {m.id for m in whole_groups(m for m in earlier if m.id not in held)} | shown
            return self._merged([m for m in earlier if m.id in whole], recent)
        lead = 0
        while lead < len(recent) and recent[lead].role is Role.SYSTEM:
            lead += 1
        return [*recent[:lead], *await self._recall(held), *recent[lead:]]

    async def _recall(self, held: set[str]) -> list[Message]:
        goal = await self.short.goal()
        if not goal or not goal[-1].content.strip():
            return []
        least = self.min_score
        if least is None:
            least = getattr(self.long, "min_score", None)
        score: dict[str, Any] = (
            {} if least is None else {"min_score": least}
        )  # your own recall() may not take it
        long = cast("VectorMemory", self.long)
        found = await long.recall(goal[-1].content, self.k, **score)
        fresh = [recalled.message for recalled in found if recalled.message.id not in held]
        return recalled_block(fresh, self.recall_tokens, count_tokens)

    async def _held(self) -> list[Message]:
        """What the long-term memory does not have, or does not need to show, in order."""
        left = [message for _, message in self.short.leaving]
        return [*left, *await self.short.messages()]

    def _merged(self, earlier: Sequence[Message], recent: Sequence[Message]) -> list[Message]:
        """Messages of the long and of the short memory in order, each once, as the short has it."""
        own = {message.id: message for message in recent}
        both = own.keys() & {message.id for message in earlier}
        rest = deque(message for message in recent if message.id not in both)
        merged: list[Message] = []
        for message in earlier:
            place = self._places.get(message.id)
            while place is not None and rest and (self._place(rest[0].id) or place) < place:
                merged.append(rest.popleft())
            merged.append(own.get(message.id, message))
        return arranged([*merged, *rest])

    def _place(self, message_id: str) -> int | None:
        return self._places.get(message_id) or self.short.place(message_id)

    async def messages(self, last: int | None = None, **filters: Unpack[Filters]) -> list[Message]:
        """As :meth:`RecordMemory.messages`, over both."""
        await self.open()
        fits = Query(**filters).predicate()
        recent = [message for message in await self._held() if fits(message)]
        return newest(self._merged(await self.long.messages(**filters), recent), last)

    async def dump(self) -> list[Message]:
        """Everything in both memories but the goal, oldest first."""
        goal = {message.id for message in await self.goal()}
        return [message for message in await self.messages() if message.id not in goal]

    async def get(self, message_id: str) -> Message | None:
        """The message of that id, or None."""
        await self.open()
        left = {message.id: message for _, message in self.short.leaving}
        return (
            await self.short.get(message_id)
            or left.get(message_id)
            or await self.long.get(message_id)
        )

    async def count(self) -> int:
        """How many messages both hold."""
        return len(await self.messages())

    async def find_news(self, after: int = 0) -> tuple[list[Message], int]:
        """As :meth:`RecordMemory.find_news`, over both."""
        await self.open()
        news, cursor = await self.short.find_news(after)
        if cursor < after:  # a cursor of another memory
            after = 0
        found = {message.id: (self.short.place(message.id) or 0, message) for message in news}
        for message_id, place in reversed(self._places.items()):
            if place <= after:
                break
            message = await self.long.get(message_id)
            if message is not None:
                found.setdefault(message_id, (place, message))
        for place, message in self.short.leaving:
            if place > after:
                found.setdefault(message.id, (place, message))
        ordered = [message for _, message in sorted(found.values(), key=lambda pair: pair[0])]
        if after <= 0:  # with what the long-term memory knew before
            known = await self.long.messages()
            ordered = [*(m for m in known if m.id not in found), *ordered]
        return ordered, cursor

    async def history(self) -> list[Message]:
        """Everything that is not deleted, in order."""
        return await self.messages()

    async def recall(
        self,
        query: str,
        k: int = 10,
        *,
        where: Where | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        min_score: float | None = None,
        scope: Scope = "session",
    ) -> list[Recalled]:
        """As :meth:`VectorMemory.recall`, of what is in the long-term memory."""
        if not hasattr(self.long, "recall"):
            raise MemoryUseError(
                f"The long-term memory, a {type(self.long).__name__}, cannot recall: take a "
                "VectorMemory"
            )
        await self.open()
        long = cast("VectorMemory", self.long)
        return await long.recall(
            query,
            k,
            where=where,
            since=since,
            until=until,
            min_score=min_score,
            scope=scope,
        )

    # Changing

    async def tag(self, ids: Names, *tags: str) -> int:
        """As :meth:`RecordMemory.tag`, in both."""
        known = await self._known(ids)
        await self.short.tag(known, *tags)
        await self.long.tag(known, *tags)
        return len(known)

    async def untag(self, ids: Names, *tags: str) -> int:
        """As :meth:`RecordMemory.untag`, in both."""
        known = await self._known(ids)
        await self.short.untag(known, *tags)
        await self.long.untag(known, *tags)
        return len(known)

    async def pin(self, ids: Names) -> int:
        """As :meth:`RecordMemory.pin`, in both."""
        known = await self._known(ids)
        await self.short.pin(known)
        await self.long.pin(known)
        return len(known)

    async def unpin(self, ids: Names) -> int:
        """As :meth:`RecordMemory.unpin`, in both."""
        known = await self._known(ids)
        await self.short.unpin(known)
        await self.long.unpin(known)
        return len(known)

    async def _known(self, ids: Names) -> list[str]:
        return [i for i in names("ids", ids) if await self.get(i) is not None]

    async def delete(self, ids: Names) -> int:
        """As :meth:`RecordMemory.delete`, in both."""
        messages = await self.messages()
        going = with_partners(await self._known(ids), messages)
        await self.short.strike(going, deleted(m for m in messages if m.id in {*going}))
        await self.long.delete(going)
        self._lose(going)
        return len(going)

    def _lose(self, ids: Iterable[str]) -> None:
        for message_id in ids:
            self._places.pop(message_id, None)

    async def forget(self, ids: Names | None = None, **which: Unpack[Which]) -> int:
        """As :meth:`RecordMemory.forget`, in both."""
        fits = forgettable(ids, which, self.short.now())
        await self.open()
        found = {m.id: m for memory in (self.long, self.short) for m in await memory.everything()}
        everything = arranged(found.values())
        going = with_partners([m.id for m in everything if fits(m)], everything)
        gone = forgotten((m for m in everything if m.id in {*going}), which.get("text"))
        if going:
            await self.short.strike(going, gone)
            await self.long.forget(going)
            self._lose(going)
        await self.short.erase(going, gone)
        return len(going)

    async def clear(self, *, keep_pinned: bool = False) -> int:
        """As :meth:`RecordMemory.clear`, in both."""
        before = await self.count()
        self._places = {}
        await self.long.clear(keep_pinned=keep_pinned)
        await self.short.clear(keep_pinned=keep_pinned)
        return before - await self.count()

    # As a whole

    async def snapshot(self) -> Snapshot:
        """All that both hold, in order; ``views`` says what is in the long-term memory."""
        messages = await self.messages()
        snapshot = await self.short.snapshot()
        long = await self.long.snapshot()
        held = {message.id for message in long.messages}
        only = held - {message.id for message in snapshot.messages}
        part = _Part(held=[m.id for m in messages if m.id in held], only=sorted(only))
        part.views = long.views
        snapshot.messages = messages
        snapshot.views[LONG] = part.model_dump(mode="json")
        return snapshot

    async def restore(self, snapshot: Snapshot) -> None:
        """Hold what ``snapshot`` holds; one of another memory fills the short-term memory."""
        snapshot.check()
        views = dict(snapshot.views)
        part = _read_part(views.pop(LONG, None))
        held, only = set(part.held), set(part.only)
        await self.open()
        self._places = {}
        kept = [m for m in snapshot.messages if m.id in held]
        recent = [m for m in snapshot.messages if m.id not in only]
        await self.long.restore(Snapshot(messages=kept or part.messages, views=part.views))
        await self.short.restore(snapshot.model_copy(update={"messages": recent, "views": views}))

    async def fork(self) -> LayeredMemory:
        """An independent copy, of both."""
        await self.open()
        self.short.on_evict = None
        try:
            short = await self.short.fork()
        finally:
            self.short.on_evict = self._take_over
        long = await self.long.fork()
        return type(self)(
            short, long, k=self.k, recall_tokens=self.recall_tokens, min_score=self.min_score
        )


class _Part(BaseModel):
    """What of a snapshot's messages the long-term memory holds.

    Attributes:
        held: Ids of its messages.
        only: Those of them that are not in the short-term memory as well.
        views: What it keeps beside its messages.
        messages: Its messages, as snapshots of earlier versions have them.
    """

    held: list[str] = []
    only: list[str] = []
    views: dict[str, JsonValue] = {}
    messages: list[Message] = []


def _read_part(value: JsonValue) -> _Part:
    try:
        return _Part.model_validate(value or {})
    except ValidationError as error:
        raise SnapshotError(f"Not a snapshot of a LayeredMemory: {error}") from error


def make_layered(
    tools: Iterable[ToolLike] = (),
    *,
    short: WindowedMemory | None = None,
    long: RecordMemory | str = "vector",
    k: int = 10,
    recall_tokens: int = 1500,
    min_score: float | None = None,
    journal: Journal | str | PathLike[str] | None = None,
    session: str = "default",
    tenant: str | None = None,
    ttl: timedelta | float | None = None,
    clock: Callable[[], datetime] = utc_now,
    readonly: bool = False,
    **options: Any,
) -> LayeredMemory:
    """A layered memory from options alone, for ``Brain(memory="layered")``.

    Args:
        tools: What the agent may call.
        short: The short-term memory; None makes one with ``options``.
        long: The long-term memory, or the name of one.
        k: How many messages to recall, at most.
        recall_tokens: How many tokens they may take.
        min_score: As for :class:`LayeredMemory`.
        journal: Where to keep both, in two sessions.
        session: Which conversation.
        tenant: Whose.
        ttl: How long both remember messages.
        clock: Tells the time by which messages expire.
        readonly: Only read both.
        **options: For the short-term memory, such as ``max_messages``.
    """
    from agent_brain.memories.registry import create_memory

    place: dict[str, Any] = {
        "journal": journal,
        "session": session,
        "tenant": tenant,
        "ttl": ttl,
        "clock": clock,
        **({"readonly": True} if readonly else {}),
    }
    if short is None:
        short = WindowedMemory(tools, **place, **options)
    elif tools:
        short.add_tools(tools)
    if isinstance(long, str):
        place["session"] = json.dumps([session, LONG])
        made = create_memory(long, **place)
    else:
        made = long
    if not isinstance(made, RecordMemory):
        raise MemoryDefinitionError(f"{long!r} cannot be a long-term memory: it has no query face")
    return LayeredMemory(short, made, k=k, recall_tokens=recall_tokens, min_score=min_score)
