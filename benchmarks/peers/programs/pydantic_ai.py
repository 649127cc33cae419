"""Pydantic AI: `Agent` with a `FunctionModel`, and its graph."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import UsageLimits
from pydantic_graph import BaseNode, End, GraphBuilder, GraphRunContext

IMPORT = "from pydantic_ai import Agent"
UNLIMITED = UsageLimits(request_limit=None)


def agent(turns: int, pause: float = 0.0, talk: int = 10) -> Agent[None, str]:
    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if pause:
            await asyncio.sleep(pause)
        last = messages[-1].parts[-1]
        k = int(last.content) if isinstance(last, ToolReturnPart) else 0
        if k < turns:
            return ModelResponse([ToolCallPart("add", json.dumps({"a": k, "b": 1}), f"call_{k}")])
        return ModelResponse([TextPart("word " * 10)])

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        for _ in range(talk):
            await asyncio.sleep(0)
            yield "word "

    made = Agent(FunctionModel(answer, stream_function=stream))

    @made.tool_plain
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    return made


async def run(agent: Agent[None, str], turns: int) -> Any:
    done = await agent.run("go", usage_limits=UNLIMITED)
    assert done.output == "word " * 10
    assert len(done.all_messages()) == 2 * turns + 2
    return done


async def react(turns: int) -> None:
    await run(agent(turns), turns)


async def many(runs: int) -> None:
    shared = agent(2, 0.01)
    await asyncio.gather(*(run(shared, 2) for _ in range(runs)))


async def chunks(count: int) -> AsyncIterator[str]:
    async with agent(0, talk=count).run_stream("go") as result:
        async for text in result.stream_text(delta=True, debounce_by=None):
            yield text


@dataclass
class Number:
    value: int = 0
    end: int = 0


@dataclass
class A(BaseNode[Number, None, int]):
    async def run(self, ctx: GraphRunContext[Number]) -> B | End[int]:
        ctx.state.value += 1
        return B() if ctx.state.value < ctx.state.end else End(ctx.state.value)


@dataclass
class B(BaseNode[Number, None, int]):
    async def run(self, ctx: GraphRunContext[Number]) -> A | End[int]:
        ctx.state.value += 1
        return A() if ctx.state.value < ctx.state.end else End(ctx.state.value)


async def hops(count: int) -> None:
    builder = GraphBuilder(state_type=Number, input_type=A, output_type=int)
    builder.add(builder.node(A), builder.node(B), builder.edge_from(builder.start_node).to(A))
    done = await builder.build().run(inputs=A(), state=Number(end=count))
    assert done == count


async def sessions(count: int) -> Any:
    """Message histories: the library keeps nothing else of a conversation."""
    shared = agent(0)
    return shared, [(await run(shared, 0)).all_messages() for _ in range(count)]
