"""A memory with a to-do list that the model edits with tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import cache, partial
from typing import Any, Unpack

from pydantic import AwareDatetime, BaseModel, Field, JsonValue, ValidationError

from agent_brain.common.text import folded, has_folded
from agent_brain.memories.base import Memory
from agent_brain.memories.branches.forgetting import stored_in
from agent_brain.memories.errors import MemoryDefinitionError, MemoryUseError, SnapshotError
from agent_brain.memories.message import Message
from agent_brain.memories.registry import create_memory
from agent_brain.memories.runs.work import family
from agent_brain.memories.store import removal
from agent_brain.memories.store.expiry import LONG_AGO, utc_now
from agent_brain.memories.store.filters import ForgetOptions, Keep, Names, forgettable
from agent_brain.memories.store.lock import Lock
from agent_brain.memories.store.snapshot import Snapshot, check_snapshot
from agent_brain.memories.views.groups import arranged
from agent_brain.memories.wrapper import WrappingMemory, offers
from agent_brain.tools.errors import ToolError
from agent_brain.tools.function import FunctionTool, tool
from agent_brain.tools.toolset import ToolLike

KEPT_AS = "todo"  # the name of the stored value
INTRODUCTION = (
    "Your to-do list, a record and not a request of the user; keep it up to date with add_todo, "
    "complete_todo, revise_todo and remove_todo:"
)
EMPTY = "The to-do list is empty."


class Todo(BaseModel, frozen=True):
    """One item of the list.

    Attributes:
        number: Its number; never reused.
        text: What is to be done.
        done: Whether it has been done.
        at: When it was written or last revised.
    """

    number: int
    text: str
    done: bool = False
    at: AwareDatetime = Field(default_factory=utc_now)


class _List(BaseModel, frozen=True):
    """The list as it is stored; ``shown`` is its text for the model, empty without items."""

    items: list[Todo] = []
    next: int = 1
    shown: str = ""


class TodoMemory(WrappingMemory):
    """A to-do list over any memory.

    The model gets the tools ``add_todo``, ``complete_todo``, ``revise_todo`` and ``remove_todo``;
    the list is always in the context, as a user message just before the goal that says that it is
    a record, and counts in the token limit of the inner memory. It lasts over the turns of a
    session and is part of snapshots, exports and the journal. :meth:`clear` empties it, and
    :meth:`forget` removes the items that may quote what is forgotten::

        memory = TodoMemory(WindowedMemory(max_tokens=8_000))

    Args:
        inner: The wrapped memory; None for a :class:`MessagesMemory`.
    """

    def __init__(self, inner: Memory | None = None) -> None:
        super().__init__(create_memory("messages") if inner is None else inner)
        if any(isinstance(memory, TodoMemory) for memory in family(self.inner)):
            raise MemoryDefinitionError(f"{inner!r} has a to-do list already: use it as it is")
        self._own = _List()  # if the inner memory cannot store it
        self._lock = Lock()  # the model may call several tools at once
        self._tools = [edit.over(getattr(self, edit.name)) for edit in _edits(type(self))]
        for edit in self._tools:
            edit.always_offered = True
        self.add_tools(self._tools)

    async def todos(self) -> list[Todo]:
        """Return the items in the order of their creation."""
        return list((await self._list()).items)

    async def _list(self) -> _List:
        return _read(await self.kept(KEPT_AS)) if self._keeps else self._own

    @property
    def _keeps(self) -> bool:
        return offers(self.inner, "keep")

    async def add_todo(self, text: str) -> str:
        """Add an item to the to-do list.

        Args:
            text: What is to be done.
        """
        text = _checked(text)
        async with self._lock:
            todos = await self._list()
            added = Todo(number=todos.next, text=text)
            return await self._write([*todos.items, added], todos.next + 1)

    async def complete_todo(self, number: int) -> str:
        """Mark an item of the to-do list as done.

        Args:
            number: The item's number.
        """
        return await self._replace(number, lambda todo: [todo.model_copy(update={"done": True})])

    async def revise_todo(self, number: int, text: str, done: bool = False) -> str:  # noqa: FBT001, FBT002
        """Change an item of the to-do list.

        Args:
            number: The item's number.
            text: What is to be done instead.
            done: Whether it is done.
        """
        revised = Todo(number=number, text=_checked(text), done=done)
        return await self._replace(number, lambda _: [revised])

    async def remove_todo(self, number: int) -> str:
        """Take an item out of the to-do list.

        Args:
            number: The item's number.
        """
        return await self._replace(number, lambda _: [])

    async def _replace(self, number: int, by: Callable[[Todo], list[Todo]]) -> str:
        async with self._lock:
            todos = await self._list()
            if all(todo.number != number for todo in todos.items):
                numbers = ", ".join(str(todo.number) for todo in todos.items) or "none"
                raise ToolError(f"The to-do list has no item {number}; its items are: {numbers}")
            items = [new for t in todos.items for new in (by(t) if t.number == number else [t])]
            return await self._write(items, todos.next)

    async def _write(self, items: list[Todo], number: int, *, erase: bool = False) -> str:
        shown = render(items) if items else ""
        todos = _List(items=items, next=number, shown=shown)
        if self._keeps:
            await self.keep(KEPT_AS, todos.model_dump(mode="json"), erase=erase)
        else:
            self._own = todos
        return shown or EMPTY

    async def context(self) -> list[Message]:
        """Return what the inner memory shows, with the list just before the goal."""
        context = await self.inner.context()
        shown = (await self._list()).shown
        if not shown:
            return context
        goal = {message.id for message in await self.inner.goal()}
        at = next((i for i, message in enumerate(context) if message.id in goal), 0)
        message = Message.user(shown, id="todo-list", cause_by=type(self).__name__, pinned=True)
        return [*context[:at], message, *context[at:]]

    async def clear(self, *, keep: Keep | None = None) -> int:
        """As :meth:`StoredMemory.clear`; the list is emptied too."""
        count = await super().clear(keep=keep)
        self._own = _List()
        return count

    async def forget(self, ids: Names | None = None, **which: Unpack[ForgetOptions]) -> int:
        """As :meth:`StoredMemory.forget`, in the list too.

        Items that contain ``text`` are removed, and those written since the oldest of the forgotten
        messages, as they may quote it.
        """
        stored = [*stored_in(self)]
        choice = forgettable(ids, which, stored[0].store.clock() if stored else utc_now())
        held = {message.id: message for message in await self.messages()}
        for memory in stored:
            await memory.open()
            held |= await removal.everything(memory)
        arrived = {message.id: message for message in arranged(held.values())}
        going, _ = await removal.choose(arrived, choice)
        since = min((held[i].created_at for i in going), default=None)
        text = "" if ids is not None else which.get("text") or ""
        await self._forget_items(since, folded(text))  # first: a crash must not leave them
        count = await super().forget(ids, **which)  # erases the list as it was too
        if count > len(going):
            await self._forget_items(LONG_AGO, "", erase=True)
        return count

    async def _forget_items(
        self, since: datetime | None, text: str, *, erase: bool = False
    ) -> None:
        async with self._lock:
            todos = await self._list()
            staying = [
                todo
                for todo in todos.items
                if (since is None or todo.at < since) and not (text and has_folded(todo.text, text))
            ]
            if len(staying) < len(todos.items):
                await self._write(staying, todos.next, erase=erase)

    async def snapshot(self) -> Snapshot:
        """Return all that the inner memory holds, and the list."""
        snapshot = await self.inner.snapshot()
        snapshot.views[KEPT_AS] = (await self._list()).model_dump(mode="json")
        return snapshot

    async def restore(self, snapshot: Snapshot) -> None:
        """Replace everything by the content of ``snapshot``, the list included."""
        check_snapshot(snapshot)
        todos = _read(snapshot.views.get(KEPT_AS))
        await self.inner.restore(snapshot)
        await self._write(todos.items, todos.next)

    async def _over(self, inner: Memory) -> TodoMemory:
        """Return a copy of this memory over a copy of the inner one."""
        for mine in self._tools:
            inner.available_tools.pop(mine.name, None)
        copied = type(self)(inner)
        if not inner.durable:  # else the inner memory has the list
            todos = await self._list()
            await copied._write(todos.items, todos.next)
        return copied


@cache
def _edits(kind: type[TodoMemory]) -> list[FunctionTool]:
    """Return the tools of a list, of no memory yet: their signatures are read once."""
    names = ("add_todo", "complete_todo", "revise_todo", "remove_todo")
    return [tool(name=name)(partial(getattr(kind, name), None)) for name in names]


def render(todos: Iterable[Todo]) -> str:
    """Return the list as a model reads it."""
    lines = [f"{todo.number}. [{'x' if todo.done else ' '}] {todo.text}" for todo in todos]
    return "\n".join([INTRODUCTION, *lines])


def make_todo(
    tools: Iterable[ToolLike] = (),
    *,
    inner: Memory | str = "messages",
    **options: Any,
) -> TodoMemory:
    """Create a to-do memory from options, for ``Brain(memory="todo")``.

    Args:
        tools: What the agent may call.
        inner: The wrapped memory, or the name of one.
        **options: For the inner memory, such as ``journal``.
    """
    if isinstance(inner, str):
        return TodoMemory(create_memory(inner, tools, **options))
    if options:
        raise MemoryUseError("Options go with an inner memory by name, not with an object")
    inner.add_tools(tools)
    return TodoMemory(inner)


def _checked(text: str) -> str:
    if not isinstance(text, str) or not text.strip():
        raise ToolError("An item of the to-do list needs a text")
    return " ".join(text.split())


def _read(value: JsonValue) -> _List:
    """Return the stored list."""
    try:
        return _List.model_validate(value or {})
    except ValidationError as error:
        raise SnapshotError(f"Not a to-do list: {error}") from error
