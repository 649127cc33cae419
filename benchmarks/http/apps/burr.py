"""Burr behind FastAPI, with `astream_result`, as its streaming example does."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from burr.core import ApplicationBuilder, State
from burr.core.action import streaming_action
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from benchmarks.http.pace import answer


@streaming_action(reads=["task"], writes=["answer"])
async def talk(state: State) -> AsyncIterator[tuple[dict[str, Any], State | None]]:
    parts = []
    async for text in answer(state["task"]):
        parts.append(text)
        yield {"answer": text}, None
    whole = "".join(parts)
    yield {"answer": whole}, state.update(answer=whole)


class Chat(BaseModel):
    task: str


app = FastAPI()


@app.post("/chat")
async def chat(body: Chat) -> StreamingResponse:
    application = (
        ApplicationBuilder()
        .with_actions(talk)
        .with_state(task=body.task)
        .with_entrypoint("talk")
        .build()
    )
    _, container = await application.astream_result(halt_after=["talk"])

    async def events() -> AsyncIterator[str]:
        async for item in container:
            yield f"data: {json.dumps({'text': item['answer']})}\n\n"

    return StreamingResponse(events(), media_type="text/event-stream")
