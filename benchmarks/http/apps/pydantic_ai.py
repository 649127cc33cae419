"""Pydantic AI behind its AG-UI adapter, as its documentation shows for Starlette."""

from __future__ import annotations

from collections.abc import AsyncIterator

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.ui.ag_ui import AGUIAdapter
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from benchmarks.http.pace import answer


async def paced(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
    async for text in answer(messages[-1].parts[-1].content):
        yield text


agent = Agent(FunctionModel(stream_function=paced))


async def run(request: Request) -> Response:
    return await AGUIAdapter.dispatch_request(request, agent=agent)


app = Starlette(routes=[Route("/ag-ui", run, methods=["POST"])])
