"""Agent Brain: the ReAct net behind its server, with everything but the limits that refuse."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from agent_brain import LLM, Brain, Message, react
from agent_brain.serving import Sessions
from agent_brain.serving.web import ServerLimits, make_app
from agent_brain.tools import BaseTool
from benchmarks.http.pace import answer


class Paced(LLM):
    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[BaseTool] = (),
        output_type: Any = None,
    ) -> AsyncIterator[Any]:
        async for text in answer(messages[-1].content):
            yield text


sessions = Sessions(Brain(react(Paced())))
app = make_app(sessions, limits=ServerLimits(per_minute=None))
