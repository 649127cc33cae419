"""``agent-brain mcp``: an agent as a server for other programs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from agent_brain.cli import options
from agent_brain.cli.exits import UserError, reported, tell

TOKEN_VARIABLE = "AGENT_BRAIN_MCP_TOKEN"
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
            help="Serve over HTTP instead of stdin and stdout; beyond this computer with --token.",
            show_default=False,
        ),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            envvar=TOKEN_VARIABLE,
            help="What clients over HTTP must send as a bearer token. Better in the environment, "
            "as other users of this computer can read options.",
            show_default=False,
        ),
    ] = None,
    model: options.Model = None,
    memory: options.MemoryNameOrFile = None,
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
        from agent_brain.brain import Brain
        from agent_brain.cli.agents import AgentOptions, build, mistakes
        from agent_brain.serving import serve
        from agent_brain.serving.access import is_loopback

        address = None if http is None else _address(http)
        if address is not None and not token and not is_loopback(address[0]):
            raise UserError(
                f"--http {http}: other computers can reach it. Set {TOKEN_VARIABLE} to a token "
                "that clients must send, or leave the host out"
            )
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

        def make_brain() -> Brain:
            return first.pop() if first else build(agent)

        with mistakes():
            serve(
                make_brain,
                address=address,
                token=token or None,
                servers=servers or (),
                on_ready=lambda url: tell(f"Serving {url}", kind=""),
            )


def _address(text: str) -> tuple[str, int]:
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match["port"]) > 65535:
        raise UserError(f"--http {text!r}: write a port, or host:port, such as 127.0.0.1:8000")
    return (match["host"] or "127.0.0.1").strip("[]"), int(match["port"])
