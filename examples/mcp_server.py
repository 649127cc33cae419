"""An agent as an MCP server: other programs ask it through its one tool ``ask``.

Needs ``pip install "agent-brain[mcp]"``. Over stdio, for programs that start it themselves::

    python examples/mcp_server.py

or over HTTP, on this computer::

    python examples/mcp_server.py 8000

``AGENT_BRAIN_MODEL`` chooses a model; without it the offline demo model answers.
"""

from __future__ import annotations

import sys
from contextlib import suppress

from agent_brain import Brain, Limits, tool
from agent_brain.errors import AgentBrainError
from agent_brain.serving import serve

HOURS = {"saturday": "10 to 14", "sunday": "closed"}


@tool
def opening_hours(day: str) -> str:
    """Tell when the library is open.

    Args:
        day: A day of the week, such as "sunday".
    """
    return HOURS.get(day.strip().lower(), "9 to 18")


def make_brain() -> Brain:
    """Build the brain of one conversation."""
    return Brain("react", tools=[opening_hours], limits=Limits(max_steps=20, timeout=60))


def main(port: str | None = None) -> None:
    if port is not None and not port.isdecimal():
        sys.exit(f"{port!r} is not a port. Try: python examples/mcp_server.py 8000")
    with suppress(KeyboardInterrupt):  # Ctrl-C
        serve(
            make_brain,
            address=None if port is None else ("127.0.0.1", int(port)),
            description="Answers questions about the library.",
            on_ready=lambda url: print(f"Serving at {url}; Ctrl-C ends it", flush=True),
        )


if __name__ == "__main__":
    try:
        main(*sys.argv[1:2])
    except AgentBrainError as error:
        sys.exit(str(error))
