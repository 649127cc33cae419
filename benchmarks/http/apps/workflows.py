"""LlamaIndex Workflows behind its own server: a run is started, then its events are read."""

from __future__ import annotations

from llama_agents.server import WorkflowServer
from workflows import Context, Workflow, step
from workflows.events import Event, StartEvent, StopEvent

from benchmarks.http.pace import answer


class Chunk(Event):
    text: str


class Ask(StartEvent):
    task: str


class Talk(Workflow):
    @step
    async def reason(self, ctx: Context, ev: Ask) -> StopEvent:
        async for text in answer(ev.task):
            ctx.write_event_to_stream(Chunk(text=text))
        return StopEvent(result="done")


server = WorkflowServer()
server.add_workflow("talk", Talk(timeout=None))
app = server.app
