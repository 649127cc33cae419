"""Inspect's models as models of this library."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from inspect_ai.model import (
    CachePolicy,
    GenerateConfig,
    Model,
    ModelOutput,
    ModelUsage,
    get_model,
)
from pydantic import BaseModel

from agent_brain.experiments.inspect.messages import (
    CONTENT,
    thoughts_in,
    to_action,
    to_inspect,
    tool_info,
)
from agent_brain.memories.message import Message
from agent_brain.states.errors import ContextWindowError, LLMServerError
from agent_brain.states.models.llm import LLM, Finish, FinishReason, Piece, Thought
from agent_brain.states.usage import Usage
from agent_brain.tools.base import BaseTool

_REASONS: Mapping[str, FinishReason] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "max_tokens": "length",
    "content_filter": "content_filter",
}


class InspectLLM(LLM):
    """A model of Inspect: its log has each call, and its cache, retries and limits apply.

    A call yields its text when the response is complete. A limit of Inspect that is reached ends
    the run with Inspect's ``LimitExceededError``, which Inspect expects.

    Args:
        model: A name such as ``"openai/gpt-4.1"``, or a model; None for the one that Inspect
            evaluates.
        role: A role of the evaluation (``model_roles=``), whose model comes before ``model``.
        config: Options of each call: temperature, ``max_tokens`` and so on.
        cache: Whether responses are taken from Inspect's cache, or how long.
    """

    def __init__(
        self,
        model: str | Model | None = None,
        *,
        role: str | None = None,
        config: GenerateConfig | None = None,
        cache: bool | CachePolicy = False,
    ) -> None:
        self.model = f"inspect/{model or role or 'model'}"
        self._given = model
        self._role = role
        self._config = config or GenerateConfig()
        self._cache = cache

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[BaseTool] = (),
        output_type: type[BaseModel] | None = None,
    ) -> AsyncIterator[Piece]:
        """Call the model once; see :meth:`LLM.stream`.

        Raises:
            ContextWindowError: The messages exceed the context window of the model.
            LLMServerError: The model returned an error.
        """
        model = get_model(self._given, role=self._role)
        output = await model.generate(
            [to_inspect(message) for message in messages],
            tools=[tool_info(tool) for tool in tools],
            config=self._config,
            cache=self._cache,
        )
        self._check(output, str(model))
        for piece in _pieces(output):
            yield piece

    def _check(self, output: ModelOutput, model: str) -> None:
        if output.error is not None or not output.choices:
            text = output.error or "The response is empty"
            raise LLMServerError(f"{model} returned an error: {text}", model=model)
        if output.stop_reason == "model_length":
            raise ContextWindowError(
                f"The messages exceed the context window of {model}", model=model
            )


def _pieces(output: ModelOutput) -> Iterator[Piece]:
    message = output.message
    for thought in thoughts_in(message):
        yield Thought(thought)
    if message.text:
        yield message.text
    for call in message.tool_calls or ():
        yield to_action(call)
    data: dict[str, Any] = {}
    if message.metadata or isinstance(message.content, list):
        kept = {"content", "metadata"}
        data[CONTENT] = message.model_dump(mode="json", exclude_none=True, include=kept)
    yield Finish(_REASONS.get(output.stop_reason, "unknown"), data)
    if output.usage is not None:
        yield _usage(output.usage, output.model)


def _usage(usage: ModelUsage, model: str) -> Usage:
    cached, written = usage.input_tokens_cache_read or 0, usage.input_tokens_cache_write or 0
    return Usage(
        usage.input_tokens + cached + written,
        usage.output_tokens,
        usage.total_cost,
        model=model,
        cached_tokens=cached,
        reasoning_tokens=usage.reasoning_tokens or 0,
    )
