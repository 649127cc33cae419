"""A memory over another one: everything is the inner one's, except what is overridden."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from os import PathLike
from typing import TYPE_CHECKING, Any, Unpack, cast

from pydantic import JsonValue

from agent_brain.memories.base import Memory
from agent_brain.memories.control import Control
from agent_brain.memories.errors import MemoryDefinitionError, MemoryUseError
from agent_brain.memories.message import Message
from agent_brain.memories.snapshot import Snapshot
from agent_brain.memories.store.filters import Filters, Names, Where, Which

if TYPE_CHECKING:
    from agent_brain.memories.journal.base import Journal
    from agent_brain.memories.recall.results import Recalled
    from agent_brain.memories.recall.tenant import Scope
    from agent_brain.memories.record_memory import RecordMemory
    from agent_brain.memories.store.queries import Loadable
    from agent_brain.memories.vector import VectorMemory
    from agent_brain.memories.windowed import WindowedMemory


class WrappingMemory(Memory):
    """Passes everything on to ``inner``; its tools and its control are this memory's too.

    The query face of the built-in memories (``messages``, ``get``, ``forget``, ``recall`` …) is
    passed on as well; where the inner memory does not have a method of it, the error says so. What
    only one kind of memory has, such as ``compact``, is reached by ``inner``.

    Args:
        inner: The memory that does the work.
    """

    def __init__(self, inner: Memory) -> None:
        if not isinstance(inner, Memory):
            raise MemoryDefinitionError(
                f"{type(self).__name__} takes a memory, such as MessagesMemory(), not {inner!r}"
            )
        self.inner = inner
        self.available_tools = inner.available_tools

    @property
    def wrapped(self) -> tuple[Memory, ...]:
        """The inner memory."""
        return (self.inner,)

    # What every memory has

    @property
    def control(self) -> Control:
        """Where the run stands: the inner memory's."""
        return self.inner.control

    @control.setter
    def control(self, control: Control) -> None:
        self.inner.control = control

    async def set_goal(self, goal: str | Message) -> None:
        """Start a turn."""
        await self.inner.set_goal(goal)

    async def begin(
        self, goal: Message, run_id: str, state: str, *, before: Sequence[Message] = ()
    ) -> None:
        """Start a turn and a run of it."""
        await self.inner.begin(goal, run_id, state, before=before)

    async def update(self, messages: list[Message]) -> None:
        """Add ``messages`` in this order, all or none."""
        await self.inner.update(messages)

    async def goal(self) -> list[Message]:
        """The current goal as a list of one message, or an empty list."""
        return await self.inner.goal()

    async def dump(self) -> list[Message]:
        """A copy of everything but the current goal, oldest first."""
        return await self.inner.dump()

    async def context(self) -> list[Message]:
        """What a model should see now."""
        return await self.inner.context()

    async def turn(self) -> list[Message]:
        """The current goal and what was recorded since."""
        return await self.inner.turn()

    async def open(self) -> None:
        """Get ready."""
        await self.inner.open()

    async def snapshot(self) -> Snapshot:
        """All that the memory holds."""
        return await self.inner.snapshot()

    async def restore(self, snapshot: Snapshot) -> None:
        """Hold what ``snapshot`` holds, and nothing else."""
        await self.inner.restore(snapshot)

    @property
    def durable(self) -> bool:
        """Whether :meth:`checkpoint` does anything."""
        return self.inner.durable

    async def checkpoint(self) -> None:
        """Make what happened so far durable."""
        await self.inner.checkpoint()

    async def rollback(self) -> None:
        """Drop what an interrupted step wrote after the last checkpoint."""
        await self.inner.rollback()

    async def aclose(self) -> None:
        """Close the inner memory."""
        await self.inner.aclose()

    # What built-in memories have besides

    def _with(self, method: str) -> RecordMemory:
        """The inner memory, if it has a method of the query face.

        Raises:
            MemoryUseError: It does not.
        """
        if not hasattr(self.inner, method):
            raise MemoryUseError(
                f"{type(self).__name__} passes {method}() on to the memory that it wraps, and "
                f"{type(self.inner).__name__} does not have it: wrap a built-in memory, or write "
                "the method"
            )
        return cast("RecordMemory", self.inner)

    async def messages(self, last: int | None = None, **filters: Unpack[Filters]) -> list[Message]:
        """As :meth:`RecordMemory.messages`."""
        return await self._with("messages").messages(last, **filters)

    async def get(self, message_id: str) -> Message | None:
        """The message of that id, or None."""
        return await self._with("get").get(message_id)

    async def count(self) -> int:
        """How many messages the memory holds."""
        return await self._with("count").count()

    async def find_news(self, after: int = 0) -> tuple[list[Message], int]:
        """As :meth:`RecordMemory.find_news`."""
        return await self._with("find_news").find_news(after)

    async def tag(self, ids: Names, *tags: str) -> int:
        """As :meth:`RecordMemory.tag`."""
        return await self._with("tag").tag(ids, *tags)

    async def untag(self, ids: Names, *tags: str) -> int:
        """As :meth:`RecordMemory.untag`."""
        return await self._with("untag").untag(ids, *tags)

    async def pin(self, ids: Names) -> int:
        """As :meth:`RecordMemory.pin`."""
        return await self._with("pin").pin(ids)

    async def unpin(self, ids: Names) -> int:
        """As :meth:`RecordMemory.unpin`."""
        return await self._with("unpin").unpin(ids)

    async def delete(self, ids: Names) -> int:
        """As :meth:`RecordMemory.delete`."""
        return await self._with("delete").delete(ids)

    async def clear(self, *, keep_pinned: bool = False) -> int:
        """As :meth:`RecordMemory.clear`."""
        return await self._with("clear").clear(keep_pinned=keep_pinned)

    async def forget(self, ids: Names | None = None, **which: Unpack[Which]) -> int:
        """As :meth:`RecordMemory.forget`."""
        return await self._with("forget").forget(ids, **which)

    async def export(self, path: str | PathLike[str] | None = None) -> dict[str, Any]:
        """As :meth:`RecordMemory.export`: all that this memory holds, over any inner one."""
        from agent_brain.memories.store.export import write_portable

        return await write_portable(await self.snapshot(), path)

    async def load(
        self,
        data: Loadable = None,
        *,
        path: str | PathLike[str] | None = None,
        text: str | None = None,
        merge: bool = False,
    ) -> int:
        """As :meth:`RecordMemory.load`, over any inner memory that can be restored."""
        from agent_brain.memories.store.queries import load_into

        await load_into(self, data, path=path, text=text, merge=merge)
        return len(await self.goal()) + len(await self.dump())

    async def keep(self, name: str, value: JsonValue, *, erase: bool = False) -> None:
        """As :meth:`RecordMemory.keep`."""
        await self._with("keep").keep(name, value, erase=erase)

    async def kept(self, name: str) -> JsonValue:
        """As :meth:`RecordMemory.kept`."""
        return await self._with("kept").kept(name)

    async def reopen(self) -> None:
        """As :meth:`RecordMemory.reopen`."""
        await self._with("reopen").reopen()

    async def history(self) -> list[Message]:
        """As :meth:`WindowedMemory.history`."""
        return await cast("WindowedMemory", self._with("history")).history()

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
        """As :meth:`VectorMemory.recall`."""
        inner = cast("VectorMemory", self._with("recall"))
        return await inner.recall(
            query,
            k,
            where=where,
            since=since,
            until=until,
            min_score=min_score,
            scope=scope,
        )

    @property
    def journal(self) -> Journal | None:
        """The journal of the inner memory, if there is one."""
        return getattr(self.inner, "journal", None)


def offers(memory: Memory, method: str) -> bool:
    """Whether a memory has a method of the query face, and not only passes it on to one without."""
    while isinstance(memory, WrappingMemory):
        if getattr(type(memory), method, None) is not getattr(WrappingMemory, method, None):
            return True
        memory = memory.inner
    return hasattr(memory, method)
