"""The work of memories in a run: model calls and embeddings that the run makes and counts."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from agent_brain.memories.base import Memory
    from agent_brain.memories.embedders.base import Embedder

T = TypeVar("T")

EMBEDDING = "embedding"  # the purpose of every embedding


class RunWork(Protocol):
    """What a run offers to its memory: its hooks, limits, usage, trace and events.

    Attributes:
        listens: Whether somebody reads the events of the run.
        outer: The run in which it began, if there is one, until it ends.
        over: Whether it has ended.
        unyielded: The model calls that a state has made and not yielded yet.
    """

    listens: bool
    outer: RunWork | None
    over: bool
    unyielded: list[Any]

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


class Here(NamedTuple):
    """Where code works in a run.

    Attributes:
        run: The run.
        purpose: What model calls are for, while a memory works; None in a state, tool or function.
        in_step: Whether what is written is written with the step: in a state, not beside it.
    """

    run: RunWork
    purpose: str | None = None
    in_step: bool = False


here: ContextVar[Here | None] = ContextVar("agent_brain_run_work", default=None)
"""The innermost run that works here; None outside of one."""


async def work_here(run: RunWork | None, doing: Awaitable[T], *, in_step: bool = False) -> T:
    """Return the result of what a run does here.

    Args:
        run: The run; None if there is none.
        doing: What it does.
        in_step: Whether what it writes is written with its step.
    """
    if run is None:
        return await doing
    token = here.set(tuple.__new__(Here, (run, None, in_step)))  # half the time of Here(…)
    try:
        return await doing
    finally:
        here.reset(token)


def current_work() -> tuple[RunWork, str] | None:
    """Return the run for which a memory works now, and what for; None outside of one."""
    place = here.get()
    return None if place is None or place.purpose is None else (place.run, place.purpose)


def run_here() -> RunWork | None:
    """Return the innermost run that works here, if there is one."""
    place = here.get()
    return None if place is None else place.run


def _paying(used_by: RunWork | None) -> RunWork | None:
    """Return for which run a memory works here that is, or was, used by a run.

    It is the innermost of this run and the one that works here; not one that has ended, or runs
    elsewhere, unless nothing else works here.
    """
    working, inner = run_here(), used_by
    if working is None or used_by is None or used_by.over:
        return working or used_by
    while inner is not None and inner is not working:
        inner = inner.outer
    return working if inner is None else used_by


@contextmanager
def working_for(used_by: RunWork | None, purpose: str) -> Iterator[None]:
    """Inside, model calls and embeddings are work of a run; never hold it across a ``yield``.

    Args:
        used_by: The run that uses the memory, or used it last. If the state, tool or function of
            another one works here, and that did not begin around it, they are work of that one.
        purpose: What model calls are for.
    """
    run, place = _paying(used_by), here.get()
    if run is None:
        yield
        return
    token = here.set(Here(run, purpose, place is not None and place.in_step))
    try:
        yield
    finally:
        here.reset(token)


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
