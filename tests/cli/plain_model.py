"""A net whose model asks an OpenAI server without litellm, which takes seconds to import."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx

from agent_brain.memories.message import Message
from agent_brain.nets import Net, react
from agent_brain.states.models.llm import LLM, Piece
from agent_brain.tools import Action, BaseTool


class PlainLLM(LLM):
    """Streams from ``OPENAI_BASE_URL``."""

    model = "plain"
    supports_tools = True

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[BaseTool] = (),
        output_type: Any = None,
    ) -> AsyncIterator[Piece]:
        """Yield text as it comes, then the calls."""
        url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
        body = {"model": "plain", "messages": [message.content for message in messages]}
        names: list[tuple[str, str]] = []
        arguments: defaultdict[int, str] = defaultdict(str)
        async with (
            httpx.AsyncClient(timeout=None) as client,
            client.stream("POST", url, json=body) as response,
        ):
            response.raise_for_status()
            async for line in response.aiter_lines():
                if line in ("", "data: [DONE]"):
                    continue
                delta = json.loads(line.removeprefix("data: "))["choices"][0]["delta"]
                if text := delta.get("content"):
                    yield text
                for call in delta.get("tool_calls", ()):
                    if "id" in call:
                        names.append((call["id"], call["function"]["name"]))
                    arguments[call["index"]] += call["function"]["arguments"]
        for number, (key, name) in enumerate(names):
            yield Action(name=name, args=json.loads(arguments[number]), id=key)


def net(llm: LLM) -> Net:
    """Ask in place of ``llm``."""
    return react(PlainLLM())
