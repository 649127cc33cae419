"""Nets from TOML or YAML files, which contain only data and registered names."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError
from pydantic_core import ErrorDetails

from agent_brain.common.suggest import did_you_mean
from agent_brain.common.values import error_details, error_line
from agent_brain.nets.errors import NetDefinitionError, NetFileError, Problem
from agent_brain.nets.file_states import BuildContext, state_kinds
from agent_brain.nets.net import Net
from agent_brain.nets.registry import create_net
from agent_brain.states.base import State
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.models.llm import LLM


class NetSpec(BaseModel):
    """A net in a file: a registered one, or its states."""

    model_config = ConfigDict(extra="forbid")

    net: str | None = Field(None, description="A registered net, instead of states")
    options: dict[str, JsonValue] = Field(
        default_factory=dict, description="Options of the registered net"
    )
    name: str | None = Field(None, description="Name of the net")
    initial: str | None = Field(None, description="Initial state. Default: the first one")
    fallback: str | None = Field(None, description="State that answers when a limit is reached")
    allow: list[str] = Field(default_factory=list, description="Codes of problems to allow")
    states: dict[str, dict[str, JsonValue]] = Field(default_factory=dict)
    nets: dict[str, NetSpec] = Field(
        default_factory=dict, description="Nets for states of type subnet and parallel"
    )


def read_file(path: str | Path) -> dict[str, Any]:
    """Return the data in a ``.toml``, ``.yaml`` or ``.yml`` file.

    Raises:
        NetFileError: The file is missing, of another kind, or cannot be read.
    """
    path = Path(path)
    try:
        text = path.read_text("utf-8")
        if path.suffix == ".toml":
            return tomllib.loads(text)
        if path.suffix in (".yaml", ".yml"):
            return _read_yaml(text)
    except (OSError, ValueError) as error:
        raise NetFileError(f"{path} cannot be read: {error}") from error
    raise NetFileError(f"{path} is not a .toml, .yaml or .yml file")


def _read_yaml(text: str) -> dict[str, Any]:
    import yaml

    class Loader(yaml.SafeLoader):
        """Refuses a key that stands twice, of which YAML takes the last."""

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> Any:  # noqa: FBT001, FBT002 - PyYAML's
            keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            twice = next((key for key in keys if keys.count(key) > 1), None)
            if twice is not None:
                line = node.start_mark.line + 1
                raise ValueError(f"the key {twice!r} stands twice in the mapping of line {line}")
            return super().construct_mapping(node, deep)

    loader = Loader(text)
    try:
        data = loader.get_single_data()
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
    finally:
        loader.dispose()
    if not isinstance(data, dict):
        raise ValueError("it does not contain a mapping")
    return data


def build_net(spec: NetSpec, llm: LLM, *, where: str = "") -> Net:
    """Build a net.

    Args:
        spec: The description of the net.
        llm: The model of its states.
        where: The place in the file, for errors.

    Raises:
        NetDefinitionError: The net has problems; the error lists all of them.
        UnknownNetError: No registered net has that name, or it does not take the options.
    """
    if spec.net is not None:
        options: dict[str, Any] = dict(spec.options)
        return create_net(spec.net, llm, **options)
    inner = {
        name: build_net(part, llm, where=f"{where}nets.{name}.") for name, part in spec.nets.items()
    }
    keys = _keys(spec)
    context = BuildContext(
        llm, keys, lambda name: inner[name] if name in inner else create_net(name, llm)
    )
    states, problems = _states(spec, context, where)
    for role, name in (("initial", spec.initial), ("fallback", spec.fallback)):
        if name is not None and name not in keys:
            message = f"{where}{role}: {name!r} is not a state of the net"
            hint = f"Use one of: {', '.join(keys)}.{did_you_mean(name, keys)}"
            problems.append(Problem(f"unknown_{role}", message, hint))
    if problems:
        raise NetDefinitionError(problems, name=spec.name)
    return Net(
        states,
        initial=context.key_or_end(spec.initial),
        fallback=context.key_or_end(spec.fallback),
        name=spec.name,
        allow=spec.allow,
    )


def _keys(spec: NetSpec) -> Mapping[str, Enum]:
    members: Any = Enum(spec.name or "Net", {name: name for name in spec.states})  # type: ignore[misc]
    return {member.name: member for member in members}


def _states(
    spec: NetSpec, context: BuildContext, where: str
) -> tuple[dict[Enum, State], list[Problem]]:
    states: dict[Enum, State] = {}
    problems: list[Problem] = []
    for name, data in spec.states.items():
        try:
            states[context.keys[name]] = _state(dict(data), context)
        except ValidationError as error:
            hint = "'agent-brain nets schema' prints the options of each type of state"
            for e in error_details(error):
                message = f"{where}states.{name}.{error_line(e)}{_meant_option(e, data)}"
                problems.append(Problem("bad_option", message, hint, (name,)))
        except (StateDefinitionError, ValueError) as error:
            message = f"{where}states.{name}: {error}"
            problems.append(Problem("bad_state", message, "Correct it", (name,)))
    return states, problems


def _meant_option(error: ErrorDetails, data: Mapping[str, JsonValue]) -> str:
    """Return a suggestion for an unknown option."""
    if error["type"] != "extra_forbidden":
        return ""
    options, _ = state_kinds()[str(data["type"]).casefold()]
    return f".{did_you_mean(error['loc'][-1], options.model_fields)}"


def _state(data: dict[str, Any], context: BuildContext) -> State:
    kind = data.pop("type", None)
    found = state_kinds().get(str(kind).casefold())
    if found is None:
        raise StateDefinitionError(
            f"type = {kind!r} is not a kind of state; registered are: {', '.join(state_kinds())}."
            f"{did_you_mean(kind, state_kinds())}"
        )
    options, build = found
    return build(options.model_validate(data), context)


def net_schema() -> dict[str, Any]:
    """Return the JSON Schema of a net in a file, with all registered kinds of states."""
    schema = NetSpec.model_json_schema()
    definitions = schema.setdefault("$defs", {})
    kinds = []
    for name, (options, _) in state_kinds().items():
        kind = options.model_json_schema()
        definitions |= kind.pop("$defs", {})
        kind["properties"] = {"type": {"const": name}, **kind.get("properties", {})}
        kind["required"] = ["type", *kind.get("required", ())]
        definitions[f"state_{name}"] = kind
        kinds.append({"$ref": f"#/$defs/state_{name}"})
    properties = definitions.get("NetSpec", schema)["properties"]
    properties["states"]["additionalProperties"] = {"oneOf": kinds}
    return schema
