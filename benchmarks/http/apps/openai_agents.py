"""OpenAI Agents SDK behind FastAPI, with `Runner.run_streamed`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, Runner
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseTextDeltaEvent,
)
from pydantic import BaseModel

from benchmarks.http.pace import answer
from benchmarks.peers.programs.openai_agents import Counting, said


class Paced(Counting):
    async def stream_response(
        self, system_instructions: Any, items: Any, *_: Any, **__: Any
    ) -> AsyncIterator[Any]:
        task = items if isinstance(items, str) else items[-1]["content"]
        number = 0
        async for text in answer(task):
            number += 1
            yield ResponseTextDeltaEvent(
                content_index=0,
                delta=text,
                item_id="m",
                logprobs=[],
                output_index=0,
                sequence_number=number,
                type="response.output_text.delta",
            )
        whole = Response(
            id="r",
            created_at=0,
            model="paced",
            object="response",
            output=[said("whole")],
            parallel_tool_calls=False,
            tool_choice="auto",
            tools=[],
        )
        yield ResponseCompletedEvent(
            response=whole, sequence_number=number, type="response.completed"
        )


class Chat(BaseModel):
    task: str


app = FastAPI()
model = Paced(0)


@app.post("/chat")
async def chat(body: Chat) -> StreamingResponse:
    async def events() -> AsyncIterator[str]:
        # An agent for each request: one shared by all costs time in the square of the runs at once.
        result = Runner.run_streamed(Agent(name="a", model=model), body.task)
        async for event in result.stream_events():
            if event.type == "raw_response_event" and isinstance(
                event.data, ResponseTextDeltaEvent
            ):
                yield f"data: {json.dumps({'text': event.data.delta})}\n\n"

    return StreamingResponse(events(), media_type="text/event-stream")
