"""A server over a loopback socket, for real clients."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import uvicorn

from agent_brain import Brain, tool
from agent_brain.serving import Sessions
from agent_brain.serving.access import listen
from agent_brain.serving.web import make_app
from agent_brain.states import Finish
from agent_brain.testing import ScriptedLLM
from agent_brain.tools.builtin import ask_user

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
TOKENS = {"ann-token": "ann", "bob-token": "bob"}


@tool
def double(n: int) -> int:
    """Double a number."""
    return 2 * n


def shop(*turns: Any) -> tuple[Brain, list[int]]:
    """Return a brain that plays ``turns`` and pays with approval, and what it has paid."""
    paid: list[int] = []

    @tool(requires_approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        paid.append(amount)
        return f"paid {amount}"

    return Brain(llm=ScriptedLLM(turns), tools=[double, pay, ask_user]), paid


def drawn(url: str = f"data:image/png;base64,{PNG}") -> Finish:
    """Return the end of a response with a picture that the model has made."""
    return Finish("stop", metadata={"images": [{"image_url": {"url": url}}]})


@asynccontextmanager
async def serving(brain: Brain, **options: Any) -> AsyncIterator[str]:
    """Serve ``brain`` and yield the base URL of its OpenAI API."""
    options.setdefault("token", TOKENS)
    kept = {name: options.pop(name) for name in ("journal", "when_busy") if name in options}
    sessions = Sessions(brain, **kept)
    with listen("127.0.0.1", 0) as listener:
        config = uvicorn.Config(make_app(sessions, **options), log_level="error", ws="none")
        server = uvicorn.Server(config)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve, [listener])
            try:
                yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
            finally:
                server.should_exit = True
