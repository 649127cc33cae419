"""Run inner nets concurrently and merge their events."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

import anyio

from agent_brain.common.aio import CLEANUP_SECONDS
from agent_brain.common.errors import FinalError
from agent_brain.common.pool import work_off
from agent_brain.memories.errors import STORE_ERRORS
from agent_brain.nets.delegation import Branch, Delegate
from agent_brain.states.concurrency import BackgroundTask
from agent_brain.states.events import Event
from agent_brain.states.work import close_stream
from agent_brain.tools.toolset import offered

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectSendStream

    from agent_brain.states.model_trace import CallTrace


class Source(Protocol):
    """The owner of a stream: a branch, or the delegating state."""

    error: Exception | None

    @property
    def completed(self) -> bool:
        """Whether it ended by itself."""
        ...


Streams = Sequence[tuple[Source, AsyncIterator[Event]]]


class _Beside:
    """The owner of the events of the delegating state itself."""

    error: Exception | None = None
    completed = False


async def run_branches(
    order: Delegate,
    run: Callable[[Branch], AsyncGenerator[Event, None]],
    limit: Callable[[], str | None],
    trace: CallTrace | None,
) -> AsyncGenerator[Event, None]:
    """Yield the events of every branch, and those of ``order.beside``.

    Args:
        order: The branches.
        run: Runs one branch.
        limit: Returns the limit that is reached, if any: no branch begins then.
        trace: Has the tools of the nets, if the run has one.

    Raises:
        Exception: The error of a branch, if ``on_error`` is ``"cancel"`` or the error is final.
    """
    streams: list[tuple[Source, AsyncIterator[Event]]] = [
        (branch, _run_branch(order, branch, run, limit, trace)) for branch in order.branches
    ]
    beside = _Beside()
    if order.beside is not None:
        streams.insert(0, (beside, order.beside))
    events = streams[0][1] if len(streams) == 1 else run_at_once(streams, order)
    try:
        async for event in events:
            yield event
    finally:
        await close_stream(events)
    if beside.error is not None:
        raise beside.error


async def _run_branch(
    order: Delegate,
    branch: Branch,
    run: Callable[[Branch], AsyncGenerator[Event, None]],
    limit: Callable[[], str | None],
    trace: CallTrace | None,
) -> AsyncGenerator[Event, None]:
    events: AsyncGenerator[Event, None] | None = None
    try:
        if branch.prepare is not None:
            if (reached := limit()) is not None:
                branch.stop_reason = reached
                return
            branch.memory = await branch.prepare()
        events, tools = run(branch), branch.net.tools
        own = tools if trace is None or not tools else trace.tools(tools)
        with offered(branch.memory.available_tools, own):
            async for event in events:
                yield event
    except Exception as error:
        branch.error = branch.error or error
        if isinstance(error, STORE_ERRORS):  # before the memories of those beside it are closed
            branch.memory.note_store_failure(error)
        if _ends_all(order, error):
            raise
    finally:
        await close_stream(events)
        if branch.prepare is not None and events is not None:
            with anyio.move_on_after(CLEANUP_SECONDS, shield=True):
                await branch.memory.aclose()
    if order.on_end is not None:
        for event in await order.on_end(branch):
            yield event


async def run_at_once(streams: Streams, order: Delegate) -> AsyncGenerator[Event, None]:
    """Merge the events of all branches; each branch waits until its event was read.

    Args:
        streams: Branches and their events.
        order: What to do when one fails or ends, and how many run at once.
    """
    send, receive = anyio.create_memory_object_stream[Event](0)
    failed: list[Exception] = []  # in order of time
    task = BackgroundTask(partial(_run_all, streams, send, order, failed))
    with receive:  # closed after the task, which sends to it
        try:
            async for event in receive:
                yield event
        except GeneratorExit:
            await task.aclose()
            if failed:  # while they were closed
                raise failed[0] from None
            raise
        finally:
            await task.aclose()
    if task.error is not None:
        raise task.error
    for error in failed:
        if _ends_all(order, error):
            raise error


def _ends_all(order: Delegate, error: Exception) -> bool:
    """Return whether the error of a branch ends the others and the run."""
    return order.on_error == "cancel" or isinstance(error, FinalError)


async def _run_all(
    streams: Streams,
    send: MemoryObjectSendStream[Event],
    order: Delegate,
    failed: list[Exception],
) -> None:
    async def run_one(one: tuple[Source, AsyncIterator[Event]]) -> None:
        branch, stream = one
        try:
            try:
                async for event in stream:
                    await send.send(event)
            finally:
                await close_stream(stream)
        except Exception as error:  # kept on the branch, for the state or for the caller
            branch.error = error
            failed.append(error)
            if _ends_all(order, error):
                tasks.cancel_scope.cancel()
            await (
                anyio.lowlevel.checkpoint_if_cancelled()
            )  # a cancellation may have been replaced by the error
        if order.until == "first" and branch.completed:
            tasks.cancel_scope.cancel()

    with send:
        async with anyio.create_task_group() as tasks:
            if order.beside is not None:
                tasks.start_soon(run_one, streams[0])
                streams = streams[1:]
            await work_off(streams, run_one, at_once=order.max_concurrency)
