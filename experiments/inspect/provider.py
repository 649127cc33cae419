"""Models of this library as models of Inspect: ``--model agent_brain/openai/gpt-4.1``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, TypeVar

from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    Content,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    StopReason,
    modelapi,
)
from inspect_ai.tool import ToolChoice, ToolInfo

from agent_brain.experiments.inspect.messages import PROVIDER_DATA, from_inspect, to_call
from agent_brain.states.errors import ContextWindowError
from agent_brain.states.models.litellm.adapter import LiteLLM
from agent_brain.states.models.llm import LLM, Finish, Piece, Thought
from agent_brain.states.models.resolve import as_llm
from agent_brain.states.usage import Usage
from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool

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

    def _model(self, config: GenerateConfig) -> LLM:
        """Return the model for calls with these options."""
        if self._llm is not None:
            return self._llm
        sent = {name: value for name in _SENT if (value := getattr(config, name)) is not None}
        return LiteLLM(self.model_name, **{**sent, **self._options})

    async def generate(
        self,
        input: list[ChatMessage],  # noqa: A002 - Inspect's name
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        """Call the model once."""
        llm = self._model(config)
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
