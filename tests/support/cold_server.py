"""A web server whose first request makes the first model call; a program for tests to run.

    python -m tests.support.cold_server PORT MODEL_URL

``/ask`` asks the model at MODEL_URL, ``/ping`` answers at once. Both log, as uvicorn does.
"""

from __future__ import annotations

import logging
import sys
import threading

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from agent_brain.memories.message import Message
from agent_brain.states import LiteLLM

LOGGERS = [logging.getLogger(name) for name in ("app", "asyncio", "httpx", "uvicorn.error")]
OVER = threading.Event()


async def ask(request: Request) -> PlainTextResponse:
    llm = LiteLLM("openai/x", api_base=sys.argv[2], api_key="some-secret-key", retries=0)
    pieces = [piece async for piece in llm.stream([Message.user("Hello")])]
    return PlainTextResponse("".join(piece for piece in pieces if isinstance(piece, str)))


async def ping(request: Request) -> PlainTextResponse:
    for logger in LOGGERS:
        logger.info("ping %s from %s", request.url.path, "key=abcdefgh")
    return PlainTextResponse("pong")


def log_all_the_time() -> None:
    while not OVER.wait(0.002):
        for logger in LOGGERS:
            logger.info("still here")


if __name__ == "__main__":
    logging.basicConfig(level=logging.DEBUG, stream=sys.stdout)
    logging.raiseExceptions = True
    thread = threading.Thread(target=log_all_the_time)
    thread.start()
    app = Starlette(routes=[Route("/ask", ask), Route("/ping", ping)])
    try:
        uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="debug")
    finally:
        OVER.set()
        thread.join()
