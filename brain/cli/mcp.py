"""``agent-brain mcp``: an agent as a server for other programs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from agent_brain.cli import options
from agent_brain.cli.exits import UserError, reported, tell

_ADDRESS = re.compile(r"(?:(?P<host>\[[^\]]+\]|[^:]+):)?(?P<port>\d{1,5})")


def mcp(
    *,
    net: Annotated[
        str, typer.Argument(metavar="[NET]", help="A net by name, or in a .toml or .yaml file.")
    ] = "react",
    http: Annotated[
        str | None,
        typer.Option(
            "--http",
            metavar="[HOST:]PORT",
            help="Serve over HTTP, without authentication, instead of stdin and stdout.",
            show_default=False,
        ),
    ] = None,
    model: options.Model = None,
    memory: options.MemoryName = "messages",
    tool: options.Tools = None,
    servers: options.Servers = None,
    max_steps: options.MaxSteps = None,
    timeout: options.Timeout = None,
    max_cost: options.MaxCost = None,
    debug: options.Debug = False,
) -> None:
    """Be an MCP server: other programs ask the agent through its one tool, ask.

    Each of its clients has a conversation of its own.
    """
    with reported(debug=debug):
        from agent_brain.cli.agents import AgentOptions, build
        from agent_brain.controller import Brain
        from agent_brain.serving import serve

        in_file = Path(net).suffix.lower() in (".toml", ".yaml", ".yml")
        agent = AgentOptions(
            model=model,
            net="react" if in_file else net,
            file=net if in_file else None,
            memory=memory,
            tools=tuple(tool or ()),
            max_steps=max_steps,
            timeout=timeout,
            max_cost=max_cost,
        )
        first: list[Brain] = [build(agent)]  # what is wrong is said now, not to the first client

        async def make_brain() -> Brain:
            brain = first.pop() if first else build(agent)
            if servers:
                await brain.connect(*servers)
            return brain

        address = None if http is None else _address(http)
        serve(make_brain, address=address, on_ready=lambda url: tell(f"Serving {url}", kind=""))


def _address(text: str) -> tuple[str, int]:
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match["port"]) > 65535:
        raise UserError(f"--http {text!r}: write a port, or host:port, such as 127.0.0.1:8000")
    return (match["host"] or "127.0.0.1").strip("[]"), int(match["port"])
