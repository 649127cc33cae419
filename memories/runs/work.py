"""The work of memories in a run: model calls and embeddings that the run makes and counts."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

from agent_brain.tools.context import call_here

if TYPE_CHECKING:
    from agent_brain.memories.base import Memory
    from agent_brain.memories.embedders.base import Embedder

EMBEDDING = "embedding"  # the purpose of every embedding


class RunWork(Protocol):
    """What a run offers to its memory: its hooks, limits, usage, trace and events.

    Attributes:
        listens: Whether somebody reads the events of the run.
    """

    listens: bool

    async def embed(self, embedder: Embedder, texts: Sequence[str]) -> Any:
        """Return one vector for each text.

        Raises:
            Exception: The embedder fails, a hook refuses the texts, or a limit is reached.
        """
        ...

    def model_call(self, call: Any, purpose: str) -> AsyncGenerator[Any, None]:
        """Return the events of a :class:`~agent_brain.states.ModelCall`.

        Args:
            call: The call.
            purpose: What it is for, such as ``"summary"``.
        """
        ...

    def report(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Yield an event of the run; see :meth:`Memory.report`."""
        ...


_current: ContextVar[tuple[RunWork, str] | None] = ContextVar("agent_brain_run_work", default=None)
in_step: ContextVar[RunWork | None] = ContextVar("agent_brain_in_step", default=None)
"""The run of the state that works here: what it writes is written with its step."""


async def with_step(work: RunWork | None, writing: Awaitable[object]) -> None:
    """Await what writes to the memory of a run: it is written with its step."""
    working = in_step.set(work)
    try:
        await writing
    finally:
        in_step.reset(working)


def _work_here() -> RunWork | None:
    """Return the run whose state or tool call works here; None if a memory does, or nothing."""
    here, call = in_step.get(), call_here()
    if here is None and call is not None:
        here = getattr(call.memory, "run_work", None)
    return here if _current.get() is None else None


def run_here() -> RunWork | None:
    """Return the run for which a memory, a state or a tool call works here; None outside of one."""
    work = _current.get()
    return _work_here() if work is None else work[0]


def current_work() -> tuple[RunWork, str] | None:
    """Return the run for which a memory works now, and what for; None outside of one."""
    return _current.get()


@contextmanager
def working_for(work: RunWork | None, purpose: str) -> Iterator[None]:
    """Inside, model calls and embeddings are work of a run; never hold it across a ``yield``.

    Args:
        work: The run that uses the memory. Without one it is the run whose state or tool call works
            here, if any.
        purpose: What model calls are for.
    """
    work = work or _work_here()
    if work is None:
        yield
        return
    token = _current.set((work, purpose))
    try:
        yield
    finally:
        _current.reset(token)


def family(memory: Memory) -> list[Memory]:
    """Return a memory and all that it wraps."""
    found = [memory]
    for each in found:  # which grows meanwhile
        found += each.wrapped
    return found


def set_run_work(memories: Iterable[Memory], work: RunWork | None) -> None:
    """Let memories, such as the :func:`family` of one, work for a run."""
    for memory in memories:
        memory.run_work = work
        if work is not None and work.listens:
            memory._begin_reporting()
