"""The built-in memories: their names, and the types of their options."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime, timedelta
    from os import PathLike

    from pydantic import BaseModel

    from agent_brain.memories.base import Memory
    from agent_brain.memories.embedders.function import EmbedderLike
    from agent_brain.memories.message import Message
    from agent_brain.memories.recall.results import Rerank
    from agent_brain.memories.recall.search import Scope
    from agent_brain.memories.store.filters import Names, Where
    from agent_brain.memories.store.options import JournalLike
    from agent_brain.memories.store.repeats import Window
    from agent_brain.memories.store.session import History
    from agent_brain.memories.stored import StoredMemory
    from agent_brain.memories.views.base import View
    from agent_brain.memories.views.summary_writer import Summarize
    from agent_brain.memories.views.tokens import Counter
    from agent_brain.memories.windowed import OnEvict, WindowedMemory

BUILT_IN = {  # in the order of the help of --memory, which reads them here without loading memories
    "messages": "agent_brain.memories.messages:MessagesMemory",
    "auto": "agent_brain.memories.auto:AutoMemory",
    "windowed": "agent_brain.memories.windowed:WindowedMemory",
    "vector": "agent_brain.memories.vector:VectorMemory",
    "summary": "agent_brain.memories.summary:SummaryMemory",
    "layered": "agent_brain.memories.layered:make_layered",
    "todo": "agent_brain.memories.todo:make_todo",
}


class SessionOptions(TypedDict, total=False):
    """Where a memory is stored: options of :class:`StoredMemory`."""

    journal: JournalLike | None
    session: str
    tenant: str | None
    ttl: timedelta | float | None
    clock: Callable[[], datetime]
    readonly: bool
    history: History | None
    lease_wait: float
    dedupe: Window | None


class StoreOptions(SessionOptions, total=False):
    """All options of :class:`StoredMemory` but its views, to be passed on by subclasses."""

    shared: bool


class RecallOptions(TypedDict, total=False):
    """The options of :meth:`VectorMemory.recall`."""

    where: Where | None
    since: datetime | None
    until: datetime | None
    min_score: float | None
    scope: Scope
    tool_results: bool


class MemoryOptions(StoreOptions, total=False):
    """The options of all built-in memories; see their classes for the meaning.

    Whether a memory takes an option is checked when it is created.
    """

    client: Any
    counter: Counter
    context_window: int | str | None
    embedder: EmbedderLike
    form: type[BaseModel] | None
    inner: Memory | str
    k: int
    keep: int | None
    keeps: Names | Callable[[Message], bool] | None
    long: StoredMemory | str
    max_messages: int | None
    max_share: float | None
    max_summary_tokens: int
    max_tokens: int | None
    min_score: float | None
    on_evict: OnEvict | None
    path: str | PathLike[str] | None
    recall_tokens: int
    recalled_tokens: int
    recent: int
    rerank: Rerank | None
    short: WindowedMemory | None
    summarize: Summarize | None
    tool_results: bool
    url: str | None
    views: Iterable[View]


def refuse_others(kind: type, options: Iterable[str], known: type = StoreOptions) -> None:
    """Refuse options that a memory does not take.

    Args:
        kind: The class of the memory.
        options: The names of the options.
        known: A TypedDict of those that it takes.

    Raises:
        TypeError: It does not take one of them.
    """
    for name in options:
        if name not in known.__annotations__:
            raise TypeError(f"{kind.__name__}() got an unexpected keyword argument {name!r}")
