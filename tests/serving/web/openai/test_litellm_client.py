"""LiteLLM as the client, and an agent whose model is another agent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from agent_brain import Brain
from agent_brain.common.litellm import (
    connections,
    load_litellm,  # asks no other host for prices
)
from agent_brain.demo import demo_tools
from agent_brain.states import LiteLLM
from agent_brain.testing import ScriptedLLM
from tests.serving.web.openai.server import PNG, drawn, serving, shop

pytestmark = pytest.mark.anyio

ASK = "What is 17 times 23?"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"  # as uvicorn


@pytest.fixture(autouse=True)
async def closed_connections() -> AsyncIterator[None]:
    yield
    await connections.close()


async def complete(url: str, **options: Any) -> Any:
    return await load_litellm().acompletion(
        "openai/agent-brain",
        api_base=url,
        api_key="ann-token",
        messages=[{"role": "user", "content": ASK}],
        **options,
    )


async def test_litellm_gets_the_whole_answer():
    async with serving(Brain("react", tools=demo_tools())) as url:
        done = await complete(url, temperature=0.3, max_tokens=4096)

    assert "391" in done.choices[0].message.content
    assert done.choices[0].finish_reason == "stop"
    assert done.usage.total_tokens > 0


async def test_litellm_streams():
    brain, _ = shop(["It is ", "391."])
    async with serving(brain) as url:
        stream = await complete(url, stream=True, stream_options={"include_usage": True})
        chunks = [chunk async for chunk in stream]

    texts = [choice.delta.content for chunk in chunks for choice in chunk.choices]
    assert [text for text in texts if text] == ["It is ", "391."]
    assert "stop" in [choice.finish_reason for chunk in chunks for choice in chunk.choices]


async def test_litellm_sees_tools_as_reasoning():
    async with serving(Brain("react", tools=demo_tools()), show_tools=True) as url:
        stream = await complete(url, stream=True)
        asides = [
            getattr(choice.delta, "reasoning_content", None) or ""
            async for chunk in stream
            for choice in chunk.choices
        ]

    assert "391" in "".join(asides)


async def test_litellm_uses_the_responses_api():
    litellm = load_litellm()
    async with serving(Brain("react", tools=demo_tools())) as url:
        stream = await litellm.aresponses(
            input=ASK, model="openai/agent-brain", api_base=url, api_key="ann-token", stream=True
        )
        events = [event async for event in stream]

    assert events[-1].type == "response.completed"
    assert "391" in events[-1].response.output[-1].content[0].text


async def test_a_picture_of_an_agent_is_one_of_its_model():
    async with serving(Brain(llm=ScriptedLLM([[drawn()], ["A dot.", drawn()]]))) as url:
        outer = Brain(llm=LiteLLM("openai/agent-brain", api_base=url, api_key="ann-token"))
        alone = await outer.run("Draw.")
        both = await outer.run("Draw.")

    for result, text in ((alone, ""), (both, "A dot.")):
        [picture] = result.attachments
        assert (result.answer, picture.media_type) == (text, "image/png")
        assert PNG in (picture.data or picture.url or "")


async def test_an_agent_is_the_model_of_another():
    async with serving(Brain("react", tools=demo_tools())) as url:
        llm = LiteLLM("openai/agent-brain", api_base=url, api_key="ann-token")
        async with Brain("react", llm=llm) as outer:
            result = await outer.run(ASK)

    assert "391" in result.answer
    assert result.usage.requests == 1
