"""Hooks around each attempt of a model call: retries and fallbacks inside LiteLLM."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agent_brain import Brain, react
from agent_brain.errors import Refused, StateDefinitionError
from agent_brain.states import Hook, ModelRequest, ModelResponse, Usage
from agent_brain.states.models.litellm.adapter import LiteLLM
from agent_brain.testing import ScriptedLLM
from tests.support.openai_server import Failure, OpenAIServer, Reply

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]


class Attempts(Hook):
    def __init__(self) -> None:
        self.log: list[Any] = []

    def before_attempt(self, request: ModelRequest) -> None:
        self.log.append((request.model, request.attempt, request.state))

    async def after_attempt(self, request: ModelRequest, response: ModelResponse) -> None:
        self.log.append(response.text)

    def on_attempt_error(self, request: ModelRequest, error: Exception) -> None:
        self.log.append(type(error).__name__)

    def after_model_call(self, request: ModelRequest, response: ModelResponse) -> None:
        self.log.append(("all", request.attempt, response.text))


def model_of(server: OpenAIServer, **options: Any) -> LiteLLM:
    settings: dict[str, Any] = {"api_base": server.url, "api_key": "k", "backoff": 0.001}
    return LiteLLM("openai/scripted", **settings, **options)


async def test_every_retry_and_every_fallback_is_an_attempt() -> None:
    hook = Attempts()
    with OpenAIServer([Failure(500), Failure(500), Reply("Hi")]) as server:
        llm = model_of(server, retries=1, fallbacks=["openai/other"])
        result = await Brain(react(llm), hooks=[hook]).run("Hello")
        await llm.aclose()
    assert result.answer == "Hi"
    assert hook.log == [
        ("openai/scripted", 1, "REASONING"),
        "LLMServerError",
        ("openai/scripted", 2, "REASONING"),
        "LLMServerError",
        ("openai/other", 1, "REASONING"),
        "Hi",
        ("all", 0, "Hi"),
    ]


async def test_a_refused_attempt_sends_nothing() -> None:
    class Never(Hook):
        def before_attempt(self, request: ModelRequest) -> None:
            raise Refused("never")

    with OpenAIServer([Reply("Hi")]) as server:
        llm = model_of(server, retries=2)
        with pytest.raises(Refused, match="never"):
            await Brain(react(llm), hooks=[Never()]).run("Hello")
    assert server.requests == []


async def test_without_hooks_the_attempts_of_a_call_by_hand_have_none() -> None:
    hook = Attempts()
    with OpenAIServer([Reply("Hi"), Reply("Ho")]) as server:
        llm = model_of(server)
        await Brain(react(llm), hooks=[hook]).run("Hello")
        seen = len(hook.log)
        await Brain(react(llm)).run("Hello")
        await llm.aclose()
    assert len(hook.log) == seen


async def test_an_attempt_is_made_by_the_model_that_was_called() -> None:
    class Swap(Hook):
        def before_attempt(self, request: ModelRequest) -> ModelRequest:
            return replace(request, llm=ScriptedLLM(["other"]))

    class Fallback(Hook):
        def on_model_error(self, request: ModelRequest, error: Exception) -> ModelResponse:
            return ModelResponse("hidden")

    with OpenAIServer([Reply("Hi")]) as server:
        llm = model_of(server)
        with pytest.raises(StateDefinitionError, match=r"Swap\.before_attempt changed llm"):
            await Brain(react(llm), hooks=[Fallback(), Swap()]).run("Hello")
        await llm.aclose()


async def test_the_usage_of_an_attempt_that_a_hook_changes_counts_once() -> None:
    class Free(Hook):
        def after_attempt(self, request: ModelRequest, response: ModelResponse) -> ModelResponse:
            return replace(response, usage=Usage(1, 1, cost=0.0))

    with OpenAIServer([Failure(500), Reply("Hi")]) as server:
        llm = model_of(server, retries=1)
        result = await Brain(react(llm), hooks=[Free()]).run("Hello")
        await llm.aclose()
    assert (result.answer, result.usage.total_tokens, result.usage.cost) == ("Hi", 2, 0.0)


async def test_an_answer_in_place_of_an_error_counts_the_attempts_before_it() -> None:
    class Fallback(Hook):
        def on_model_error(self, request: ModelRequest, error: Exception) -> ModelResponse:
            return ModelResponse("Sorry.")

    with OpenAIServer([Failure(500), Failure(500)]) as server:
        llm = model_of(server, retries=1)
        result = await Brain(react(llm), hooks=[Fallback()]).run("Hello")
        await llm.aclose()
    assert (result.answer, result.usage.requests) == ("Sorry.", 2)
