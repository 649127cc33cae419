"""The command ``agent-brain mcp``: serve an agent to other programs. Private."""

from __future__ import annotations

import click

from agent_brain.cli.exit_codes import UserError, notify, user_errors
from agent_brain.cli.options import AGENT, Options, option, with_options


@click.command()
@with_options(
    option(
        "--http",
        "[HOST:]PORT",
        "Serve over HTTP instead of stdin and stdout; other computers need --token.",
    ),
    option(
        "--token",
        "TEXT",
        "The bearer token that HTTP clients must send. Prefer AGENT_BRAIN_MCP_TOKEN: other users "
        "of this computer can read options.",
        envvar="AGENT_BRAIN_MCP_TOKEN",
    ),
    *AGENT,
)
@click.argument("net", default="react")
def mcp(http: str | None, token: str | None, options: Options) -> None:
    """Serve an agent over MCP: other programs call its tool, ask.

    NET is a name, a .toml or .yaml file, or module:name. Each client has a conversation of its own.
    """
    from agent_brain.brain import Brain
    from agent_brain.cli.agents import build
    from agent_brain.serving import serve

    address = None if http is None else _address(http)
    first: list[Brain] = [build(options)]  # errors are reported now, not to the first client
    with user_errors():
        serve(
            lambda: first.pop() if first else build(options),
            address=address,
            token=token or None,
            servers=options.servers,
            on_ready=lambda url: notify(f"Serving {url}", kind=""),
        )


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise UserError(f"--http {text!r}: write a port, or host:port, such as 127.0.0.1:8000")
    return host.strip("[]") or "127.0.0.1", int(port)
