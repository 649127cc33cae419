"""The hand-written loop: states, a table and a list; see benchmarks.workloads."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from benchmarks.workloads import (
    Bare,
    BareReasoning,
    Talk,
    floor_hops,
    floor_many,
    floor_react,
)

IMPORT = "import asyncio, json, dataclasses, enum"

react, many, hops = floor_react, floor_many, floor_hops


async def chunks(count: int) -> AsyncIterator[str]:
    async for chunk in Talk(count, turn_of_the_loop=True).run(None):
        yield chunk


async def sessions(count: int) -> Any:
    kept = []
    for _ in range(count):
        memory = Bare()
        async for _ in BareReasoning(0, 0.0).run(memory):
            pass
        kept.append(memory)
    return kept
