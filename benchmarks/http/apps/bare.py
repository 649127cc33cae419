"""The least that streams the same bytes: Starlette's own StreamingResponse, no agent, no check."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from benchmarks.http.pace import answer

DELTA = (
    b"id: 4eb64163-%d\nevent: text_delta\ndata: "
    b'{"kind": "text_delta", "run_id": "run_65ddf5a087cc59714", "step": 0, "state": "REASONING", '
    b'"path": [], "text": %b, "thought": false, "response_id": "resp_65ddf5a087cc59715"}\n\n'
)
CHUNK = (
    b'data: {"id":"chatcmpl-645801f37fcf2209073f00e66069083b","object":"chat.completion.chunk",'
    b'"created":1795329813,"model":"agent-brain","choices":[{"index":0,"delta":{"content":%b},'
    b'"logprobs":null,"finish_reason":null}]}\n\n'
)
# The events around the text: as many and as long as those of a run.
BEFORE, AFTER = (560, 150, 220), (410, 190, 130, 170, 420)


def other(size: int) -> bytes:
    return b"event: other\ndata: %b\n\n" % (b"x" * size)


async def native(request: Request) -> Response:
    task = (await request.json())["task"]

    async def body() -> AsyncIterator[bytes]:
        for size in BEFORE:
            yield other(size)
        number = 3
        async for text in answer(task):
            number += 1
            yield DELTA % (number, json.dumps(text).encode())
        for size in AFTER:
            yield other(size)

    return StreamingResponse(body(), media_type="text/event-stream")


async def openai(request: Request) -> Response:
    task = (await request.json())["messages"][-1]["content"]

    async def body() -> AsyncIterator[bytes]:
        yield other(240)
        async for text in answer(task):
            yield CHUNK % json.dumps(text).encode()
        yield other(300)

    return StreamingResponse(body(), media_type="text/event-stream")


async def create(request: Request) -> Response:
    return JSONResponse({"id": "4eb64163"}, 201)


app = Starlette(
    routes=[
        Route("/sessions", create, methods=["POST"]),
        Route("/sessions/{session}/runs", native, methods=["POST"]),
        Route("/v1/chat/completions", openai, methods=["POST"]),
    ]
)
