"""What a model says: a task is "CHUNKS SECONDS": that many chunks, with a pause before each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator


def task(chunks: int, seconds: float) -> str:
    return f"{chunks} {seconds}"


async def answer(task: str) -> AsyncIterator[str]:
    """Yield the chunks that a task asks for."""
    chunks, seconds = task.split()
    pause = float(seconds)
    for number in range(int(chunks)):
        if pause:
            await asyncio.sleep(pause)
        yield f"token{number} "
