"""The types of the options of the built-in memories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime, timedelta
    from os import PathLike

    from pydantic import BaseModel

    from agent_brain.memories.base import Memory
    from agent_brain.memories.embedders.function import EmbedderLike
    from agent_brain.memories.store.options import JournalLike
    from agent_brain.memories.store.session import History
    from agent_brain.memories.stored import StoredMemory
    from agent_brain.memories.views.base import View
    from agent_brain.memories.views.summary_writer import Summarize
    from agent_brain.memories.views.tokens import Counter
    from agent_brain.memories.windowed import OnEvict, WindowedMemory


class MemoryOptions(TypedDict, total=False):
    """The options of all built-in memories; see their classes for the meaning.

    Whether a memory takes an option is checked when it is created.
    """

    client: Any
    clock: Callable[[], datetime]
    counter: Counter
    context_window: int | str | None
    embedder: EmbedderLike
    form: type[BaseModel] | None
    history: History | None
    inner: Memory | str
    journal: JournalLike | None
    k: int
    keep: int | None
    lease_wait: float
    long: StoredMemory | str
    max_messages: int | None
    max_share: float | None
    max_summary_tokens: int
    max_tokens: int | None
    min_score: float | None
    on_evict: OnEvict | None
    path: str | PathLike[str] | None
    readonly: bool
    recall_tokens: int
    recalled_tokens: int
    recent: int
    session: str
    shared: bool
    short: WindowedMemory | None
    summarize: Summarize | None
    tenant: str | None
    tool_results: bool
    ttl: timedelta | float | None
    url: str | None
    views: Iterable[View]
