"""A chat over HTTP with FastAPI: answers stream as server-sent events, conversations last.

Needs ``pip install fastapi "agent-brain[server]"``. Run it with::

    python examples/web_chat.py

and open http://127.0.0.1:8000, or ask from a shell::

    curl -N http://127.0.0.1:8000/chats/ann -d '{"message": "What is 17 times 23?"}' \
        -H 'content-type: application/json'

``AGENT_BRAIN_MODEL`` chooses a model; without it the offline demo model answers. The whole chat
page, with tool calls, approvals and several sessions, is at http://127.0.0.1:8000/agent/.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

import uvicorn
from fastapi import FastAPI, Path
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel, Field

from agent_brain import Brain, Limits
from agent_brain.serving import Sessions
from agent_brain.serving.web import make_app as make_agent_app
from agent_brain.serving.web import run_response
from agent_brain.tools.builtin import calculate, current_time

USER = "everybody"  # a real application knows who asks
PAGE = """<!doctype html><meta charset="utf-8"><title>Chat</title>
<form><input name="message" autofocus size="60"> <button>Send</button></form><pre></pre>
<script>
const chat = crypto.randomUUID(), out = document.querySelector("pre");
document.querySelector("form").onsubmit = async (event) => {
  event.preventDefault();
  const message = event.target.message.value;
  event.target.reset();
  out.textContent += `\\n> ${message}\\n`;
  const reply = await fetch(`/chats/${chat}`, {
    method: "POST", headers: {"content-type": "application/json"}, body: JSON.stringify({message}),
  });
  if (!reply.ok) return out.textContent += JSON.stringify(await reply.json());
  let rest = "";
  for await (const text of reply.body.pipeThrough(new TextDecoderStream())) {
    const frames = (rest + text).split("\\n\\n");
    rest = frames.pop();
    for (const frame of frames) {
      const data = frame.split("\\n").find((line) => line.startsWith("data: "));
      const event = data ? JSON.parse(data.slice(6)) : {};
      if (event.kind === "text_delta" && !event.thought) out.textContent += event.text;
      if (event.kind === "run_failed") out.textContent += event.error.message;
    }
  }
};
</script>"""

ChatName = Annotated[str, Path(pattern=r"^[\w-]{1,64}$")]


class Question(BaseModel):
    message: str = Field(min_length=1, max_length=10_000)


def make_app(journal_path: str, brain: Brain | None = None) -> FastAPI:
    """Build the application. One brain serves everybody; each conversation has its own memory."""
    tools = [calculate, current_time]
    brain = brain or Brain("react", tools=tools, limits=Limits(max_steps=20, timeout=120))
    sessions = Sessions(brain, "windowed", journal=journal_path, when_busy="refuse")

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with sessions:  # imports and connects now, not in the first request
            yield

    app = FastAPI(lifespan=lifespan)

    @app.get("/", response_class=HTMLResponse)
    async def page() -> str:
        return PAGE

    @app.post("/chats/{name}")
    async def chat(name: ChatName, question: Question) -> Response:
        return run_response(
            sessions.use(name, user=USER), lambda session: session.stream(question.message)
        )

    app.mount("/agent", make_agent_app(sessions, user=USER))
    return app


if __name__ == "__main__":
    uvicorn.run(make_app(os.environ.get("CHAT_JOURNAL", "chats.db")), port=8000)
