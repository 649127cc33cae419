"""OpenAI Agents SDK: `Runner` with a `Model` of our own, `SQLiteSession` in memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from agents import (
    Agent,
    Model,
    ModelResponse,
    Runner,
    SQLiteSession,
    Usage,
    function_tool,
    set_tracing_disabled,
)
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseTextDeltaEvent,
)

IMPORT = "from agents import Agent, Runner"
set_tracing_disabled(True)


@function_tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def said(text: str) -> ResponseOutputMessage:
    content = ResponseOutputText(annotations=[], text=text, type="output_text")
    return ResponseOutputMessage(
        id="m", content=[content], role="assistant", status="completed", type="message"
    )


class Counting(Model):
    def __init__(self, turns: int, pause: float = 0.0, talk: int = 10) -> None:
        self.turns = turns
        self.pause = pause
        self.talk = talk

    async def get_response(
        self,
        system_instructions: Any,
        input: Any,  # noqa: A002
        *_: Any,
        **__: Any,
    ) -> ModelResponse:
        if self.pause:
            await asyncio.sleep(self.pause)
        last = {} if isinstance(input, str) else input[-1]
        k = int(last["output"]) if last.get("type") == "function_call_output" else 0
        item: Any = said("word " * 10)
        if k < self.turns:
            item = ResponseFunctionToolCall(
                arguments=json.dumps({"a": k, "b": 1}),
                call_id=f"call_{k}",
                name="add",
                type="function_call",
            )
        return ModelResponse(output=[item], usage=Usage(), response_id=None)

    async def stream_response(
        self, system_instructions: Any, items: Any, *_: Any, **__: Any
    ) -> AsyncIterator[Any]:
        for number in range(self.talk):
            await asyncio.sleep(0)
            yield ResponseTextDeltaEvent(
                content_index=0,
                delta="word ",
                item_id="m",
                logprobs=[],
                output_index=0,
                sequence_number=number,
                type="response.output_text.delta",
            )
        whole = Response(
            id="r",
            created_at=0,
            model="counting",
            object="response",
            output=[said("word " * self.talk)],
            parallel_tool_calls=False,
            tool_choice="auto",
            tools=[],
        )
        yield ResponseCompletedEvent(
            response=whole, sequence_number=self.talk, type="response.completed"
        )


def agent(turns: int, pause: float = 0.0, talk: int = 10) -> Agent[None]:
    return Agent(name="a", model=Counting(turns, pause, talk), tools=[add])


async def run(agent: Agent[None], turns: int) -> None:
    done = await Runner.run(agent, "go", max_turns=turns + 2)
    assert done.final_output == "word " * 10
    assert len(done.to_input_list()) == 2 * turns + 2


async def react(turns: int) -> None:
    await run(agent(turns), turns)


async def many(runs: int) -> None:
    """With an agent for each run: one agent shared by all costs time in the square of the runs."""
    await asyncio.gather(*(run(agent(2, 0.01), 2) for _ in range(runs)))


async def chunks(count: int) -> AsyncIterator[str]:
    result = Runner.run_streamed(agent(0, talk=count), "go")
    async for event in result.stream_events():
        if event.type == "raw_response_event" and isinstance(event.data, ResponseTextDeltaEvent):
            yield event.data.delta


async def sessions(count: int) -> Any:
    shared = agent(0)
    kept = [SQLiteSession(str(number)) for number in range(count)]
    for session in kept:
        await Runner.run(shared, "go", session=session)
    return kept
