"""Context managers of hooks around what states, models and tools do. Private."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import TypeVar

from agent_brain.states.aclosing import close_stream
from agent_brain.states.hook_requests import ModelRequest, StateRequest, ToolRequest
from agent_brain.states.hooks import Hook
from agent_brain.states.work import next_item

T = TypeVar("T")


def inside(
    hooks: Sequence[Hook], request: StateRequest | ModelRequest | ToolRequest
) -> AbstractContextManager[object]:
    """Return what ``hooks`` put around ``request``, that of the first hook outermost."""
    if len(hooks) == 1:  # which costs less, for each piece of text
        return hooks[0].around(request) or nullcontext()
    return _all_of(hooks, request)


@contextmanager
def _all_of(
    hooks: Sequence[Hook], request: StateRequest | ModelRequest | ToolRequest
) -> Iterator[None]:
    with ExitStack() as stack:
        for hook in hooks:
            surroundings = hook.around(request)
            if surroundings is not None:
                stack.enter_context(surroundings)
        yield


async def surrounded(
    items: AsyncIterator[T], hooks: Sequence[Hook], request: StateRequest | ModelRequest
) -> AsyncGenerator[T, None]:
    """Yield ``items``, with the context managers of ``hooks`` around the making of each.

    Nothing is entered while the consumer works: what a context manager sets in context variables
    would be seen there.
    """
    failed: Exception | None = None
    try:
        while True:
            with inside(hooks, request):
                try:
                    item = await next_item(items, failed)
                except StopAsyncIteration:
                    return
            failed = None
            try:
                yield item
            except Exception as error:  # of the work that a state waits for
                failed = error
    finally:
        with inside(hooks, request):
            await close_stream(items)
