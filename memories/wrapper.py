"""The base class for memories that wrap another one."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from functools import wraps
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    ParamSpec,
    Self,
    TypeVar,
    Unpack,
    cast,
)

from agent_brain.memories.base import Memory
from agent_brain.memories.control import Control
from agent_brain.memories.errors import MemoryDefinitionError, MemoryUseError
from agent_brain.memories.message import Message
from agent_brain.memories.options import RecallOptions
from agent_brain.memories.runs.run_memory import is_replaced
from agent_brain.memories.sessions.timeline import SavedStep
from agent_brain.memories.store.export import Exported
from agent_brain.memories.store.filters import ForgetOptions, Keep, Names
from agent_brain.memories.stored import StoredMemory
from agent_brain.memories.windowed import WindowedMemory

if TYPE_CHECKING:
    from agent_brain.memories.branches.copying import Copying
    from agent_brain.memories.journal.base import Journal
    from agent_brain.memories.recall.results import Recalled
    from agent_brain.memories.vector import VectorMemory


P = ParamSpec("P")
T = TypeVar("T")
MethodT = TypeVar("MethodT", bound=Callable[..., Coroutine[Any, Any, Any]])


def passed_on(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[WrappingMemory, P], Coroutine[Any, Any, T]]:
    """Return a method of a wrapper that calls the one of the memory inside it."""
    name = method.__name__

    @wraps(method, updated=())  # it is not abstract
    async def passing(memory: WrappingMemory, /, *args: P.args, **options: P.kwargs) -> T:
        inner: Any = memory._with(name)
        found: T = await getattr(inner, name)(*args, **options)
        return found

    return passing


def overriding(method: MethodT) -> MethodT:
    """Return the same for a method that wrappers inherit: with its own type."""
    return cast("MethodT", passed_on(method))


class WrappingMemory(Exported):
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

    begins_with_goal = True  # if the inner memory does

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

    set_goal = overriding(Memory.set_goal)
    update = overriding(Memory.update)
    goal = overriding(Memory.goal)
    dump = overriding(Memory.dump)
    context = overriding(Memory.context)
    turn = overriding(Memory.turn)
    _turn_notes = overriding(Memory._turn_notes)
    _whole_session = overriding(Memory._whole_session)
    open = overriding(Memory.open)
    snapshot = overriding(Memory.snapshot)
    restore = overriding(Memory.restore)
    checkpoint = overriding(Memory.checkpoint)
    record = overriding(Memory.record)
    rollback = overriding(Memory.rollback)
    drop_branches = overriding(Memory.drop_branches)
    branch_counts = overriding(Memory.branch_counts)
    aclose = overriding(Memory.aclose)
    _new_nested = overriding(Memory._new_nested)

    async def begin(
        self, goal: Message, run_id: str, state: str, *, before: Sequence[Message] = ()
    ) -> None:
        """Start a turn and a run of it, with the methods that a subclass has replaced."""
        kind = type(self)
        own = is_replaced(kind, "set_goal", kind.set_goal, "begin")
        if own or (before and is_replaced(kind, "update", kind.update, "begin")):
            await super().begin(goal, run_id, state, before=before)
        else:
            await self.inner.begin(goal, run_id, state, before=before)

    @property
    def durable(self) -> bool:
        """Whether :meth:`checkpoint` does anything."""
        return self.inner.durable

    async def _checkpoint_later(self) -> None:
        """Make a step durable with what is written next."""
        if is_replaced(type(self), "checkpoint", type(self).checkpoint, "_checkpoint_later"):
            await self.checkpoint()
        else:
            await self.inner._checkpoint_later()

    async def fork(self) -> Self:
        """Return an independent copy of the inner memory, and of what this one has beside it."""
        from agent_brain.memories.branches.copying import Fork, fork_of

        return cast("Self", await fork_of(self, Fork()))

    async def _copied(self, copying: Copying) -> Memory:
        """Return a copy of this memory over a copy of the inner one."""
        from agent_brain.memories.branches.copying import copy_of

        inner = await copy_of(self.inner, copying)
        copied = await self._over(inner)
        copied.resumed, copied.lasting = inner.resumed, inner.lasting
        return copied

    async def _over(self, inner: Memory) -> Memory:
        """Return a copy of this memory over another one, which is a copy of the inner one."""
        tools = self.available_tools, inner.available_tools
        return self._deep_copy((self.inner, inner), tools)

    async def has_branches(self) -> bool:
        """Return whether branches of the current step are kept, here or by the inner memory."""
        return await super().has_branches() or await self.inner.has_branches()

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

    messages = passed_on(StoredMemory.messages)
    get = passed_on(StoredMemory.get)
    count = passed_on(StoredMemory.count)
    find_news = passed_on(StoredMemory.find_news)
    history = passed_on(WindowedMemory.history)
    tag = passed_on(StoredMemory.tag)
    untag = passed_on(StoredMemory.untag)
    pin = passed_on(StoredMemory.pin)
    unpin = passed_on(StoredMemory.unpin)
    delete = passed_on(StoredMemory.delete)
    keep = passed_on(StoredMemory.keep)
    kept = passed_on(StoredMemory.kept)
    reopen = passed_on(StoredMemory.reopen)
    steps = passed_on(StoredMemory.steps)
    record_call = passed_on(StoredMemory.record_call)
    model_calls = passed_on(StoredMemory.model_calls)
    recorded_calls = passed_on(StoredMemory.recorded_calls)

    async def as_of(self, step: int | SavedStep) -> Self:
        """As :meth:`StoredMemory.as_of`: a copy of this memory over the inner one as it was."""
        from agent_brain.memories.branches.copying import AsOf

        return cast("Self", await self._copied(AsOf(step)))

    async def clear(self, *, keep: Keep | None = None) -> int:
        """As :meth:`StoredMemory.clear`."""
        count = await self._with("clear").clear(keep=keep)
        self._kept = None
        return count

    async def forget(self, ids: Names | None = None, **which: Unpack[ForgetOptions]) -> int:
        """As :meth:`StoredMemory.forget`."""
        from agent_brain.memories.branches.forgetting import forget_kept

        count = await self._with("forget").forget(ids, **which)
        return count + await forget_kept(self, ids, which)

    async def recall(
        self, query: str, k: int = 10, **options: Unpack[RecallOptions]
    ) -> list[Recalled]:
        """As :meth:`VectorMemory.recall`."""
        return await cast("VectorMemory", self._with("recall")).recall(query, k, **options)

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
