"""A chat over HTTP with FastAPI: answers stream as server-sent events, conversations last.

Needs ``pip install fastapi uvicorn``. Run it with::

    python examples/web_chat.py

and open http://127.0.0.1:8000, or ask from a shell::

    curl -N http://127.0.0.1:8000/chats/ann -d '{"message": "What is 17 times 23?"}' \
        -H 'content-type: application/json'

``AGENT_BRAIN_MODEL`` chooses a model; without it the offline demo model answers.
"""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

import uvicorn
from fastapi import Depends, FastAPI, HTTPException, Path
from fastapi.responses import HTMLResponse, StreamingResponse
from pydantic import BaseModel, Field

from agent_brain import Brain, Limits, Run, SQLiteJournal, WindowedMemory
from agent_brain.errors import AgentBrainError, SessionConflictError
from agent_brain.tools.builtin import calculate, current_time

TOOLS = [calculate, current_time]
BUSY = "This chat is answering another message. Send yours again when the answer is complete."
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
  if (!reply.ok) out.textContent += JSON.stringify((await reply.json()).detail);
  let rest = "";
  for await (const text of reply.body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\\n\\n");
    rest = lines.pop();
    for (const line of lines) {
      const {text, error} = JSON.parse(line.slice(6));
      out.textContent += text ?? error ?? "\\n";
    }
  }
};
</script>"""


class Question(BaseModel):
    message: str = Field(min_length=1, max_length=10_000)


def make_app(journal_path: str, brain: Brain | None = None) -> FastAPI:
    """Build the application. One brain serves everybody; each conversation has its own memory."""
    brain = brain or Brain("react", limits=Limits(max_steps=20, timeout=120))
    journal = SQLiteJournal(journal_path)
    active: set[str] = set()  # chats that are answering

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with brain, journal:  # imports and connects now, not in the first request
            yield

    app = FastAPI(lifespan=lifespan)

    @app.get("/", response_class=HTMLResponse)
    async def page() -> str:
        return PAGE

    async def begin(
        name: Annotated[str, Path(pattern=r"^[\w-]{1,64}$")], question: Question
    ) -> AsyncIterator[Run]:
        if name in active:
            raise HTTPException(409, BUSY)
        active.add(name)
        try:
            memory = WindowedMemory(TOOLS, max_messages=50, journal=journal, session=name)
            async with memory, brain.over(memory).stream(question.message) as run:
                yield run  # after the response, or when the client goes away, the run is closed
        finally:
            active.discard(name)

    @app.post("/chats/{name}")
    async def chat(run: Annotated[Run, Depends(begin)]) -> StreamingResponse:
        return StreamingResponse(reply(run), media_type="text/event-stream")

    return app


async def reply(run: Run) -> AsyncIterator[str]:
    """Yield the answer as it comes, then how the run ended."""
    try:
        async for event in run:
            if event.kind == "text_delta" and not event.thought:
                yield sse({"text": event.text})
        yield sse({"stop_reason": run.result.stop_reason})
    except SessionConflictError:  # another process answers in the same chat
        yield sse({"error": BUSY})
    except AgentBrainError as error:
        yield sse({"error": str(error)})


def sse(data: dict[str, str]) -> str:
    """Return one server-sent event."""
    return f"data: {json.dumps(data)}\n\n"


if __name__ == "__main__":
    uvicorn.run(make_app(os.environ.get("CHAT_JOURNAL", "chats.db")), port=8000)
