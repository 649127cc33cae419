"""An agent that uses the tools of MCP servers: here those of ``mcp_server.py``.

Needs ``pip install "agent-brain[mcp]"``. It starts the server over stdio::

    python examples/mcp_client.py "Ask for the opening hours on Sunday"

or speaks to one that runs already::

    python examples/mcp_client.py "Ask for the opening hours on Sunday" http://127.0.0.1:8000/mcp

``AGENT_BRAIN_MODEL`` chooses a model; without it the offline demo model answers.
"""

from __future__ import annotations

import sys
from pathlib import Path

import anyio

from agent_brain import Brain

QUESTION = "Ask for the opening hours on Sunday"
SERVER = str(Path(__file__).parent / "mcp_server.py")


async def main(question: str = QUESTION, server: str = SERVER) -> None:
    async with await Brain.create("react", tools=[server]) as brain:
        print("Tools:", ", ".join(brain.memory.available_tools))
        async with brain.stream(question) as run:
            async for event in run:
                if event.kind == "action_started":
                    print(f"-> {event.action.name}({event.action.args})")
                elif event.kind == "action_finished":
                    print(f"<- {event.result.content}")
        print(run.result.answer)


if __name__ == "__main__":
    anyio.run(lambda: main(*sys.argv[1:]))
