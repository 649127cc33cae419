"""Branches that run at once, their events merged as they come."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal, Protocol

import anyio

from agent_brain.states.aclosing import closing
from agent_brain.states.background import BackgroundTask
from agent_brain.states.events import Event

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectSendStream


class Source(Protocol):
    """What a stream belongs to: a branch, or the state that has delegated."""

    error: Exception | None

    @property
    def ended(self) -> bool:
        """Whether it has come to an end of its own."""
        ...


Streams = Sequence[tuple[Source, AsyncIterator[Event]]]


async def run_at_once(
    streams: Streams,
    *,
    on_error: Literal["cancel", "report"],
    until: Literal["all", "first"] = "all",
) -> AsyncGenerator[Event, None]:
    """Merge the events of all branches; each branch waits until its event was taken.

    Args:
        streams: Branches and their events.
        on_error: ``"cancel"`` cancels the others when one fails and raises its error;
            ``"report"`` lets them go on.
        until: ``"first"`` cancels the others when one has come to its end.
    """
    send, receive = anyio.create_memory_object_stream[Event](0)
    task = BackgroundTask(partial(_run_all, streams, send, on_error, until))
    try:
        with receive:
            async for event in receive:
                yield event
    finally:
        await task.aclose()
    if task.error is not None:
        raise task.error
    failed = [branch.error for branch, _ in streams if branch.error is not None]
    if failed and on_error == "cancel":
        raise failed[0]


async def _run_all(
    streams: Streams,
    send: MemoryObjectSendStream[Event],
    on_error: Literal["cancel", "report"],
    until: Literal["all", "first"],
) -> None:
    async def run_one(branch: Source, stream: AsyncIterator[Event]) -> None:
        try:
            async with closing(stream) as events:
                async for event in events:
                    await send.send(event)
        except Exception as error:  # kept on the branch, for the state or for the caller
            branch.error = error
            if on_error == "cancel":
                tasks.cancel_scope.cancel()
        if until == "first" and branch.ended:
            tasks.cancel_scope.cancel()

    with send:
        async with anyio.create_task_group() as tasks:
            for branch, stream in streams:
                tasks.start_soon(run_one, branch, stream)
