"""Branches that run at once, their events merged as they come."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Literal

import anyio
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectSendStream

from agent_brain.nets.delegate import Branch
from agent_brain.states.events import Event
from agent_brain.states.streams import closing

Streams = Sequence[tuple[Branch, AsyncIterator[Event]]]


async def run_at_once(
    streams: Streams,
    *,
    on_error: Literal["cancel", "report"],
    until: Literal["all", "first"] = "all",
    group: TaskGroup | None,
) -> AsyncGenerator[Event, None]:
    """Merge the events of all branches.

    Args:
        streams: Branches and their events.
        on_error: ``"cancel"`` cancels the others when one fails and raises its error;
            ``"report"`` lets them go on.
        until: ``"first"`` cancels the others when one has come to its end.
        group: A task group that outlives this generator: events then come live, each branch
            waiting until its event was taken. Without one, nothing may run between two events, and
            they all come when the last branch has ended.
    """
    if group is None:
        send, receive = anyio.create_memory_object_stream[Event](math.inf)
        with receive:
            await _run_all(streams, send, on_error, until)
            while receive.statistics().current_buffer_used:
                yield receive.receive_nowait()
    else:
        async with closing(_live(streams, on_error, until, group)) as events:
            async for event in events:
                yield event
    failed = [branch.error for branch, _ in streams if branch.error is not None]
    if failed and on_error == "cancel":
        raise failed[0]


async def _live(
    streams: Streams,
    on_error: Literal["cancel", "report"],
    until: Literal["all", "first"],
    group: TaskGroup,
) -> AsyncGenerator[Event, None]:
    send, receive = anyio.create_memory_object_stream[Event](0)
    scope, ended = anyio.CancelScope(), anyio.Event()

    async def work() -> None:
        try:
            with scope:
                await _run_all(streams, send, on_error, until)
        finally:
            ended.set()

    group.start_soon(work)
    try:
        with receive:
            async for event in receive:
                yield event
    finally:
        scope.cancel()
        with anyio.CancelScope(shield=True):
            await ended.wait()


async def _run_all(
    streams: Streams,
    send: MemoryObjectSendStream[Event],
    on_error: Literal["cancel", "report"],
    until: Literal["all", "first"],
) -> None:
    async def run_one(branch: Branch, stream: AsyncIterator[Event]) -> None:
        try:
            async with closing(stream) as events:
                async for event in events:
                    await send.send(event)
        except Exception as error:  # kept on the branch: the state, or the caller, is told
            branch.error = error
            if on_error == "cancel":
                tasks.cancel_scope.cancel()
        if until == "first" and branch.ended:
            tasks.cancel_scope.cancel()

    with send:
        async with anyio.create_task_group() as tasks:
            for branch, stream in streams:
                tasks.start_soon(run_one, branch, stream)
