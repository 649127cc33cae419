"""The command ``agent-brain mcp``: serve an agent to other programs. Private."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from agent_brain.cli.exit_codes import UserError, notify, user_errors
from agent_brain.cli.options import AgentOptions, option, with_options

TOKEN_VARIABLE = "AGENT_BRAIN_MCP_TOKEN"
_ADDRESS = re.compile(r"(?:(?P<host>\[[^\]]+\]|[^:]+):)?(?P<port>\d{1,5})")


@with_options
def mcp(
    *,
    net: Annotated[
        str,
        typer.Argument(metavar="[NET]", help="A net: a name, a .toml or .yaml file, module:name."),
    ] = "react",
    http: Annotated[
        str | None,
        option(
            "--http",
            "[HOST:]PORT",
            "Serve over HTTP instead of stdin and stdout; other computers need --token.",
        ),
    ] = None,
    token: Annotated[
        str | None,
        option(
            "--token",
            None,
            "The bearer token that HTTP clients must send. Prefer the environment variable: other "
            "users of this computer can read options.",
            envvar=TOKEN_VARIABLE,
        ),
    ] = None,
    agent: AgentOptions,
) -> None:
    """Serve the agent over MCP: other programs call its tool, ask.

    Each client has a conversation of its own.
    """
    from agent_brain.brain import Brain
    from agent_brain.cli.agents import build
    from agent_brain.serving import serve
    from agent_brain.serving.access import is_loopback

    address = None if http is None else _address(http)
    if address is not None and not token and not is_loopback(address[0]):
        raise UserError(
            f"--http {http}: other computers can reach it. Set {TOKEN_VARIABLE} to a token "
            "that clients must send, or omit the host"
        )
    first: list[Brain] = [build(agent)]  # errors are reported now, not to the first client
    with user_errors():
        serve(
            lambda: first.pop() if first else build(agent),
            address=address,
            token=token or None,
            servers=agent.servers,
            on_ready=lambda url: notify(f"Serving {url}", kind=""),
        )


def _address(text: str) -> tuple[str, int]:
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match["port"]) > 65535:
        raise UserError(f"--http {text!r}: write a port, or host:port, such as 127.0.0.1:8000")
    return (match["host"] or "127.0.0.1").strip("[]"), int(match["port"])
