"""An assistant that knows you: every start is a new conversation, and it recalls the earlier ones.

Run it twice with the same name::

    python examples/assistant.py ann

``AGENT_BRAIN_MODEL`` chooses a model; without it the offline demo model answers. What was said is
kept in the folder ``assistant-data``.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import anyio

from agent_brain import LLM, Brain, LayeredMemory, VectorMemory, WindowedMemory
from agent_brain.tools.builtin import calculate, current_time


@asynccontextmanager
async def assistant(user: str, folder: Path, llm: LLM | None = None) -> AsyncIterator[Brain]:
    """Open a new conversation with ``user``.

    The conversation has a session of its own. When it ends, it is handed over to the user's memory,
    which all conversations share, and from which each recalls what fits its questions.
    """
    await anyio.Path(folder).mkdir(parents=True, exist_ok=True)
    journal = folder / "assistant.db"
    conversation = WindowedMemory(
        [calculate, current_time],
        max_messages=30,
        journal=journal,
        session=f"chat/{user}/{uuid4().hex}",
    )
    known = VectorMemory(
        path=folder / "vectors", journal=journal, session=f"user/{user}", shared=True
    )
    async with (
        LayeredMemory(conversation, known, k=5) as memory,
        Brain("react", memory, llm=llm) as brain,
    ):
        yield brain


def read_line() -> str:
    """Return the next line, or an empty one at the end of the input."""
    try:
        return input("\n> ").strip()
    except EOFError:
        return ""


async def main() -> None:
    user = sys.argv[1] if len(sys.argv) > 1 else "ann"
    async with assistant(user, Path("assistant-data")) as brain:
        print("Say something; an empty line ends the conversation.")
        while line := await anyio.to_thread.run_sync(read_line):
            async for text in brain.answer(line):
                print(text, end="", flush=True)


if __name__ == "__main__":
    anyio.run(main)
