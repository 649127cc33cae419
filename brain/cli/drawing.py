"""The nets by name, and their pictures."""

from __future__ import annotations

import inspect
import sys
from typing import Literal

from agent_brain.cli.agents import mistakes
from agent_brain.demo import DemoLLM
from agent_brain.nets import create_net, net_names, registry


def list_nets() -> None:
    """Write the name of every registered net, with the first line of what it says of itself."""
    names = net_names()
    width = max(map(len, names), default=0)
    for name in names:
        text = (inspect.getdoc(registry._factories[name]) or "").partition("\n")[0]
        print(f"{name.ljust(width)}  {text}".rstrip())


def draw_net(name: str, language: Literal["mermaid", "dot"]) -> None:
    """Write a net's diagram to stdout.

    Raises:
        UserError: There is no such net.
    """
    with mistakes():
        net = create_net(name, DemoLLM())
    sys.stdout.write(net.to_dot() if language == "dot" else net.to_mermaid())
