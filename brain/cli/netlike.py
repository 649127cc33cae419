"""Nets by what a user can type: a registered name, a file, or an object in a module."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_brain.brainfile import file_schema, net_from_file
from agent_brain.cli.agents import mistakes
from agent_brain.cli.exits import ExitCode, UserError, tell
from agent_brain.cli.loading import load_object
from agent_brain.demo import DemoLLM
from agent_brain.nets import Net, NetDefinitionError, as_net, create_net
from agent_brain.states import LLM

SUFFIXES = (".toml", ".yaml", ".yml")


def load_net(name: str, llm: LLM) -> Net:
    """The net that ``name`` means.

    A registered name; a ``.toml`` or ``.yaml`` file; or ``module:name`` of a net, of a dict of
    states, or of a function that makes one of a model.

    Raises:
        UserError: There is no such net.
        NetDefinitionError: The net is wrong.
    """
    if Path(name).suffix in SUFFIXES:
        return net_from_file(name, llm)
    if ":" not in name:
        return create_net(name, llm)
    value: Any = load_object(f"--net {name!r}", name)
    if callable(value) and not isinstance(value, Net):
        value = value(llm)
    if not isinstance(value, Net | Mapping):
        raise UserError(f"--net {name!r} is {value!r}: name a net, a dict of states, or a function")
    return as_net(value)


def check(name: str) -> ExitCode:
    """Say everything that is wrong with a net, or that nothing is."""
    try:
        with mistakes(but=NetDefinitionError):
            net = load_net(name, DemoLLM())
    except NetDefinitionError as error:
        tell(str(error))
        return ExitCode.FAILED
    states = len(net.states)
    print(f"{net.name}: {states} state{'s' * (states != 1)}, nothing wrong")
    for problem in net.allowed():
        print(f"  allowed: [{problem.code}] {problem.message}")
    return ExitCode.ANSWERED


def print_schema() -> None:
    """Write the JSON Schema of net files to stdout."""
    print(json.dumps(file_schema(), indent=2))
