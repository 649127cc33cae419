"""Agent Brain: the built-in ReAct net, and its sessions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from typing import Any

from agent_brain import LLM, Brain, Message
from agent_brain import react as react_net
from agent_brain.serving import Sessions
from agent_brain.states import TextDelta
from agent_brain.tools import BaseTool
from benchmarks.workloads import Counting, ours_hops, ours_many, ours_react

IMPORT = "from agent_brain import Brain"

react, many, hops = ours_react, ours_many, ours_hops


class Talking(LLM):
    """Answers with a number of chunks, with a turn of the event loop before each."""

    def __init__(self, chunks: int) -> None:
        self.chunks = chunks

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[BaseTool] = (),
        output_type: Any = None,
    ) -> AsyncIterator[Any]:
        for _ in range(self.chunks):
            await asyncio.sleep(0)
            yield "word "


async def chunks(count: int) -> AsyncIterator[str]:
    async with Brain(react_net(Talking(count))).stream("go") as run:
        async for event in run:
            if type(event) is TextDelta:
                yield event.text


async def sessions(count: int) -> Any:
    """Open sessions of a server, each after one answer."""
    stack = AsyncExitStack()
    opened = await stack.enter_async_context(
        Sessions(Brain(react_net(Counting(0))), max_sessions=count)
    )
    for _ in range(count):
        async with opened.use(None) as session, session.stream("go") as run:
            async for _ in run:
                pass
    return stack
