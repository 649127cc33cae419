"""Brains and nets from TOML or YAML files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError
from pydantic_core import ErrorDetails

from agent_brain.brain import Brain
from agent_brain.common.suggest import did_you_mean
from agent_brain.common.values import error_details, error_line
from agent_brain.default_model import resolve_llm
from agent_brain.limits import Limits
from agent_brain.nets.config import NetSpec, build_net, net_schema, read_file
from agent_brain.nets.errors import NetFileError
from agent_brain.nets.net import Net
from agent_brain.states.models.llm import LLM
from agent_brain.tools.toolset import ToolLike, named_tools


class LimitsSpec(BaseModel):
    """The limits of a run; the defaults are those of :class:`Limits`."""

    model_config = ConfigDict(extra="forbid")

    max_steps: int | None = Field(100, gt=0)
    max_tokens: int | None = Field(None, gt=0)
    max_cost: float | None = Field(None, gt=0, description="US dollars")
    max_tool_calls: int | None = Field(None, gt=0)
    max_requests: int | None = Field(None, gt=0)
    timeout: float | None = Field(None, gt=0, description="Seconds")
    strict: bool = Field(
        default=False, description="End the run if max_cost or max_tokens cannot count a model call"
    )


class BrainSpec(NetSpec):
    """The contents of a file: a net, its model, memory and limits."""

    model: str | None = Field(None, description="A LiteLLM model name, or 'demo'")
    tools: list[str] = Field(
        default_factory=list, description="Names of built-in and registered tools"
    )
    memory: str = Field("messages", description="The name of a registered memory")
    memory_options: dict[str, JsonValue] = Field(default_factory=dict)
    trace: bool = Field(default=False, description="Record model calls in the memory")
    limits: LimitsSpec = LimitsSpec.model_validate({})


def read_spec(path: str | Path) -> BrainSpec:
    """Return the validated contents of a file.

    Raises:
        NetFileError: The file cannot be read or is invalid; the message lists every problem.
    """
    try:
        spec = BrainSpec.model_validate(read_file(path))
    except ValidationError as error:
        lines = [f"  - {error_line(e)}{_suggestion(e)}" for e in error_details(error)]
        raise NetFileError("\n".join([f"{path} is not a valid net file:", *lines])) from error
    if (spec.net is None) == (not spec.states):
        raise NetFileError(f"{path}: give either net (a registered net) or [states]")
    return spec


def _suggestion(error: ErrorDetails) -> str:
    if error["type"] != "extra_forbidden":
        return ""
    fields = LimitsSpec.model_fields if "limits" in error["loc"][:-1] else BrainSpec.model_fields
    return f".{did_you_mean(error['loc'][-1], fields)}"


def net_from_file(path: str | Path, llm: LLM | str | None = None) -> Net:
    """Return the net that a file describes.

    Raises:
        NetFileError: The file cannot be read or is invalid.
        NetDefinitionError: The net is invalid; the error has every problem.
    """
    spec = read_spec(path)
    return build_net(spec, resolve_llm(llm if llm is not None else spec.model))


def brain_from_file(
    path: str | Path,
    tools: Iterable[ToolLike] = (),
    *,
    llm: LLM | str | None = None,
    **options: Any,
) -> Brain:
    """Return the brain that a file describes.

    Example::

        brain = brain_from_file("net.toml", tools=[search], llm="openai/gpt-4.1")

    Args:
        path: A ``.toml``, ``.yaml`` or ``.yml`` file; for its schema: ``agent-brain nets schema``.
        tools: Tools besides those that the file names. Those of your own are code: a file can name
            them after :func:`agent_brain.tools.register_tool`.
        llm: A model that overrides the file's.
        **options: Further options of :class:`Brain`; they override the file. Another memory than
            the file's does not get its options.

    Raises:
        NetFileError: The file cannot be read or is invalid.
        NetDefinitionError: The net is invalid; the error has every problem.
        ToolDefinitionError: There is no tool of a name in the file.
    """
    spec = read_spec(path)
    net = build_net(spec, resolve_llm(llm if llm is not None else spec.model))
    if options.setdefault("memory", spec.memory) == spec.memory:
        options.setdefault("memory_options", spec.memory_options)
    options.setdefault("trace", spec.trace)
    options.setdefault("limits", Limits(**spec.limits.model_dump()))
    return Brain(net, tools=[*named_tools(spec.tools), *tools], **options)


def file_schema() -> dict[str, Any]:
    """Return the JSON Schema of a file, with every registered type of state."""
    schema = BrainSpec.model_json_schema()
    net = net_schema()
    schema["$defs"] = {**net["$defs"], **schema["$defs"], "NetSpec": net["$defs"]["NetSpec"]}
    schema["properties"]["states"] = net["$defs"]["NetSpec"]["properties"]["states"]
    return schema
