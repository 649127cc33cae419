"""A provider's own tools are sent with those of the brain, and what they find is kept."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from agent_brain import Brain, LiteLLM, tool
from tests.support.openai_server import OpenAIServer, Raw, Reply

pytestmark = pytest.mark.asyncio

SEARCH = {"type": "web_search"}
CITED = {
    "type": "url_citation",
    "url_citation": {
        "url": "https://example.org/a",
        "title": "A",
        "start_index": 0,
        "end_index": 4,
    },
}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}, "index": 0}


@pytest_asyncio.fixture(autouse=True)
async def _closed() -> AsyncIterator[None]:
    """Close the connections to the server."""
    yield
    await LiteLLM("openai/local").aclose()


@tool
def look_up(city: str) -> str:
    """Look up a city."""
    return city


def chunk(delta: dict[str, Any], **more: Any) -> Raw:
    choice = {"index": 0, "delta": delta, "finish_reason": None}
    head = {"id": "r", "object": "chat.completion.chunk", "created": 1, "model": "local"}
    return Raw(json.dumps({**head, **more, "choices": [choice]}))


def model(server: OpenAIServer, **params: Any) -> LiteLLM:
    return LiteLLM("openai/local", api_base=server.url, api_key="none", **params)


@pytest.mark.parametrize("tools", [[], [look_up]], ids=["alone", "beside the brain's"])
async def test_tools_of_the_provider_are_sent(tools: list[Any]):
    with OpenAIServer([Reply("Oslo.")]) as server:
        await Brain("react", tools=tools, llm=model(server, tools=[SEARCH])).run("Which city?")

    sent = server.requests[0].body["tools"]
    assert sent[0] == SEARCH
    assert [each["function"]["name"] for each in sent[1:]] == [each.name for each in tools]


CITATIONS: dict[str, tuple[list[Raw], list[Any]]] = {
    "annotations": ([chunk({"annotations": [CITED]})], [CITED]),
    "annotations again in each chunk": ([chunk({"annotations": [CITED]})] * 3, [CITED]),
    "links of the whole response": (
        [chunk({"content": " It is."}, citations=["https://example.org/a"])],
        ["https://example.org/a"],
    ),
}


@pytest.mark.parametrize(("chunks", "kept"), CITATIONS.values(), ids=CITATIONS)
async def test_citations_are_kept_with_the_message(chunks: list[Raw], kept: list[Any]):
    with OpenAIServer([Reply("Oslo.", *chunks)]) as server:
        result = await Brain("react", llm=model(server)).run("Which city?")

    assert result.answer.startswith("Oslo.")
    assert result.messages[-1].metadata["citations"] == kept


async def test_pictures_are_kept_with_the_message():
    with OpenAIServer([Reply("Here it is.", chunk({"images": [PICTURE]}))]) as server:
        result = await Brain("react", llm=model(server)).run("Draw a city")

    assert result.messages[-1].metadata["images"] == [PICTURE]


async def test_a_picture_alone_is_an_answer():
    with OpenAIServer([Reply("", chunk({"images": [PICTURE]})), Reply("Oslo.")]) as server:
        brain = Brain("react", llm=model(server))
        result = await brain.run("Draw a city")
        await brain.run("Which one is it?")

    assert (result.answer, result.steps) == ("", 2)
    assert result.messages[-1].metadata["images"] == [PICTURE]
    sent = server.requests[1].body["messages"]
    assert [each["content"] for each in sent[1:]] == [
        "Draw a city",
        "[picture]",
        "Which one is it?",
    ]


async def test_what_was_kept_is_not_sent_back():
    replies = [Reply("Oslo.", chunk({"annotations": [CITED]})), Reply("Yes.")]
    with OpenAIServer(replies) as server:
        brain = Brain("react", llm=model(server))
        await brain.run("Which city?")
        await brain.run("Sure?")

    assert "example.org" not in json.dumps(server.requests[1].body)
