"""The nets by name, and their pictures."""

from __future__ import annotations

import sys
from typing import Literal

from agent_brain.cli.agents import mistakes
from agent_brain.cli.netlike import load_net
from agent_brain.demo import DemoLLM
from agent_brain.nets import describe_net, net_names


def list_nets() -> None:
    """Write the name of every registered net, with the first line of what it says of itself."""
    names = net_names()
    width = max(map(len, names), default=0)
    for name in names:
        print(f"{name.ljust(width)}  {describe_net(name)}".rstrip())


def draw_net(name: str, language: Literal["mermaid", "dot", "svg"]) -> None:
    """Write a net's diagram to stdout.

    Raises:
        UserError: There is no such net.
    """
    with mistakes():
        net = load_net(name, DemoLLM())
    write = {"mermaid": net.to_mermaid, "dot": net.to_dot, "svg": net.to_svg}[language]
    sys.stdout.write(write())
