"""The text of a run as a stream."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Self

from anyio.abc import AsyncResource

from agent_brain.run import Run
from agent_brain.states.concurrency import EventLoop
from agent_brain.states.events import TextDelta


class AnswerStream(AsyncResource):
    """The text of a run as it arrives: ``async for text in brain.answer(task)``.

    The loop can be left at any piece and from any task; the run then ends. A ``break`` is enough
    if nothing else refers to the stream; ``async with aclosing(brain.answer(task)) as pieces``
    ends the run before the next statement. ``brain.last_result`` says how the run ended.
    """

    __slots__ = ("_loop", "_pieces", "_run")

    def __init__(self, run: Run) -> None:
        self._run = run
        self._pieces = _read(run)
        self._loop: EventLoop | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        if self._loop is None:
            self._loop = EventLoop()
        return await anext(self._pieces)

    async def aclose(self) -> None:
        """End the run if it has not ended."""
        await self._pieces.aclose()

    def __del__(self) -> None:
        loop = getattr(self, "_loop", None)  # __init__ may have failed
        if loop is None or self._run.ended:
            return
        pieces, run = self._pieces, self._run
        run.abandon()

        async def close() -> None:
            try:
                await pieces.aclose()
            except RuntimeError:  # the event loop, which is ending, closes it already
                return

        try:
            loop.call_soon(lambda: loop.spawn(close))
        except RuntimeError:  # the event loop has ended, and the run with it
            return


async def _read(run: Run) -> AsyncGenerator[str, None]:
    """Yield the text for the reader, with a blank line between model responses."""
    last: tuple[str | None, int, tuple[str, ...]] | None = None
    try:
        async for event in run:
            if not isinstance(event, TextDelta) or event.thought or not event.text:
                continue
            at = event.at
            source = (event.response_id, at.step, at.path)
            if last is not None and last != source and (last[0] or source[0]):
                yield "\n\n"
            last = source
            yield event.text
    finally:
        await run.aclose()
