"""Find the nets and tools that a user names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agent_brain.brainfile import net_from_file
from agent_brain.cli.exit_codes import UserError
from agent_brain.common.references import load_object
from agent_brain.nets import Net, as_net, create_net
from agent_brain.states import LLM
from agent_brain.tools import BaseTool, ToolDefinitionError
from agent_brain.tools.function import as_tool

SUFFIXES = (".toml", ".yaml", ".yml")


def is_file(name: str) -> bool:
    """Return whether ``name`` is the path of a net file."""
    return Path(name).suffix.lower() in SUFFIXES


def load_net(name: str, llm: LLM) -> Net:
    """Return a registered net, that of a file, or ``module:name``: a net, states or a function."""
    if is_file(name):
        return net_from_file(name, llm)
    if ":" not in name:
        return create_net(name, llm)
    value: Any = load_object(f"--net {name!r}", name, UserError)
    if callable(value) and not isinstance(value, Net):
        value = value(llm)
    if not isinstance(value, Net | Mapping):
        raise UserError(f"--net {name!r} is {value!r}: name a net, a dict of states, or a function")
    return as_net(value)


def load_tools(references: Sequence[str]) -> list[BaseTool]:
    """Return the tools that the references name; modules are searched in the current folder too."""
    tools = []
    for reference in dict.fromkeys(references):
        what = f"--tool {reference!r}"
        try:
            tools.append(as_tool(load_object(what, reference, UserError)))  # type: ignore[arg-type]
        except ToolDefinitionError as error:
            raise UserError(f"{what}: {error}") from error
    return tools
