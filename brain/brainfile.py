"""A brain from a TOML or YAML file: a net, and what it runs with."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError
from pydantic_core import ErrorDetails

from agent_brain.brain import Brain
from agent_brain.default_model import resolve_llm
from agent_brain.limits import Limits
from agent_brain.nets.config import NetSpec, build_net, net_schema, read_file
from agent_brain.nets.errors import NetFileError
from agent_brain.nets.net import Net
from agent_brain.states.models.llm import LLM
from agent_brain.tools.suggest import did_you_mean
from agent_brain.tools.toolset import ToolLike
from agent_brain.tools.values import error_details, error_line


class LimitsSpec(BaseModel):
    """How far a run may go; what is not said has the default of :class:`Limits`."""

    model_config = ConfigDict(extra="forbid")

    max_steps: int | None = Field(100, gt=0)
    max_tokens: int | None = Field(None, gt=0)
    max_cost: float | None = Field(None, gt=0, description="US dollars")
    timeout: float | None = Field(None, gt=0, description="Seconds")


class BrainSpec(NetSpec):
    """A net file: the net, and what it runs with."""

    model: str | None = Field(None, description="A LiteLLM model name, or 'demo'")
    memory: str = Field("messages", description="A registered memory")
    memory_options: dict[str, JsonValue] = Field(default_factory=dict)
    limits: LimitsSpec = LimitsSpec.model_validate({})


def read_spec(path: str | Path) -> BrainSpec:
    """What a file says, with its shape checked.

    Raises:
        NetFileError: The file cannot be read, or says something that it may not: all of it.
    """
    try:
        spec = BrainSpec.model_validate(read_file(path))
    except ValidationError as error:
        lines = [f"  - {error_line(e)}{_meant(e)}" for e in error_details(error)]
        raise NetFileError("\n".join([f"{path} does not describe a net:", *lines])) from error
    if (spec.net is None) == (not spec.states):
        raise NetFileError(f"{path}: give either net = (a registered net) or [states], not both")
    return spec


def _meant(error: ErrorDetails) -> str:
    if error["type"] != "extra_forbidden":
        return ""
    fields = LimitsSpec.model_fields if "limits" in error["loc"][:-1] else BrainSpec.model_fields
    return f".{did_you_mean(error['loc'][-1], fields)}"


def net_from_file(path: str | Path, llm: LLM | str | None = None) -> Net:
    """The net that a file describes, checked.

    Raises:
        NetFileError: The file cannot be read, or is of the wrong shape.
        NetDefinitionError: The net is wrong: everything at once.
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
    """The brain that a file describes.

    Args:
        path: A ``.toml``, ``.yaml`` or ``.yml`` file (``agent-brain nets schema`` says what it may
            hold).
        tools: What the agent may call: code, so never named in the file.
        llm: A model in place of the one that the file names.
        **options: Further options of :class:`Brain`; they win over the file.

    Raises:
        NetFileError: The file cannot be read, or is of the wrong shape.
        NetDefinitionError: The net is wrong: everything at once.
    """
    spec = read_spec(path)
    net = build_net(spec, resolve_llm(llm if llm is not None else spec.model))
    options.setdefault("memory", spec.memory)
    if isinstance(options["memory"], str):
        options.setdefault("memory_options", spec.memory_options)
    options.setdefault("limits", Limits(**spec.limits.model_dump()))
    return Brain(net, tools=tools, **options)


def file_schema() -> dict[str, Any]:
    """The JSON Schema of a file, with every registered kind of state."""
    schema = BrainSpec.model_json_schema()
    net = net_schema()
    schema["$defs"] = {**net["$defs"], **schema["$defs"], "NetSpec": net["$defs"]["NetSpec"]}
    schema["properties"]["states"] = net["$defs"]["NetSpec"]["properties"]["states"]
    return schema
