"""The server of the stress test: a model that repeats the marker of its client, and a look inside.

A task is "MARKER CHUNKS SECONDS SIZE": CHUNKS chunks of SIZE characters, each with the marker and
its number. ``GET /debug`` collects garbage, and tells what is left and how each run has ended.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agent_brain import LLM, Brain, Message, react
from agent_brain.serving import Sessions
from agent_brain.serving.session_run import SessionRun
from agent_brain.serving.web import ServerLimits, make_app
from agent_brain.tools import BaseTool

STALL = 2.0  # seconds after which a reader that takes no data is dropped

ended: dict[str, tuple[float, bool]] = {}


class Marked(LLM):
    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[BaseTool] = (),
        output_type: Any = None,
    ) -> AsyncIterator[Any]:
        marker, chunks, seconds, size = messages[-1].content.split()
        whole = False
        try:
            for number in range(int(chunks)):
                await asyncio.sleep(float(seconds))
                yield f"<{marker}:{number}>".ljust(int(size), ".")
            whole = True
        finally:
            ended[marker] = time.monotonic(), whole


async def debug(request: Request) -> Response:
    """Return the objects that are alive, and when each run has ended since the last request."""
    runs = dict(ended)
    ended.clear()
    gc.collect()
    objects = gc.get_objects()
    alive = sum(type(each) is SessionRun and not each.ended for each in objects)
    kinds = Counter(type(each).__name__ for each in objects)
    return JSONResponse(
        {"objects": len(objects), "running": alive, "ended": runs, "kinds": dict(kinds)}
    )


sessions = Sessions(Brain(react(Marked())))
app = make_app(sessions, limits=ServerLimits(per_minute=None, stall=STALL))
app.router.routes.insert(0, Route("/debug", debug))
