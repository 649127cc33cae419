"""LlamaIndex Workflows: steps and events; the ReAct loop is written as its docs do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from pydantic import validate_call
from workflows import Context, Workflow, step
from workflows.events import Event, StartEvent, StopEvent

IMPORT = "from workflows import Context, Workflow, step"


@validate_call
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Input(Event):
    messages: list[dict[str, Any]]


class Call(Event):
    messages: list[dict[str, Any]]


class Chunk(Event):
    text: str


class ReAct(Workflow):
    def __init__(self, turns: int, pause: float = 0.0, talk: int = 10, **options: Any) -> None:
        super().__init__(**options)
        self.turns = turns
        self.pause = pause
        self.talk = talk

    @step
    async def prepare(self, ev: StartEvent) -> Input:
        return Input(messages=[{"role": "user", "content": "go"}])

    @step
    async def reason(self, ctx: Context, ev: Input) -> Call | StopEvent:
        if self.pause:
            await asyncio.sleep(self.pause)
        last = ev.messages[-1]
        k = int(last["content"]) if last["role"] == "tool" else 0
        if k < self.turns:
            call = {"id": f"call_{k}", "name": "add", "args": json.dumps({"a": k, "b": 1})}
            ev.messages.append({"role": "assistant", "content": "", "call": call})
            return Call(messages=ev.messages)
        ev.messages.append({"role": "assistant", "content": "word " * 10})
        return StopEvent(result=ev.messages)

    @step
    async def act(self, ev: Call) -> Input:
        call = ev.messages[-1]["call"]
        result = await add(**json.loads(call["args"]))
        ev.messages.append({"role": "tool", "id": call["id"], "content": str(result)})
        return Input(messages=ev.messages)


class Talk(Workflow):
    def __init__(self, talk: int) -> None:
        super().__init__(timeout=None)
        self.talk = talk

    @step
    async def reason(self, ctx: Context, ev: StartEvent) -> StopEvent:
        for _ in range(self.talk):
            await asyncio.sleep(0)
            ctx.write_event_to_stream(Chunk(text="word "))
        return StopEvent(result="word " * self.talk)


async def run(workflow: ReAct, turns: int) -> None:
    messages = await workflow.run()
    assert len(messages) == 2 * turns + 2
    assert messages[-1]["content"] == "word " * 10


async def react(turns: int) -> None:
    await run(ReAct(turns, timeout=None), turns)


async def many(runs: int) -> None:
    shared = ReAct(2, 0.01, timeout=None)
    await asyncio.gather(*(run(shared, 2) for _ in range(runs)))


async def chunks(count: int) -> AsyncIterator[str]:
    handler = Talk(count).run()
    async for event in handler.stream_events():
        if isinstance(event, Chunk):
            yield event.text
    await handler


class ToA(Event):
    number: int


class ToB(Event):
    number: int


async def hops(count: int) -> None:
    class Hop(Workflow):
        @step
        async def begin(self, ev: StartEvent) -> ToA:
            return ToA(number=0)

        @step
        async def a(self, ev: ToA) -> ToB | StopEvent:
            number = ev.number + 1
            return ToB(number=number) if number < count else StopEvent(result=number)

        @step
        async def b(self, ev: ToB) -> ToA | StopEvent:
            number = ev.number + 1
            return ToA(number=number) if number < count else StopEvent(result=number)

    assert await Hop(timeout=None).run() == count


async def sessions(count: int) -> Any:
    """Contexts: what a workflow keeps between two runs."""
    shared = ReAct(0, timeout=None)
    kept = []
    for _ in range(count):
        context = Context(shared)
        messages = await shared.run(ctx=context)
        await context.store.set("messages", messages)
        kept.append(context)
    return kept
