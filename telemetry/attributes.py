"""Attributes of spans and metrics, by the semantic conventions of OpenTelemetry.

The names are those of the GenAI conventions, https://github.com/open-telemetry/semantic-conventions
version 1.41, which are still in development; what they do not know begins with ``agent_brain.``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from agent_brain.states.hooks import (
    EmbeddingRequest,
    HookRequest,
    ModelRequest,
    RunRequest,
    StateRequest,
    ToolRequest,
)
from agent_brain.states.models.llm import LLM
from agent_brain.states.usage import Usage

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

_PARAMS: dict[str, tuple[str, tuple[type, ...]]] = {
    "frequency_penalty": ("gen_ai.request.frequency_penalty", (int, float)),
    "max_completion_tokens": ("gen_ai.request.max_tokens", (int,)),
    "max_tokens": ("gen_ai.request.max_tokens", (int,)),
    "presence_penalty": ("gen_ai.request.presence_penalty", (int, float)),
    "seed": ("gen_ai.request.seed", (int,)),
    "temperature": ("gen_ai.request.temperature", (int, float)),
    "top_k": ("gen_ai.request.top_k", (int, float)),
    "top_p": ("gen_ai.request.top_p", (int, float)),
}
"""Parameters of a model: the attribute for each, and the types that a value may have."""


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


def of_state(request: StateRequest) -> Attributes:
    """Return the attributes of a step that begins."""
    return {"agent_brain.state.kind": request.kind, **place(request)}


def of_model(request: ModelRequest) -> Attributes:
    """Return the attributes of a model call that begins, also for its metrics."""
    llm = request.llm
    found: Attributes = {PROVIDER: provider_name(llm), REQUEST_MODEL: model_name(llm)}
    params = getattr(llm, "params", None)
    if isinstance(params, Mapping):
        address = params.get("api_base") or params.get("base_url")
        if isinstance(address, str):
            found |= _server(address)
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
        attribute, types = _PARAMS.get(name, ("", ()))
        if isinstance(value, types) and not isinstance(value, bool):
            found[attribute] = value
        elif name == "stop" and value:
            found["gen_ai.request.stop_sequences"] = [value] if isinstance(value, str) else value
    return found


def _server(address: str) -> Attributes:
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        return {}
    if host is None:
        return {}
    return {"server.address": host, "server.port": port or (80 if parts.scheme == "http" else 443)}


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


def error_type(error: BaseException | None) -> str:
    """Return the class of an error for ``error.type``; ``"_OTHER"`` if there is no exception."""
    return "_OTHER" if error is None else type(error).__name__
