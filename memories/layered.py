"""Two memories as one: what leaves the short-term one goes into the long-term one."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack, cast

import anyio
from pydantic import BaseModel, JsonValue, ValidationError

from agent_brain.common.text import count_tokens
from agent_brain.memories.base import Memory
from agent_brain.memories.branches import journaled
from agent_brain.memories.branches.copying import Copying, copy_of
from agent_brain.memories.branches.forgetting import forget_in, look_inside
from agent_brain.memories.errors import MemoryDefinitionError, MemoryUseError, SnapshotError
from agent_brain.memories.journal.entry import Rows
from agent_brain.memories.message import Message, Role, checked_messages
from agent_brain.memories.options import RecallOptions, SessionOptions
from agent_brain.memories.recall.results import (
    CONVERSATION,
    NO_PASSAGES,
    Recalled,
    RecalledItem,
    checked_score,
    recalled_block,
    report_recalled,
)
from agent_brain.memories.store import removal
from agent_brain.memories.store.checks import whole_number
from agent_brain.memories.store.erasure import Erasure, deleted
from agent_brain.memories.store.events import Replayed, Tagged
from agent_brain.memories.store.filters import (
    Filters,
    ForgetOptions,
    Keep,
    Names,
    Query,
    checked_cursor,
    forgettable,
    kept_by,
    names,
    refuse_unknown,
)
from agent_brain.memories.store.hand_over import HANDED, HandOver
from agent_brain.memories.store.many import in_slices, in_thread_if_many
from agent_brain.memories.store.removal import REMOVING
from agent_brain.memories.store.retagging import Retagged
from agent_brain.memories.store.run_record import plan_undoing
from agent_brain.memories.store.session import LONG, long_term_session
from agent_brain.memories.store.snapshot import Snapshot, check_snapshot
from agent_brain.memories.stored import StoredMemory
from agent_brain.memories.views.groups import (
    arranged,
    behind_rules,
    group,
    is_whole,
    newest,
    with_partners,
)
from agent_brain.memories.windowed import WindowedMemory
from agent_brain.memories.wrapper import WrappingMemory
from agent_brain.tools.toolset import ToolLike

if TYPE_CHECKING:
    from agent_brain.memories.vector import VectorMemory

OWN_OPTIONS = ("k", "recall_tokens", "min_score", "tool_results", "keeps")
Keeps: TypeAlias = Names | Callable[[Message], bool]


class LayeredMemory(Retagged, WrappingMemory):
    """A window of recent messages over a memory that keeps what has left it.

    The context has what the long-term memory recalls for the goal, quoted in a message that says so
    (its own context, if it cannot recall), what is pinned of this conversation, and the recent
    messages, in the order it all happened; each once. Queries concern both. One long-term memory
    may serve many conversations at once, if it is opened with ``shared=True``; what is from another
    conversation is quoted with its name and date, and results of tools there only with
    ``tool_results``::

        user = VectorMemory(path="users", session="user:ann", shared=True)
        chat = WindowedMemory(journal="chats.db", session="ann/42")
        async with LayeredMemory(chat, user) as memory:
            ...

    The long-term memory gets the conversation in order: what leaves the window, with what stays
    before it (the goal, pinned messages), and the rest when the conversation ends: with
    :meth:`aclose`, or :meth:`hand_over`. It gets each message once, also after a crash. Goal,
    control and values are with the short-term memory.

    Args:
        short: The current conversation, its goal and the state of the run.
        long: Gets what leaves ``short``: any built-in memory, such as VectorMemory.
        k: How many messages to recall at most.
        recall_tokens: How many tokens they may take.
        min_score: Recall for the goal only messages with at least this score, from 0 to 1; None
            leaves it to ``long``.
        tool_results: Quote results of tools from other conversations too, where ``long`` serves
            several.
        keeps: Which messages ``long`` gets: those of a role or of several, or those that a function
            accepts; None for all. The others are gone from both when they leave the window; a
            journal of ``short`` still has them.

    Raises:
        MemoryDefinitionError: The two do not go together.
        MemoryUseError: ``keeps`` is neither.
    """

    begins_with_goal = True

    def __init__(
        self,
        short: WindowedMemory,
        long: StoredMemory,
        *,
        k: int = 10,
        recall_tokens: int = 1500,
        min_score: float | None = None,
        tool_results: bool = False,
        keeps: Keeps | None = None,
    ) -> None:
        if not isinstance(short, WindowedMemory) or not isinstance(long, StoredMemory):
            raise MemoryDefinitionError(
                f"LayeredMemory takes a WindowedMemory and a built-in memory, not {short!r} and "
                f"{long!r}. What is known about a user goes over any memory: user.over(memory)"
            )
        if short.shared:
            raise MemoryDefinitionError(
                "The short-term memory is one conversation: not shared=True"
            )
        one, other = short.store.session, long.store.session
        same = one and other and one.key == other.key and one.journal.same_as(other.journal)
        if short is long or same:
            raise MemoryDefinitionError(
                "The two memories store the same session: give one of them another session="
            )
        if short.on_evict is not None:
            raise MemoryDefinitionError("LayeredMemory sets on_evict of its short memory itself")
        whole_number("k", k)
        whole_number("recall_tokens", recall_tokens, least=0)
        wanted = Query(where=keeps) if callable(keeps) else Query(role=keeps)
        super().__init__(short)
        self.short = short
        self.long = long
        self.k = k
        self.recall_tokens = recall_tokens
        self.min_score = checked_score(min_score)
        self._quotes_tools = tool_results
        self._closed = False
        self._keeps = keeps
        self._handed = HandOver(short, long, wanted.predicate())
        self._several = long.shared  # whether it has other conversations, as its copies do too
        self._handed_before: frozenset[str] = frozenset()  # IDs; by what it is a copy of

    @property
    def wrapped(self) -> tuple[Memory, ...]:
        """The short-term and the long-term memory."""
        return self.short, self.long

    # Handing over

    async def hand_over(self) -> int:
        """Give the long-term memory all of the conversation that it does not have yet.

        Done by :meth:`aclose`; idempotent. The messages stay in the window and are shown once.

        Returns:
            How many messages it had not got before.
        """
        await self.open()
        if self.short.readonly or self.long.readonly:
            return 0
        return await self._handed.rest()

    async def open(self) -> None:
        """Open both; what left ``short`` before a crash and did not arrive is handed over now."""
        await self.short.open()
        await self.long.open()
        await self._handed.finish()

    # Writing

    async def set_goal(self, goal: str | Message) -> None:
        """Start a turn."""
        await self.open()
        await self.short.set_goal(goal)

    async def update(self, messages: list[Message]) -> list[str] | Any:
        """Add ``messages``; those that are in the long-term memory already are ignored."""
        await self.open()
        known = {m.id for m in checked_messages(messages) if await self.long.get(m.id) is not None}
        new = [m for m in messages if m.id not in known] if known else messages
        return await self.short.update(new)

    async def checkpoint(self) -> None:
        """Make what happened so far durable, in both."""
        await self.long.checkpoint()
        await self._handed.mark_if_due()
        await self.short.checkpoint()

    async def rollback(self) -> None:
        """Drop what was written after the last checkpoint, from both."""
        await self.open()
        session = self.short.store.session
        if session is not None and session.run.at:
            rows = await session.rows(session.run.safe_at)
            undone = {*plan_undoing(rows, session.run.calls).undone}
            going = Rows(row for row in rows if row[0] in undone)
            unfinished = [*Replayed(going, removed=True)]
            if unfinished:
                await self._remove(self.long, unfinished, Erasure())
                self._handed.lose(unfinished)
        await self.short.rollback()
        await self._handed.finish()

    async def reopen(self) -> None:
        """Read both sessions again, with what others have written to them."""
        await self.short.reopen()
        await self.long.reopen()
        await self._handed.finish()

    async def aclose(self) -> None:
        """Hand the conversation over to the long-term memory, and close both. Idempotent."""
        closed, self._closed = self._closed, True
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.long.aclose)
            stack.push_async_callback(self.short.aclose)
            if not closed and not self.short.store.stale:
                await self._handed.rest_at_end()

    # Reading

    async def context(self) -> list[Message]:
        """Return what is recalled for the goal, and the recent messages."""
        await self.open()
        recent = await self.short.context()
        held = {message.id for message in await self._held()}
        recalls = hasattr(self.long, "recall")
        earlier = await (  # your own context() may recall
            StoredMemory.context(self.long) if recalls else self.long.context()
        )
        here = [
            message
            async for message in in_slices(earlier)
            if not self._several or self._elsewhere(message) is None
        ]
        groups = [g for g in await in_thread_if_many(here, group) if is_whole(g)]
        if recalls:
            groups = [members for members in groups if any(m.pinned for m in members)]
        left = [ids for members in groups if not (ids := {m.id for m in members}) <= held]
        stays = set[str]().union(*left)
        if recalls:
            block = await self._recall(held | stays)
        else:
            others = [m for m in reversed(earlier) if self._elsewhere(m) is not None]
            said = [m for m in others if m.role is not Role.SYSTEM and m.content.strip()]
            block = self._quoted([m for m in said if m.id not in held and self._is_quoted(m)])
        if stays:
            shown = [m for m in earlier if m.id in stays]
            also = [m for m in recent if m.id in self.long.store.log and m.id not in stays]
            recent = await self._merged([*shown, *also], recent)
        return behind_rules(block, recent)

    async def _recall(self, held: set[str]) -> list[Message]:
        goal = await self.short.goal()
        if not goal or not goal[-1].content.strip():
            return []
        least = self.min_score
        if least is None:
            least = getattr(self.long, "min_score", None)
        # your own recall() may not take them
        options: dict[str, Any] = {} if least is None else {"min_score": least}
        if self._several:
            options["where"] = self._is_quoted
        found = await cast("VectorMemory", self.long).recall(goal[-1].content, self.k, **options)
        passages = {item.message.id: getattr(item, "passage", "") for item in found}
        earlier = [item.message for item in found if item.message.id not in held]
        block = self._quoted(earlier, passages)
        items = (
            RecalledItem(item.message.id, item.score, self._elsewhere(item.message))
            for item in found
        )
        report_recalled(self, goal[-1], block, items)
        return block

    def _quoted(
        self, found: Sequence[Message], passages: Mapping[str, str] = NO_PASSAGES
    ) -> list[Message]:
        return recalled_block(
            found, self.recall_tokens, count_tokens, self._elsewhere, passages=passages
        )

    def _is_quoted(self, message: Message) -> bool:
        """Return whether a message may be shown."""
        return self._quotes_tools or self._is_said(message)

    def _is_said(self, message: Message) -> bool:
        """Return whether a message is not the result of a tool in another conversation."""
        return message.role is not Role.TOOL or self._elsewhere(message) is None

    def _elsewhere(self, message: Message) -> str | None:
        """Return the name of another conversation that a message is from; None if from this one."""
        here = self._handed.place(message.id) is not None or message.id in self._handed_before
        if not self._several or here:
            return None
        conversation = str(message.metadata.get(CONVERSATION) or "another one")
        return None if conversation == self.short.session else conversation

    async def _held(self) -> list[Message]:
        """Return what the short-term memory has, also what it is handing over, in order."""
        left = [message for _, message in self.short.leaving]
        return [*left, *await self.short.messages()]

    async def _merged(self, earlier: Sequence[Message], recent: Sequence[Message]) -> list[Message]:
        """Return the messages of both in order, each once, as the short-term memory has it."""
        own = {message.id: message for message in recent}
        both = own.keys() & {message.id for message in earlier}
        leaving = {message.id: at for at, message in self.short.leaving}

        def find(message_id: str) -> int | None:
            at = self._handed.place(message_id) or self.short.store.log.find(message_id)
            return at or leaving.get(message_id)

        rest = deque(_by_arrival([m for m in recent if m.id not in both], find))
        if rest and (find(rest[0].id) or 0) < self.short.store.evicted_upto:
            await self._handed.read_places()  # what stays in the window is older than some of these
        merged: list[Message] = []
        in_long = partial(_by_arrival, place=self.long.store.log.find)
        async for message in in_slices(await in_thread_if_many(earlier, in_long)):
            place = find(message.id)
            while place is not None and rest and (find(rest[0].id) or place) < place:
                merged.append(rest.popleft())
            merged.append(own.get(message.id, message))
        return await in_thread_if_many([*merged, *rest], arranged)

    async def messages(self, last: int | None = None, **filters: Unpack[Filters]) -> list[Message]:
        """As :meth:`StoredMemory.messages`, over both."""
        await self.open()
        fits = Query(**filters).predicate()
        recent = [message async for message in in_slices(await self._held()) if fits(message)]
        return newest(await self._merged(await self.long.messages(**filters), recent), last)

    async def turn(self) -> list[Message]:
        """As :meth:`StoredMemory.turn`, with the tags that messages have now."""
        await self.open()
        return [await self._as_it_is(message) for message in await self.short.turn()]

    async def _as_it_is(self, message: Message) -> Message:
        left = message.id not in self.short.store.log
        kept = await self.long.get(message.id) if left else None
        if kept is None or (kept.tags, kept.pinned) == (message.tags, message.pinned):
            return message
        return message.model_copy(update={"tags": kept.tags, "pinned": kept.pinned})

    async def dump(self) -> list[Message]:
        """Return everything in both memories but the goal, oldest first."""
        goal = {message.id for message in await self.goal()}
        return [message for message in await self.messages() if message.id not in goal]

    async def get(self, message_id: str) -> Message | None:
        """Return the message with this ID, or None."""
        await self.open()
        left = {message.id: message for _, message in self.short.leaving}
        return (
            await self.short.get(message_id)
            or left.get(message_id)
            or await self.long.get(message_id)
        )

    async def count(self) -> int:
        """Return the number of messages that both hold."""
        return len(await self.messages())

    async def find_news(self, after: int = 0) -> tuple[list[Message], int]:
        """As :meth:`StoredMemory.find_news`, over both."""
        checked_cursor(after)
        await self.open()
        news, cursor = await self.short.find_news(after)
        if cursor < after:  # a cursor of another memory
            after = 0
        log = self.short.store.log
        found = {m.id: (log.place(m.id), m) async for m in in_slices(news)}
        handed = await self._handed.after(after)
        async for place, message in in_slices([*self.short.leaving, *handed]):
            if place > after:
                found.setdefault(message.id, (place, message))
        ordered = [message for _, message in sorted(found.values(), key=lambda pair: pair[0])]
        if after <= 0:  # with what the long-term memory knew before
            known = in_slices(await self.long.messages())
            ordered = [*[m async for m in known if m.id not in found], *ordered]
        return ordered, cursor

    async def history(self) -> list[Message]:
        """Return everything that is not deleted, in order."""
        return await self.messages()

    async def _whole_session(self) -> list[Message]:
        """Return the messages of this conversation in both memories."""
        return await (self._own() if self.long.shared else self.messages())

    async def recall(
        self, query: str, k: int = 10, **options: Unpack[RecallOptions]
    ) -> list[Recalled]:
        """As :meth:`VectorMemory.recall`, of what is in the long-term memory.

        Results of tools in other conversations are found with ``tool_results=True`` only, here or
        of this memory. :attr:`Recalled.session` is the conversation that a message is from.
        """
        if not hasattr(self.long, "recall"):
            raise MemoryUseError(
                f"The long-term memory, a {type(self.long).__name__}, cannot recall: take a "
                "VectorMemory"
            )
        await self.open()
        tools = options.pop("tool_results", self._quotes_tools)
        if options.get("scope") == "tenant":
            options["tool_results"] = tools
        if self._several and not tools:
            fits = Query(where=options.get("where")).predicate()
            options["where"] = lambda message: self._is_said(message) and fits(message)
        found = await cast("VectorMemory", self.long).recall(query, k, **options)
        return [self._of_conversation(item) for item in found]

    def _of_conversation(self, found: Recalled) -> Recalled:
        """Return what was found with the name of its conversation."""
        if not isinstance(found, Recalled) or found.session != self.long.session:
            return found
        conversation = self._elsewhere(found.message) or self.short.session
        return found if conversation is None else replace(found, session=conversation)

    # Changing

    async def _retag(self, method: str, ids: Names, change: Callable[[list[str]], Tagged]) -> int:
        """Change messages in both memories."""
        known = await self._known(ids)
        for memory in (self.short, self.long):
            await memory._retag(method, known, change)
        return len(known)

    async def _known(self, ids: Names) -> list[str]:
        return [i for i in names("ids", ids) if await self.get(i) is not None]

    async def _remove(self, memory: StoredMemory, ids: Sequence[str], gone: Erasure) -> None:
        await memory._write("delete()")
        await removal.remove(memory, lambda: ids, gone)

    async def delete(self, ids: Names, *, strict: bool = False) -> int:
        """As :meth:`StoredMemory.delete`, in both."""
        messages = await self.messages()
        known = await self._known(ids)
        if strict:
            refuse_unknown(names("ids", ids), known)
        going = await in_thread_if_many(messages, partial(with_partners, known))
        chosen = {*going}
        await self._remove(self.short, going, deleted(m for m in messages if m.id in chosen))
        await self.long.delete(going)
        self._handed.lose(going)
        return len(going)

    async def forget(self, ids: Names | None = None, **which: Unpack[ForgetOptions]) -> int:
        """As :meth:`StoredMemory.forget`, in both."""
        choice = forgettable(ids, which, self.short.store.clock())
        await self.open()
        known = await removal.everything(self.long)  # as they are: tagged since they left short
        held = known | await removal.everything(self.short) | known
        going, gone = await removal.choose(held, choice)
        inside = await look_inside(self, choice, held)
        for memory in (self.short, self.long):
            await memory._write("forget()")
        await self._handed.forget([*going, *inside.ids], replace(gone, ends_run=inside.ends_run))
        await forget_in(self, inside, choice)
        return len(going) + len(inside.ids)

    async def _drop_all_branches(self) -> None:
        self._kept = None
        for memory in (self.short, self.long):
            await memory._drop_all_branches()

    async def clear(self, *, keep: Keep | None = None) -> int:
        """As :meth:`StoredMemory.clear`, in both.

        A shared long-term memory loses only what this conversation gave it.
        """
        for memory in (self.short, self.long):
            await memory._write("clear()")
        messages, shared = await self.messages(), self.long.shared
        before, stays = len(messages), await in_thread_if_many(messages, partial(kept_by, keep))
        kept, self._kept = {*stays}, None
        own = [m.id for m in await self._own() if m.id not in kept] if shared else []
        await self._handed.clear(own, everything=not shared, keep=stays)
        return before - await self.count()

    async def _own(self) -> list[Message]:
        """Return the messages of this conversation, wherever they are."""
        held = {message.id: message for _, message in await self._handed.after(0)}
        return arranged((held | {m.id: m for m in await self._held()}).values())

    # As a whole

    async def snapshot(self) -> Snapshot:
        """Return all that both hold, in order; ``views`` says what is in the long-term memory.

        Of a shared long-term memory only what this conversation gave it.
        """
        shared = self.long.shared
        messages = await self._whole_session()
        snapshot = await self.short.snapshot()
        for name in (HANDED, REMOVING):
            snapshot.views.pop(name, None)
        in_long, in_short = {*self.long.store.log.ids()}, {m.id for m in snapshot.messages}
        held = [m.id async for m in in_slices(messages) if m.id in in_long]
        part = _Part(held=held, only=sorted({*held} - in_short))
        part.views = {} if shared else copy.deepcopy(self.long.store.values)
        snapshot.messages = messages
        snapshot.views[LONG] = part.model_dump(mode="json")
        return snapshot

    async def restore(self, snapshot: Snapshot) -> None:
        """Replace the content by that of ``snapshot``, which may be of another kind of memory.

        A shared long-term memory keeps what it has and gets what is missing.
        """
        check_snapshot(snapshot)
        views = dict(snapshot.views)
        try:
            part = _Part.model_validate(views.pop(LONG, None) or {})
        except ValidationError as error:
            raise SnapshotError(f"Not a snapshot of a LayeredMemory: {error}") from error
        for name in (HANDED, REMOVING):
            views.pop(name, None)
        held, only = set(part.held), set(part.only)
        await self.open()
        for memory in (self.short, self.long):
            await memory._write("restore()")
        kept = [m for m in snapshot.messages if m.id in held]
        recent = snapshot.messages  # what leaves the window is known as of this conversation
        if not self.long.shared:
            recent = [m for m in recent if m.id not in only]
        content = snapshot.model_copy(update={"messages": recent, "views": views})
        if self.long.shared:
            await self.long.update(kept)
        with anyio.CancelScope(shield=True):  # both, or none
            if not self.long.shared:
                await self.long.restore(Snapshot(messages=kept, views=part.views))
            self._handed.reset()
            await self.short.restore(content)

    async def _copied(self, copying: Copying) -> LayeredMemory:
        """Return a copy of this memory over copies of both."""
        await self.open()
        short = cast("WindowedMemory", await copy_of(self.short, copying))
        if short.store.session is None:
            for name in (HANDED, REMOVING):
                short.store.values.pop(name, None)
        copied = type(self)(
            short,
            await copying.long_term(self.long),
            k=self.k,
            recall_tokens=self.recall_tokens,
            min_score=self.min_score,
            tool_results=self._quotes_tools,
            keeps=self._keeps,
        )
        copied.resumed, copied.lasting = short.resumed, short.lasting
        copied._several = self._several
        copied._handed_before = self._handed_before.union(self._handed.places)
        return copied

    async def drop_branches(self) -> None:
        """Remove what both keep of branches of earlier steps and runs."""
        await self.short.drop_branches()
        await journaled.drop_branches(self.long, self.short.step_place)


def _by_arrival(
    messages: Sequence[Message], place: Callable[[str], int | None]
) -> Sequence[Message]:
    """Return ``messages`` as they arrived; one without a place stays behind the one before it."""
    before = 0
    places = {m.id: (before := place(m.id) or before) for m in messages}
    return sorted(messages, key=lambda message: places[message.id])


class _Part(BaseModel):
    """Which messages of a snapshot the long-term memory holds.

    Attributes:
        held: IDs of its messages.
        only: Those of them that are not in the short-term memory as well.
        views: Its values.
    """

    held: list[str] = []
    only: list[str] = []
    views: dict[str, JsonValue] = {}


def make_layered(
    tools: Iterable[ToolLike] = (),
    *,
    short: WindowedMemory | None = None,
    long: StoredMemory | str = "vector",
    **options: Any,
) -> LayeredMemory:
    """Create a layered memory from options, for ``Brain(memory="layered")``.

    Args:
        tools: What the agent may call.
        short: The short-term memory; None makes one with ``options``.
        long: The long-term memory, or the name of one.
        **options: As for :class:`LayeredMemory`; for the short-term memory, such as
            ``max_messages``; for both, where they are stored, as for :class:`StoredMemory`: in two
            sessions of the journal.

    Raises:
        MemoryDefinitionError: There are options for a memory that is given as an object.
    """
    from agent_brain.memories.registry import create_memory

    own = {name: options.pop(name) for name in OWN_OPTIONS if name in options}
    names = SessionOptions.__annotations__.keys() - {"dedupe"}  # the short-term memory does that
    place = {name: value for name, value in options.items() if name in names}
    if short is None:
        short = WindowedMemory(tools, **options)
    else:
        unused = options if not isinstance(long, str) else options.keys() - place
        if unused:
            raise MemoryDefinitionError(
                f"{', '.join(f'{name}=' for name in unused)}: options go with memories that are "
                "made here, not with short= or long= as objects"
            )
        short.add_tools(tools)
    if isinstance(long, str):
        if place.get("journal") is not None:
            place["session"] = long_term_session(place.get("session", "default"))
        made = create_memory(long, **place)
    else:
        made = long
    if not isinstance(made, StoredMemory):
        raise MemoryDefinitionError(
            f"{long!r} cannot be a long-term memory: it has no queries, as StoredMemory does"
        )
    return LayeredMemory(short, made, **own)
