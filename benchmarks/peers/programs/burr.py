"""Burr: actions over a state; it has no agent of its own, so the ReAct loop is written as its docs do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from burr.core import ApplicationBuilder, State, action, default, expr, when
from burr.core.action import streaming_action
from pydantic import validate_call

IMPORT = "from burr.core import ApplicationBuilder, State, action"


@validate_call
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def model(messages: list[dict[str, Any]], turns: int, pause: float) -> dict[str, Any]:
    if pause:
        await asyncio.sleep(pause)
    last = messages[-1]
    k = int(last["content"]) if last["role"] == "tool" else 0
    if k < turns:
        call = {"id": f"call_{k}", "name": "add", "args": json.dumps({"a": k, "b": 1})}
        return {"role": "assistant", "content": "", "call": call}
    return {"role": "assistant", "content": "word " * 10, "call": None}


def application(turns: int, pause: float = 0.0) -> Any:
    @action(reads=["messages"], writes=["messages", "acting"])
    async def reason(state: State) -> State:
        message = await model(state["messages"], turns, pause)
        return state.append(messages=message).update(acting=message["call"] is not None)

    @action(reads=["messages"], writes=["messages"])
    async def act(state: State) -> State:
        call = state["messages"][-1]["call"]
        result = await add(**json.loads(call["args"]))
        return state.append(messages={"role": "tool", "id": call["id"], "content": str(result)})

    @action(reads=["messages"], writes=["answer"])
    async def answer(state: State) -> State:
        return state.update(answer=state["messages"][-1]["content"])

    return (
        ApplicationBuilder()
        .with_actions(reason, act, answer)
        .with_transitions(
            ("reason", "act", when(acting=True)), ("reason", "answer", default), ("act", "reason")
        )
        .with_state(messages=[{"role": "user", "content": "go"}], acting=False)
        .with_entrypoint("reason")
        .build()
    )


async def run(turns: int, pause: float = 0.0) -> Any:
    app = application(turns, pause)
    _, _, state = await app.arun(halt_after=["answer"])
    assert state["answer"] == "word " * 10
    assert len(state["messages"]) == 2 * turns + 2
    return app


async def react(turns: int) -> None:
    await run(turns)


async def many(runs: int) -> None:
    await asyncio.gather(*(run(2, 0.01) for _ in range(runs)))


async def chunks(count: int) -> AsyncIterator[str]:
    @streaming_action(reads=[], writes=["answer"])
    async def talk(state: State) -> AsyncIterator[tuple[dict[str, Any], State | None]]:
        parts = []
        for _ in range(count):
            await asyncio.sleep(0)
            parts.append("word ")
            yield {"answer": "word "}, None
        whole = "".join(parts)
        yield {"answer": whole}, state.update(answer=whole)

    app = ApplicationBuilder().with_actions(talk).with_entrypoint("talk").build()
    _, container = await app.astream_result(halt_after=["talk"])
    async for item in container:
        yield item["answer"]


async def hops(count: int) -> None:
    @action(reads=["number"], writes=["number"])
    async def a(state: State) -> State:
        return state.update(number=state["number"] + 1)

    @action(reads=["number"], writes=["number"])
    async def b(state: State) -> State:
        return state.update(number=state["number"] + 1)

    @action(reads=[], writes=[])
    async def end(state: State) -> State:
        return state

    app = (
        ApplicationBuilder()
        .with_actions(a, b, end)
        .with_transitions(
            ("a", "b", expr(f"number < {count}")),
            ("b", "a", expr(f"number < {count}")),
            (["a", "b"], "end", default),
        )
        .with_state(number=0)
        .with_entrypoint("a")
        .build()
    )
    _, _, state = await app.arun(halt_after=["end"])
    assert state["number"] == count


async def sessions(count: int) -> Any:
    return [await run(0) for _ in range(count)]
