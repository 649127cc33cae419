"""The base class for memories that wrap another one."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from datetime import datetime
from os import PathLike
from typing import TYPE_CHECKING, Any, Self, Unpack, cast

from pydantic import JsonValue

from agent_brain.memories.base import Memory
from agent_brain.memories.control import Control
from agent_brain.memories.errors import MemoryDefinitionError, MemoryUseError
from agent_brain.memories.message import Message
from agent_brain.memories.runs.beginning import Beginning, begin_by_set_goal, is_replaced
from agent_brain.memories.runs.counts import Counts
from agent_brain.memories.sessions.history import SavedStep
from agent_brain.memories.store.filters import Filters, ForgetOptions, Names, Where
from agent_brain.memories.store.snapshot import Snapshot
from agent_brain.memories.trace.model_calls import ModelCallRecord, ToolResultRecord, Traced

if TYPE_CHECKING:
    from agent_brain.memories.journal.base import Journal
    from agent_brain.memories.recall.results import Recalled
    from agent_brain.memories.recall.tenant import Scope
    from agent_brain.memories.runs.turn_notes import TurnNote
    from agent_brain.memories.store.export import Loadable
    from agent_brain.memories.stored import StoredMemory
    from agent_brain.memories.vector import VectorMemory
    from agent_brain.memories.windowed import WindowedMemory


class WrappingMemory(Memory):
    """Base class for memories that wrap another one: every method calls that of ``inner``.

    The methods of the built-in memories (``messages``, ``get``, ``forget``, ``recall`` …) are
    passed on as well; if the inner memory does not have one, the error says so. What only one kind
    of memory has, such as ``compact``, is available as ``memory.inner.compact``::

        class Dated(WrappingMemory):
            async def context(self):
                return [Message.system(f"Today is {date.today()}"), *await self.inner.context()]

    Args:
        inner: The wrapped memory. Its tools and its control are those of this memory.
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
        """The state of the run: that of the inner memory."""
        return self.inner.control

    @control.setter
    def control(self, control: Control) -> None:
        self.inner.control = control

    @property
    def session(self) -> str | None:
        """Which conversation the inner memory holds."""
        return self.inner.session

    @property
    def tenant(self) -> str | None:
        """Whose conversation it is."""
        return self.inner.tenant

    async def set_goal(self, goal: str | Message) -> None:
        """Start a turn."""
        await self.inner.set_goal(goal)

    async def begin(
        self, goal: Message, run_id: str, state: str, *, before: Sequence[Message] = ()
    ) -> None:
        """Start a turn and a run of it, with the methods that a subclass has replaced."""
        if is_replaced(self, "set_goal") or (before and is_replaced(self, "update")):
            await begin_by_set_goal(self, goal, Beginning(run_id, state, before))
        else:
            await self.inner.begin(goal, run_id, state, before=before)

    async def update(self, messages: list[Message]) -> None:
        """Add ``messages`` in this order, all or none."""
        await self.inner.update(messages)

    async def goal(self) -> list[Message]:
        """Return the current goal as a list of one message, or an empty list."""
        return await self.inner.goal()

    async def dump(self) -> list[Message]:
        """Return everything but the current goal, oldest first."""
        return await self.inner.dump()

    async def context(self) -> list[Message]:
        """Return what a model sees now."""
        return await self.inner.context()

    async def turn(self) -> list[Message]:
        """Return the current goal and what was recorded since."""
        return await self.inner.turn()

    async def _turn_notes(self) -> list[TurnNote]:
        """Return what the inner memory knows of the turns."""
        return await self.inner._turn_notes()

    async def _whole_session(self) -> list[Message]:
        """Return all messages of the inner memory."""
        return await self.inner._whole_session()

    async def open(self) -> None:
        """Open the inner memory."""
        await self.inner.open()

    async def snapshot(self) -> Snapshot:
        """Return all that the memory holds."""
        return await self.inner.snapshot()

    async def restore(self, snapshot: Snapshot) -> None:
        """Replace everything by the content of ``snapshot``."""
        await self.inner.restore(snapshot)

    @property
    def durable(self) -> bool:
        """Whether :meth:`checkpoint` does anything."""
        return self.inner.durable

    async def checkpoint(self) -> None:
        """Make what happened so far durable."""
        await self.inner.checkpoint()

    async def record(self, parts: Iterable[str] = ()) -> None:
        """Make durable what happened inside a step."""
        await self.inner.record(parts)

    async def rollback(self) -> None:
        """Drop what an interrupted step wrote after the last checkpoint."""
        await self.inner.rollback()

    async def drop_branches(self) -> None:
        """Remove what the inner memory keeps of branches of earlier steps and runs."""
        await self.inner.drop_branches()

    async def _new_nested(self, source: Memory, goal: Message, name: str) -> Memory:
        """Return a copy of ``source``, as the inner memory makes it."""
        return await self.inner._new_nested(source, goal, name)

    async def branch_counts(self) -> dict[str, Counts] | None:
        """Return what the inner memory has of the counts of branches."""
        return await self.inner.branch_counts()

    async def has_branches(self) -> bool:
        """Return whether branches of the current step are kept, here or by the inner memory."""
        return await super().has_branches() or await self.inner.has_branches()

    async def aclose(self) -> None:
        """Close the inner memory."""
        await self.inner.aclose()

    # Methods of the built-in memories

    def _with(self, method: str) -> StoredMemory:
        """Return the inner memory, if it has a method of the built-in memories.

        Raises:
            MemoryUseError: It does not.
        """
        if not hasattr(self.inner, method):
            raise MemoryUseError(
                f"{type(self).__name__} passes {method}() on to the memory that it wraps, and "
                f"{type(self.inner).__name__} does not have it: wrap a built-in memory, or write "
                "the method"
            )
        return cast("StoredMemory", self.inner)

    async def messages(self, last: int | None = None, **filters: Unpack[Filters]) -> list[Message]:
        """As :meth:`StoredMemory.messages`."""
        return await self._with("messages").messages(last, **filters)

    async def get(self, message_id: str) -> Message | None:
        """Return the message with this ID, or None."""
        return await self._with("get").get(message_id)

    async def count(self) -> int:
        """Return the number of messages that the memory holds."""
        return await self._with("count").count()

    async def steps(self) -> list[SavedStep]:
        """As :meth:`StoredMemory.steps`."""
        return await self._with("steps").steps()

    async def as_of(self, step: int | SavedStep) -> Self:
        """As :meth:`StoredMemory.as_of`: a copy of this memory over the inner one as it was."""
        copied = copy.copy(self)
        copied.inner = await self._with("as_of").as_of(step)
        return copied

    async def record_call(self, call: Traced) -> None:
        """As :meth:`StoredMemory.record_call`."""
        await self._with("record_call").record_call(call)

    async def model_calls(
        self, run_id: str | None = None, step: int | SavedStep | None = None
    ) -> list[ModelCallRecord]:
        """As :meth:`StoredMemory.model_calls`."""
        return await self._with("model_calls").model_calls(run_id, step)

    async def tool_results(self, run_id: str | None = None) -> list[ToolResultRecord]:
        """As :meth:`StoredMemory.tool_results`."""
        return await self._with("tool_results").tool_results(run_id)

    async def find_news(self, after: int = 0) -> tuple[list[Message], int]:
        """As :meth:`StoredMemory.find_news`."""
        return await self._with("find_news").find_news(after)

    async def tag(self, ids: Names, *tags: str) -> int:
        """As :meth:`StoredMemory.tag`."""
        return await self._with("tag").tag(ids, *tags)

    async def untag(self, ids: Names, *tags: str) -> int:
        """As :meth:`StoredMemory.untag`."""
        return await self._with("untag").untag(ids, *tags)

    async def pin(self, ids: Names) -> int:
        """As :meth:`StoredMemory.pin`."""
        return await self._with("pin").pin(ids)

    async def unpin(self, ids: Names) -> int:
        """As :meth:`StoredMemory.unpin`."""
        return await self._with("unpin").unpin(ids)

    async def delete(self, ids: Names) -> int:
        """As :meth:`StoredMemory.delete`."""
        return await self._with("delete").delete(ids)

    async def clear(self, *, keep_pinned: bool = False) -> int:
        """As :meth:`StoredMemory.clear`."""
        self._kept = None
        return await self._with("clear").clear(keep_pinned=keep_pinned)

    async def forget(self, ids: Names | None = None, **which: Unpack[ForgetOptions]) -> int:
        """As :meth:`StoredMemory.forget`."""
        from agent_brain.memories.branches.forgetting import forget_kept

        count = await self._with("forget").forget(ids, **which)
        return count + await forget_kept(self, ids, which)

    async def export(self, path: str | PathLike[str] | None = None) -> dict[str, Any]:
        """As :meth:`StoredMemory.export`: over any inner memory."""
        from agent_brain.memories.store.export import write_export

        return await write_export(await self.snapshot(), path)

    async def load(
        self,
        data: Loadable = None,
        *,
        path: str | PathLike[str] | None = None,
        text: str | None = None,
        merge: bool = False,
    ) -> int:
        """As :meth:`StoredMemory.load`, over any inner memory that can be restored."""
        from agent_brain.memories.store.export import load_into

        await load_into(self, data, path=path, text=text, merge=merge)
        return len(await self.goal()) + len(await self.dump())

    async def keep(self, name: str, value: JsonValue, *, erase: bool = False) -> None:
        """As :meth:`StoredMemory.keep`."""
        await self._with("keep").keep(name, value, erase=erase)

    async def kept(self, name: str) -> JsonValue:
        """As :meth:`StoredMemory.kept`."""
        return await self._with("kept").kept(name)

    async def reopen(self) -> None:
        """As :meth:`StoredMemory.reopen`."""
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
        **more: Any,
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
            **more,
        )

    @property
    def journal(self) -> Journal | None:
        """The journal of the inner memory, if there is one."""
        return getattr(self.inner, "journal", None)

    @property
    def readonly(self) -> bool:
        """Whether the inner memory never writes."""
        return bool(getattr(self.inner, "readonly", False))

    @property
    def shared(self) -> bool:
        """Whether other memories append to the session of the inner memory."""
        return bool(getattr(self.inner, "shared", False))


def offers(memory: Memory, method: str) -> bool:
    """Return whether a memory has a method, and does not only pass it on to one without."""
    while isinstance(memory, WrappingMemory):
        if getattr(type(memory), method, None) is not getattr(WrappingMemory, method, None):
            return True
        memory = memory.inner
    return hasattr(memory, method)
