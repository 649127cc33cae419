"""LangGraph behind FastAPI, with `astream`: its own server needs a licence key or a cloud account."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from langchain.agents import create_agent
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from benchmarks.http.pace import answer
from benchmarks.peers.programs.langgraph import Counting


class Paced(Counting):
    async def _astream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **_: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        async for text in answer(str(messages[-1].content)):
            chunk = ChatGenerationChunk(message=AIMessageChunk(content=text))
            if run_manager:
                await run_manager.on_llm_new_token(text, chunk=chunk)
            yield chunk


class Chat(BaseModel):
    thread: str
    task: str


app = FastAPI()
agent = create_agent(Paced(turns=0), [], checkpointer=InMemorySaver())


@app.post("/chat")
async def chat(body: Chat) -> StreamingResponse:
    async def events() -> AsyncIterator[str]:
        state = {"messages": [{"role": "user", "content": body.task}]}
        config = {"configurable": {"thread_id": body.thread}}
        async for message, _ in agent.astream(state, config, stream_mode="messages"):
            if message.text:
                yield f"data: {json.dumps({'text': message.text})}\n\n"

    return StreamingResponse(events(), media_type="text/event-stream")
