"""Attributes of spans and metrics, by the semantic conventions of OpenTelemetry.

The names are those of the GenAI conventions, https://github.com/open-telemetry/semantic-conventions
version 1.41, which are still in development; what they do not know begins with ``agent_brain.``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from opentelemetry.metrics import Histogram, Meter

from agent_brain.common.text import to_compact_json
from agent_brain.memories.message import Message
from agent_brain.states.hooks import (
    EmbeddingRequest,
    HookRequest,
    ModelRequest,
    ModelResponse,
    RunRequest,
    ToolRequest,
)
from agent_brain.states.models.llm import LLM
from agent_brain.states.usage import Usage
from agent_brain.tools.action import Action

Attributes: TypeAlias = dict[str, Any]

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
ERROR_TYPE = "error.type"
TOOL_NAME = "gen_ai.tool.name"
AGENT_NAME = "gen_ai.agent.name"
UNFINISHED = "agent_brain.unfinished"

_PROVIDERS = {
    "azure": "azure.ai.openai",
    "azure_ai": "azure.ai.inference",
    "bedrock": "aws.bedrock",
    "bedrock_converse": "aws.bedrock",
    "cohere_chat": "cohere",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "moonshot": "moonshot_ai",
    "vertex_ai": "gcp.vertex_ai",
    "watsonx": "ibm.watsonx.ai",
    "xai": "x_ai",
}
"""litellm's names of providers, where those of the conventions differ."""

_WHOLE = ("max_tokens", "seed")  # parameters of models that are attributes: whole numbers
_NUMBERS = ("frequency_penalty", "presence_penalty", "temperature", "top_k", "top_p")


def of_embedder(request: EmbeddingRequest) -> Attributes:
    """Return the attributes of an embedding, also for its metrics."""
    provider, _, name = request.model.partition("/")
    found = _PROVIDERS.get(provider, provider) if name else type(request.embedder).__name__
    return {OPERATION: "embeddings", PROVIDER: found, REQUEST_MODEL: name or request.model}


def provider_name(llm: LLM) -> str:
    """Return the provider of a model by the conventions, or else the name of its class.

    What would import litellm, which takes a while, is left for later.
    """
    known = "/" in llm.model or "litellm" in sys.modules
    provider = getattr(llm, "provider", None) if known else None
    if not isinstance(provider, str):
        return type(llm).__name__
    return _PROVIDERS.get(provider, provider)


def model_name(llm: LLM) -> str:
    """Return the name of a model as its provider knows it."""
    provider, _, name = llm.model.partition("/")
    return name if name and provider == getattr(llm, "provider", None) else llm.model


def place(request: HookRequest) -> Attributes:
    """Return the attributes that every span of a run has."""
    found: Attributes = {"agent_brain.run.id": request.run_id, "agent_brain.step": request.step}
    if request.session is not None:
        found["gen_ai.conversation.id"] = request.session
    if request.tenant is not None:
        found["agent_brain.tenant"] = request.tenant
    if request.state is not None:
        found["agent_brain.state"] = request.state
    if request.path:
        found["agent_brain.path"] = list(request.path)
    return found


def of_run(request: RunRequest) -> Attributes:
    """Return the attributes of a run that begins."""
    return {
        OPERATION: "invoke_agent",
        PROVIDER: "agent_brain",
        AGENT_NAME: request.net,
        "agent_brain.resumed": request.resumed,
        **place(request),
    }


def of_model(request: ModelRequest) -> Attributes:
    """Return the attributes of a model call that begins, also for its metrics."""
    llm = request.llm
    found: Attributes = {PROVIDER: provider_name(llm), REQUEST_MODEL: model_name(llm)}
    params = getattr(llm, "params", None)
    if isinstance(params, Mapping):
        address = params.get("api_base") or params.get("base_url")
        with suppress(ValueError):  # it is no address
            parts = urlsplit(address if isinstance(address, str) else "")
            port = parts.port or (80 if parts.scheme == "http" else 443)
            if parts.hostname is not None:
                found |= {"server.address": parts.hostname, "server.port": port}
    return found


def of_request(request: ModelRequest) -> Attributes:
    """Return the attributes of a model call that only its span has."""
    found: Attributes = {"gen_ai.request.stream": True, **place(request)}
    if request.purpose is not None:
        found["agent_brain.purpose"] = request.purpose
    if request.output_type is not None:
        found["gen_ai.output.type"] = "json"
    params = getattr(request.llm, "params", None)
    for name, value in params.items() if isinstance(params, Mapping) else ():
        known = "max_tokens" if name == "max_completion_tokens" else name
        kind = int if known in _WHOLE else (int, float) if known in _NUMBERS else ()
        if isinstance(value, kind) and not isinstance(value, bool):
            found[f"gen_ai.request.{known}"] = value
        elif name == "stop" and value:
            found["gen_ai.request.stop_sequences"] = [value] if isinstance(value, str) else value
    return found


def of_usage(usage: Usage | None) -> Attributes:
    """Return the attributes of what a run or a call has used."""
    if usage is None:
        return {}
    found: Attributes = {}
    if usage.total_tokens:
        found["gen_ai.usage.input_tokens"] = usage.input_tokens
        found["gen_ai.usage.output_tokens"] = usage.output_tokens
    if usage.cached_tokens:
        found["gen_ai.usage.cache_read.input_tokens"] = usage.cached_tokens
    if usage.reasoning_tokens:
        found["gen_ai.usage.reasoning.output_tokens"] = usage.reasoning_tokens
    if usage.cost is not None:
        found["agent_brain.usage.cost"] = usage.cost
    return found


def of_tool(request: ToolRequest) -> Attributes:
    """Return the attributes of a tool call that begins."""
    found: Attributes = {
        OPERATION: "execute_tool",
        TOOL_NAME: request.action.name,
        "gen_ai.tool.call.id": request.action.id,
        "gen_ai.tool.type": "function",
        **place(request),
    }
    if request.tool is not None:
        found["gen_ai.tool.description"] = request.tool.description
    return found


_FINISH = {
    "tool_calls": "tool_call",
    "refusal": "content_filter",
    "pause": "length",
    "unknown": "stop",
}


def said_to_model(request: ModelRequest) -> dict[str, Any]:
    """Return the messages of a model call, its instructions apart, and its tools."""
    system = [m for m in request.messages if m.role.value == "system"]
    others = [m for m in request.messages if m.role.value != "system"]
    found = {"gen_ai.input.messages": to_compact_json([_message(m) for m in others])}
    if system:
        found["gen_ai.system_instructions"] = to_compact_json([_text(m.content) for m in system])
    if request.tools:
        found["gen_ai.tool.definitions"] = to_compact_json(
            [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.input_schema,
                }
                for tool in request.tools
            ]
        )
    return found


def said_by_model(response: ModelResponse) -> dict[str, Any]:
    """Return what a model has said."""
    parts = [{"type": "reasoning", "content": response.thoughts}] if response.thoughts else []
    parts += [_text(response.text)] if response.text else []
    parts += _calls(response.actions)
    reason = response.finish_reason or "stop"
    message = {"role": "assistant", "parts": parts, "finish_reason": _FINISH.get(reason, reason)}
    return {"gen_ai.output.messages": to_compact_json([message])}


def said_as_goal(goal: Message | None) -> dict[str, Any]:
    """Return the goal of a run."""
    return {} if goal is None else {"gen_ai.input.messages": to_compact_json([_message(goal)])}


def said_as_answer(answer: str) -> dict[str, Any]:
    """Return the answer of a run."""
    message = {"role": "assistant", "parts": [_text(answer)], "finish_reason": "stop"}
    return {"gen_ai.output.messages": to_compact_json([message])}


def said_to_tool(action: Action) -> dict[str, Any]:
    """Return the arguments of a tool call."""
    return {"gen_ai.tool.call.arguments": to_compact_json(action.args)}


def said_by_tool(content: str) -> dict[str, Any]:
    """Return the result of a tool call."""
    return {"gen_ai.tool.call.result": content}


def _message(message: Message) -> dict[str, Any]:
    if message.role.value == "tool":
        result = {
            "type": "tool_call_response",
            "id": message.tool_call_id,
            "response": message.content,
        }
        return {"role": "tool", "parts": [result]}
    parts = [_text(message.content)] if message.content else []
    return {"role": message.role.value, "parts": [*parts, *_calls(message.tool_calls)]}


def _calls(actions: Iterable[Action]) -> Sequence[dict[str, Any]]:
    return [
        {"type": "tool_call", "id": action.id, "name": action.name, "arguments": action.args}
        for action in actions
    ]


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "content": text}


_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_TOKENS = tuple(4**power for power in range(14))


class Metrics:
    """The histograms.

    Args:
        meter: Makes them.

    Attributes:
        operation: Seconds of model calls, retries and fallbacks included.
        first_chunk: Seconds until a model has said something.
        run: Seconds of runs.
        tool: Seconds of tool calls.
        tokens: Tokens of model calls.
    """

    def __init__(self, meter: Meter) -> None:
        self.operation = _seconds(meter, "gen_ai.client.operation.duration", "Model calls.")
        self.first_chunk = _seconds(
            meter,
            "gen_ai.client.operation.time_to_first_chunk",
            "From a model call to the first chunk of its response.",
        )
        self.run = _seconds(meter, "gen_ai.invoke_agent.duration", "Runs.")
        self.tool = _seconds(meter, "gen_ai.execute_tool.duration", "Tool calls.")
        self.tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            unit="{token}",
            description="Tokens that model calls have read and written.",
            explicit_bucket_boundaries_advisory=_TOKENS,
        )

    def count(self, usage: Usage | None, attributes: Mapping[str, Any]) -> None:
        """Record the tokens of a model call."""
        if usage is None or not usage.total_tokens:
            return
        for kind, tokens in (("input", usage.input_tokens), ("output", usage.output_tokens)):
            self.tokens.record(tokens, {OPERATION: "chat", **attributes, "gen_ai.token.type": kind})


def _seconds(meter: Meter, name: str, description: str) -> Histogram:
    return meter.create_histogram(
        name, unit="s", description=description, explicit_bucket_boundaries_advisory=_SECONDS
    )
