"""Inspect's models as models of this library, and the other way round."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, TypeVar

from inspect_ai.model import (
    CachePolicy,
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    Content,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    Model,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    StopReason,
    get_model,
    modelapi,
)
from inspect_ai.tool import ToolChoice, ToolInfo
from pydantic import BaseModel

from agent_brain.experiments.inspect.messages import (
    CONTENT,
    PROVIDER_DATA,
    from_inspect,
    thoughts_in,
    to_action,
    to_call,
    to_inspect,
    tool_info,
)
from agent_brain.memories.message import Message
from agent_brain.states.errors import ContextWindowError, LLMServerError
from agent_brain.states.models.litellm.adapter import LiteLLM
from agent_brain.states.models.llm import LLM, Finish, FinishReason, Piece, Thought
from agent_brain.states.models.resolve import as_llm
from agent_brain.states.usage import Usage
from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool

_FINISHES: Mapping[str, FinishReason] = {
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
        name = str(model)
        if output.error is not None or not output.choices:
            text = output.error or "The response is empty"
            raise LLMServerError(f"{name} returned an error: {text}", model=name)
        if output.stop_reason == "model_length":
            problem = f"The messages exceed the context window of {name}"
            raise ContextWindowError(problem, model=name)
        for piece in _pieces(output):
            yield piece


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
    yield Finish(_FINISHES.get(output.stop_reason, "unknown"), data)
    if output.usage is not None:
        yield _from_usage(output.usage, output.model)


def _from_usage(usage: ModelUsage, model: str) -> Usage:
    cached, written = usage.input_tokens_cache_read or 0, usage.input_tokens_cache_write or 0
    return Usage(
        usage.input_tokens + cached + written,
        usage.output_tokens,
        usage.total_cost,
        model=model,
        cached_tokens=cached,
        reasoning_tokens=usage.reasoning_tokens or 0,
    )


T = TypeVar("T")
_REASONS: Mapping[str, StopReason] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "length": "max_tokens",
    "content_filter": "content_filter",
    "refusal": "content_filter",
}
_SENT = ("temperature", "max_tokens", "top_p", "seed", "frequency_penalty", "presence_penalty")
"""The options of a call that LiteLLM is given under the same names."""


@modelapi(name="agent_brain")
class LLMModel(ModelAPI):
    """A model of this library for Inspect.

    Inspect's options ``temperature``, ``max_tokens``, ``top_p``, ``seed`` and the penalties are
    given to LiteLLM, which also retries. A model of your own (``llm=``) ignores them.

    Args:
        model_name: A name that a Brain takes: ``"demo"``, or one that LiteLLM knows.
        base_url: The address of the provider, if it is not the usual one.
        api_key: The key, if it is not in the environment.
        config: Inspect's options of all calls.
        llm: The model itself, instead of that of the name.
        **options: Further options of :class:`~agent_brain.LiteLLM`.
    """

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 - the form that Inspect expects
        llm: LLM | None = None,
        **options: Any,
    ) -> None:
        super().__init__(model_name, base_url, api_key, [], config)
        named = {"api_base": base_url, "api_key": api_key}
        self._options = {k: v for k, v in named.items() if v is not None} | options
        made = as_llm(model_name) if llm is None else llm
        self._llm = made if not isinstance(made, LiteLLM) or llm is not None else None

    async def generate(
        self,
        input: list[ChatMessage],  # noqa: A002 - Inspect's name
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        """Call the model once."""
        sent = {name: value for name in _SENT if (value := getattr(config, name)) is not None}
        llm = self._llm or LiteLLM(self.model_name, **{**sent, **self._options})
        await llm.open()
        offered = [] if tool_choice == "none" else [*map(_Described, tools)]
        try:
            stream = llm.stream([*map(from_inspect, input)], tools=offered)
            pieces = [piece async for piece in stream]
        except ContextWindowError as error:
            return ModelOutput.from_content(llm.model, str(error), stop_reason="model_length")
        return _output(llm.model, pieces)


class _Described(BaseTool):
    """A tool that a model is told of, and that Inspect runs."""

    def __init__(self, info: ToolInfo) -> None:
        schema = info.parameters.model_dump(mode="json", exclude_none=True)
        super().__init__(info.name, info.description, schema)

    async def execute(self, **kwargs: Any) -> Any:
        """Refuse to run, as Inspect runs the tools of its agents."""
        raise NotImplementedError


def _output(model: str, pieces: Sequence[Piece]) -> ModelOutput:
    """Return the response that consists of these pieces."""
    content: list[Content] = []
    for kind, said in groupby((piece for piece in pieces if isinstance(piece, str)), key=type):
        text = "".join(said)
        content.append(
            ContentReasoning(reasoning=text) if kind is Thought else ContentText(text=text)
        )
    only = content[0] if len(content) == 1 else None
    finish = _last(pieces, Finish) or Finish("unknown")
    usage, data = _last(pieces, Usage), dict(finish.provider_data)
    message = ChatMessageAssistant(
        content=only.text if isinstance(only, ContentText) else content or "",
        tool_calls=[to_call(piece) for piece in pieces if isinstance(piece, Action)] or None,
        model=model,
        source="generate",
        metadata={PROVIDER_DATA: data} if data else None,
    )
    reason = _REASONS.get(finish.reason, "unknown")
    choice = ChatCompletionChoice(message=message, stop_reason=reason)
    return ModelOutput(
        model=model, choices=[choice], usage=None if usage is None else _usage(usage)
    )


def _last(pieces: Sequence[Piece], kind: type[T]) -> T | None:
    return next((piece for piece in reversed(pieces) if isinstance(piece, kind)), None)


def _usage(usage: Usage) -> ModelUsage:
    return ModelUsage(
        input_tokens=usage.input_tokens - usage.cached_tokens,
        output_tokens=usage.output_tokens,
        total_tokens=usage.total_tokens,
        input_tokens_cache_read=usage.cached_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        total_cost=usage.cost,
    )
