"""A served brain whose first run waits forever, and whose next one reports how that ended."""

from __future__ import annotations

import sys
from typing import Any

import anyio

from agent_brain import Brain
from agent_brain.serving import serve
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action

brains: list[Brain] = []


async def wait() -> str:
    """Wait for ever."""
    await anyio.sleep_forever()
    return ""


async def how_it_ended() -> str:
    """Wait until the first run has left its mark on the memory, and tell which."""
    while True:
        for message in await brains[0].memory.dump():
            if message.is_error:
                return message.content
        await anyio.sleep(0.002)


def think(messages: list[Any]) -> Any:
    if messages[-1].role == "tool":
        return messages[-1].content
    return [Action(name="wait" if "Wait" in messages[-1].content else "how_it_ended")]


def make_brain() -> Brain:
    brain = Brain(llm=ScriptedLLM([think] * 4), tools=[wait, how_it_ended])
    brains.append(brain)
    return brain


if __name__ == "__main__":
    address = ("127.0.0.1", 0) if sys.argv[1:] == ["http"] else None
    serve(make_brain, address=address, on_ready=lambda url: print(url, file=sys.stderr, flush=True))
