"""An assistant that knows you: every start is a new conversation, and it recalls the earlier ones.

Run it twice with the same name::

    python examples/assistant.py ann

``AGENT_BRAIN_MODEL`` chooses a model; without it the offline demo model answers. What was said is
kept in the folder ``assistant-data``.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
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
    """Return the next line; an empty one at the end of the input and for Ctrl-C."""
    try:
        return input("\n> ").strip()
    except (EOFError, KeyboardInterrupt):
        print()
        return ""


async def reply(brain: Brain, line: str) -> None:
    """Print the answer as it comes."""
    async for text in brain.answer(line):
        print(text, end="", flush=True)


def main() -> None:
    """Talk with a user until an empty line, the end of the input, or Ctrl-C.

    Lines are read while the event loop rests. In a thread beside it, ``input`` would go on waiting
    for a line after Ctrl-C.
    """
    user = sys.argv[1] if len(sys.argv) > 1 else "ann"
    with asyncio.Runner() as runner:
        conversation = AsyncExitStack()
        brain = runner.run(
            conversation.enter_async_context(assistant(user, Path("assistant-data")))
        )
        try:
            print("Say something; an empty line ends the conversation.")
            while line := read_line():
                runner.run(reply(brain, line))
        except KeyboardInterrupt:
            print("\nStopped.")
        finally:
            runner.run(conversation.aclose())


if __name__ == "__main__":
    main()
