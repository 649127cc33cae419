"""A to-do list that the model keeps with tools, always in view."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from pydantic import BaseModel, JsonValue

from agent_brain.memories.base import Memory
from agent_brain.memories.errors import MemoryUseError
from agent_brain.memories.message import Message
from agent_brain.memories.record_memory import RecordMemory
from agent_brain.memories.registry import create_memory
from agent_brain.memories.snapshot import Snapshot
from agent_brain.memories.turns import Turns
from agent_brain.memories.wrapping import WrappingMemory
from agent_brain.tools.errors import ToolError
from agent_brain.tools.function import tool
from agent_brain.tools.toolset import ToolLike

KEPT_AS = "todo"  # the name under which it is kept
INTRODUCTION = "To-do list; keep it up to date with add_todo, complete_todo and revise_todo:"


class Todo(BaseModel, frozen=True):
    """One item of the list.

    Attributes:
        number: What it is called by; never given twice.
        text: What is to be done.
        done: It has been.
    """

    number: int
    text: str
    done: bool = False


class TodoMemory(WrappingMemory):
    """A to-do list over any memory.

    The model gets the tools ``add_todo``, ``complete_todo`` and ``revise_todo``; the list stands in
    the context as a system message just before the goal, whatever else is in view. It lasts over
    the turns of a session, is part of snapshots, and is kept with the record where there is a
    journal.

    Args:
        inner: The memory that does the rest; None for a :class:`MessagesMemory`.
    """

    def __init__(self, inner: Memory | None = None) -> None:
        super().__init__(create_memory("messages") if inner is None else inner)
        self._own: list[Todo] = []  # where the inner memory cannot keep it
        self._lock = Turns()  # the model may call several tools at once
        self._tools = [tool(self.add_todo), tool(self.complete_todo), tool(self.revise_todo)]
        self.add_tools(self._tools)

    async def todos(self) -> list[Todo]:
        """The list, in the order in which it was made."""
        if not isinstance(self.inner, RecordMemory):
            return list(self._own)
        return _read(await self.inner.kept(KEPT_AS))

    async def add_todo(self, text: str) -> str:
        """Add an item to the to-do list.

        Args:
            text: What is to be done.
        """
        text = _checked(text)
        async with self._lock:
            todos = await self.todos()
            number = max((todo.number for todo in todos), default=0) + 1
            return await self._write([*todos, Todo(number=number, text=text)])

    async def complete_todo(self, number: int) -> str:
        """Mark an item of the to-do list as done.

        Args:
            number: The item's number.
        """
        return await self._replace(number, done=True)

    async def revise_todo(self, number: int, text: str, done: bool = False) -> str:  # noqa: FBT001, FBT002
        """Change an item of the to-do list.

        Args:
            number: The item's number.
            text: What is to be done instead.
            done: Whether it is done.
        """
        return await self._replace(number, text=_checked(text), done=done)

    async def _replace(self, number: int, **changes: Any) -> str:
        async with self._lock:
            todos = await self.todos()
            if all(todo.number != number for todo in todos):
                numbers = ", ".join(str(todo.number) for todo in todos) or "none"
                raise ToolError(f"The to-do list has no item {number}; its items are: {numbers}")
            return await self._write(
                [t.model_copy(update=changes) if t.number == number else t for t in todos]
            )

    async def _write(self, todos: list[Todo]) -> str:
        if isinstance(self.inner, RecordMemory):
            await self.inner.keep(KEPT_AS, _plain(todos))
        else:
            self._own = todos
        return render(todos)

    async def context(self) -> list[Message]:
        """What the inner memory shows, with the list just before the goal."""
        context = await self.inner.context()
        todos = await self.todos()
        if not todos:
            return context
        goal = {message.id for message in await self.inner.goal()}
        at = next((i for i, message in enumerate(context) if message.id in goal), 0)
        shown = Message.system(render(todos), id="todo-list", cause_by=type(self).__name__)
        return [*context[:at], shown, *context[at:]]

    async def snapshot(self) -> Snapshot:
        """All that the inner memory holds, and the list."""
        snapshot = await self.inner.snapshot()
        snapshot.views[KEPT_AS] = _plain(await self.todos())
        return snapshot

    async def restore(self, snapshot: Snapshot) -> None:
        """Hold what ``snapshot`` holds, the list included."""
        todos = _read(snapshot.views.get(KEPT_AS))
        await self.inner.restore(snapshot)
        await self._write(todos)

    async def fork(self) -> TodoMemory:
        """An independent copy, of the inner memory and the list."""
        inner = await self.inner.fork()
        for mine in self._tools:
            inner.available_tools.pop(mine.name, None)
        copied = type(self)(inner)
        await copied._write(await self.todos())
        return copied


def render(todos: Iterable[Todo]) -> str:
    """The list as a model reads it."""
    lines = [f"{todo.number}. [{'x' if todo.done else ' '}] {todo.text}" for todo in todos]
    return "\n".join([INTRODUCTION, *lines])


def make_todo(
    tools: Iterable[ToolLike] = (),
    *,
    inner: Memory | str = "messages",
    **options: Any,
) -> TodoMemory:
    """A to-do memory from options alone, for ``Brain(memory="todo")``.

    Args:
        tools: What the agent may call.
        inner: The memory that does the rest, or the name of one.
        **options: For the inner memory, such as ``journal``.
    """
    if isinstance(inner, str):
        return TodoMemory(create_memory(inner, tools, **options))
    if options:
        raise MemoryUseError("Options go with an inner memory by name, not with an object")
    inner.add_tools(tools)
    return TodoMemory(inner)


def _checked(text: str) -> str:
    if not text.strip():
        raise ToolError("An item of the to-do list needs a text")
    return " ".join(text.split())


def _plain(todos: Iterable[Todo]) -> JsonValue:
    return [todo.model_dump(mode="json") for todo in todos]


def _read(value: JsonValue) -> list[Todo]:
    return [Todo.model_validate(item) for item in cast("list[JsonValue]", value or [])]
