"""Find the nets and tools that a user names; the commands on nets."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import click

from agent_brain.brainfile import brain_from_file, file_schema, net_from_file
from agent_brain.cli.exit_codes import ExitCode, UserError, notify, user_errors
from agent_brain.cli.options import Options
from agent_brain.common.references import load_object
from agent_brain.common.text import count_of
from agent_brain.demo import DemoLLM
from agent_brain.nets import Net, NetDefinitionError, as_net, create_net, describe_net, net_names
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


def list_nets(
    draw: str | None, language: Literal["mermaid", "dot", "svg"], options: Options
) -> None:
    """List the nets, or draw one; nothing if a command on nets follows."""
    if click.get_current_context().invoked_subcommand is not None:
        return
    if draw is not None:
        with user_errors():
            net = load_net(draw, DemoLLM())
        write = {"mermaid": net.to_mermaid, "dot": net.to_dot, "svg": net.to_svg}[language]
        sys.stdout.write(write())
        return
    names = net_names()
    width = max(map(len, names), default=0)
    for name in names:
        print(f"{name.ljust(width)}  {describe_net(name)}".rstrip())


def check(options: Options) -> ExitCode:
    """Report every problem of a net."""
    with user_errors():
        try:
            if is_file(options.net):  # its memory, tools and limits are checked too
                net = brain_from_file(options.net, llm=DemoLLM()).net
            else:
                net = load_net(options.net, DemoLLM())
        except NetDefinitionError as error:
            notify(str(error))
            return ExitCode.FAILED
    print(f"{net.name}: {count_of(len(net.states), 'state')}, no problems")
    for problem in net.allowed():
        print(f"  allowed: [{problem.code}] {problem.message}")
    return ExitCode.ANSWERED


def schema(options: Options) -> None:
    """Write the JSON Schema of net files."""
    print(json.dumps(file_schema(), indent=2))
