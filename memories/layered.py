"""Two memories as one: what leaves the short-term one goes into the long-term one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any

from agent_brain.memories.errors import MemoryDefinitionError
from agent_brain.memories.groups import whole_groups
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.message import Message, Role
from agent_brain.memories.query import Names
from agent_brain.memories.recalled import recalled_block
from agent_brain.memories.record_core import checked
from agent_brain.memories.record_memory import RecordMemory
from agent_brain.memories.snapshot import Snapshot
from agent_brain.memories.windowed import WindowedMemory
from agent_brain.memories.wrapping import WrappingMemory
from agent_brain.tools.text import count_tokens
from agent_brain.tools.toolset import ToolLike

LONG = "long"  # under this name a snapshot has the long-term memory's


class LayeredMemory(WrappingMemory):
    """A window of recent messages over a memory that keeps what has left it.

    The context is what the long-term memory says to the goal (what it recalls, quoted in a message
    that says so; if it cannot recall, its own context), and after it the recent messages; none of
    them twice. Messages, lookups, deletions and :meth:`forget` concern both.

    Args:
        short: Holds the current turn, the goal and where the run stands; its evictions are taken.
        long: Gets what leaves ``short``: any memory with the query face, such as VectorMemory.
        k: How many messages to recall, at most.
        recall_tokens: How many tokens they may take.

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
    ) -> None:
        if not isinstance(short, WindowedMemory) or not isinstance(long, RecordMemory):
            raise MemoryDefinitionError(
                f"LayeredMemory takes a WindowedMemory and a built-in memory, not {short!r} and "
                f"{long!r}"
            )
        if short.on_evict is not None:
            raise MemoryDefinitionError("LayeredMemory sets on_evict of its short memory itself")
        super().__init__(short)
        self.short = short
        self.long = long
        self.k = k
        self.recall_tokens = recall_tokens
        short.on_evict = long.update

    async def open(self) -> None:
        """Open both; what left ``short`` before a crash and did not arrive is handed over now."""
        await self.short.open()
        await self.long.open()
        missing: list[Message] = []
        for message in reversed(self.short.take_left_before()):
            if await self.long.get(message.id) is not None:
                break
            missing.append(message)
        if missing and not self.long.readonly:
            await self.long.update(missing[::-1])

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
        """Add ``messages``; those that are in the long-term memory already are passed over."""
        await self.open()
        known = [m for m in checked(messages) if await self.long.get(m.id) is not None]
        await self.short.update([m for m in messages if m not in known] if known else messages)

    async def context(self) -> list[Message]:
        """What is recalled for the goal, and the recent messages."""
        await self.open()
        recent = await self.short.context()
        held = {message.id for message in await self.short.messages()}
        earlier = await self._recall(held)
        lead = 0
        while lead < len(recent) and recent[lead].role is Role.SYSTEM:
            lead += 1
        return [*recent[:lead], *earlier, *recent[lead:]]

    async def _recall(self, held: set[str]) -> list[Message]:
        recall = getattr(self.long, "recall", None)
        if recall is None:
            return whole_groups([m for m in await self.long.context() if m.id not in held])
        goal = await self.short.goal()
        if not goal or not goal[-1].content.strip():
            return []
        found = [recalled.message for recalled in await recall(goal[-1].content, self.k)]
        fresh = [message for message in found if message.id not in held]
        return recalled_block(fresh, self.recall_tokens, count_tokens)

    async def dump(self) -> list[Message]:
        """Everything in both memories but the goal, oldest first."""
        goal = {message.id for message in await self.goal()}
        return [message for message in await self.messages() if message.id not in goal]

    async def messages(self, last: int | None = None, **filters: Any) -> list[Message]:
        """As :meth:`RecordMemory.messages`, over both."""
        await self.open()
        found = {m.id: m for m in await self.long.messages(**filters)}
        found.update({m.id: m for m in await self.short.messages(**filters)})
        both = list(found.values())
        if last is None:
            return both
        return both[-last:] if last > 0 else []

    async def get(self, message_id: str) -> Message | None:
        """The message of that id, or None."""
        await self.open()
        return await self.short.get(message_id) or await self.long.get(message_id)

    async def count(self) -> int:
        """How many messages both hold."""
        return len(await self.messages())

    async def delete(self, ids: Names) -> int:
        """As :meth:`RecordMemory.delete`, in both."""
        await self.open()
        return await self.short.delete(ids) + await self.long.delete(ids)

    async def forget(self, ids: Names | None = None, **which: Any) -> int:
        """As :meth:`RecordMemory.forget`, in both. Returns how many copies were forgotten."""
        await self.open()
        return await self.short.forget(ids, **which) + await self.long.forget(ids, **which)

    async def clear(self, *, keep_pinned: bool = False) -> int:
        """As :meth:`RecordMemory.clear`, in both."""
        await self.open()
        return await self.short.clear(keep_pinned=keep_pinned) + await self.long.clear(
            keep_pinned=keep_pinned
        )

    async def snapshot(self) -> Snapshot:
        """All that both hold; the long-term memory's part is in ``views``."""
        await self.open()
        snapshot = await self.short.snapshot()
        long = await self.long.snapshot()
        snapshot.views[LONG] = long.model_dump(mode="json")
        return snapshot

    async def restore(self, snapshot: Snapshot) -> None:
        """Hold what ``snapshot`` holds; one of another memory fills the short-term memory."""
        snapshot.check()
        views = dict(snapshot.views)
        long = views.pop(LONG, None)
        kept = Snapshot() if long is None else Snapshot.model_validate(long)
        await self.open()
        await self.long.restore(kept)
        await self.short.restore(snapshot.model_copy(update={"views": views}))

    async def fork(self) -> LayeredMemory:
        """An independent copy, of both."""
        await self.open()
        self.short.on_evict = None
        try:
            short = await self.short.fork()
        finally:
            self.short.on_evict = self.long.update
        long = await self.long.fork()
        return type(self)(short, long, k=self.k, recall_tokens=self.recall_tokens)

    async def checkpoint(self) -> None:
        """Make what happened so far durable, in both."""
        await self.long.checkpoint()
        await self.short.checkpoint()

    async def aclose(self) -> None:
        """Close both."""
        try:
            await self.short.aclose()
        finally:
            await self.long.aclose()


def make_layered(
    tools: Iterable[ToolLike] = (),
    *,
    short: WindowedMemory | None = None,
    long: RecordMemory | str = "vector",
    k: int = 10,
    journal: Journal | str | PathLike[str] | None = None,
    session: str = "default",
    tenant: str | None = None,
    **options: Any,
) -> LayeredMemory:
    """A layered memory from options alone, for ``Brain(memory="layered")``.

    Args:
        tools: What the agent may call.
        short: The short-term memory; None makes one with ``options``.
        long: The long-term memory, or the name of one.
        k: How many messages to recall, at most.
        journal: Where to keep both, in two sessions.
        session: Which conversation.
        tenant: Whose.
        **options: For the short-term memory, such as ``max_messages``.
    """
    from agent_brain.memories.registry import create_memory

    place: dict[str, Any] = {"journal": journal, "session": session, "tenant": tenant}
    if short is None:
        short = WindowedMemory(tools, **place, **options)
    elif tools:
        short.add_tools(tools)
    if isinstance(long, str):
        if options.get("readonly"):
            place["readonly"] = True
        place["session"] = json.dumps([session, LONG])
        made = create_memory(long, **place)
    else:
        made = long
    if not isinstance(made, RecordMemory):
        raise MemoryDefinitionError(f"{long!r} cannot be a long-term memory: it has no query face")
    return LayeredMemory(short, made, k=k)
