"""smolagents: `ToolCallingAgent`, which is synchronous; runs at once are in threads."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from rich.console import Console
from smolagents import AgentLogger, ChatMessage, LogLevel, Model, ToolCallingAgent, tool
from smolagents.models import (
    ChatMessageStreamDelta,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    ChatMessageToolCallStreamDelta,
    MessageRole,
)

IMPORT = "from smolagents import ToolCallingAgent, tool"
AT_ONCE = 1_000  # threads


@tool
def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: The first.
        b: The second.
    """
    return a + b


class Counting(Model):
    def __init__(self, turns: int, pause: float = 0.0, talk: int = 10) -> None:
        super().__init__()
        self.turns = turns
        self.pause = pause
        self.talk = talk

    def generate(self, messages: list[ChatMessage], *_: Any, **__: Any) -> ChatMessage:
        if self.pause:
            time.sleep(self.pause)
        last = messages[-1]
        k = 0
        if last.role == MessageRole.TOOL_RESPONSE:
            k = int(last.content[0]["text"].rpartition("\n")[2])
        name, arguments = "final_answer", {"answer": "word " * 10}
        if k < self.turns:
            name, arguments = "add", {"a": k, "b": 1}
        function = ChatMessageToolCallFunction(name=name, arguments=json.dumps(arguments))
        call = ChatMessageToolCall(function=function, id=f"call_{k}", type="function")
        return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=[call])

    def generate_stream(self, *_: Any, **__: Any) -> Iterator[ChatMessageStreamDelta]:
        for _ in range(self.talk):
            yield ChatMessageStreamDelta(content="word ")
        function = ChatMessageToolCallFunction(name="final_answer", arguments='{"answer": "done"}')
        call = ChatMessageToolCallStreamDelta(index=0, id="c", type="function", function=function)
        yield ChatMessageStreamDelta(content="", tool_calls=[call])


def agent(turns: int, pause: float = 0.0, talk: int = 10, **options: Any) -> ToolCallingAgent:
    logger = AgentLogger(LogLevel.OFF, Console(quiet=True))
    model = Counting(turns, pause, talk)
    return ToolCallingAgent([add], model, max_steps=turns + 2, logger=logger, **options)


def run(turns: int, pause: float = 0.0) -> ToolCallingAgent:
    made = agent(turns, pause)
    assert made.run("go") == "word " * 10
    assert len(made.memory.steps) == turns + 2
    return made


async def react(turns: int) -> None:
    run(turns)


async def many(runs: int) -> None:
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        await asyncio.gather(*(loop.run_in_executor(pool, run, 2, 0.01) for _ in range(runs)))


async def chunks(count: int) -> AsyncIterator[str]:
    talking = agent(0, talk=count, stream_outputs=True)
    for item in talking.run("go", stream=True):
        if isinstance(item, ChatMessageStreamDelta) and item.content:
            yield item.content


async def sessions(count: int) -> Any:
    return [run(0) for _ in range(count)]
