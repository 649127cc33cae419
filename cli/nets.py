"""The commands on nets."""

from __future__ import annotations

import json
import sys
from typing import Literal

import click

from agent_brain.brainfile import brain_from_file, file_schema
from agent_brain.cli.exit_codes import ExitCode, notify, user_errors
from agent_brain.cli.net_reference import is_file, load_net
from agent_brain.cli.options import Options
from agent_brain.common.text import count_of
from agent_brain.demo import DemoLLM
from agent_brain.nets import Net, NetDefinitionError, describe_net, net_names


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
            net = _checked(options.net)
        except NetDefinitionError as error:
            notify(str(error))
            return ExitCode.FAILED
    print(f"{net.name}: {count_of(len(net.states), 'state')}, no problems")
    for problem in net.allowed():
        print(f"  allowed: [{problem.code}] {problem.message}")
    return ExitCode.ANSWERED


def _checked(reference: str) -> Net:
    """Return a net; of a file, the memory, tools and limits are looked at too."""
    if not is_file(reference):
        return load_net(reference, DemoLLM())
    return brain_from_file(reference, llm=DemoLLM()).net


def schema(options: Options) -> None:
    """Write the JSON Schema of net files."""
    print(json.dumps(file_schema(), indent=2))
