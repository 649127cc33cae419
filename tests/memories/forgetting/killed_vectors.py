"""A program that forgets a message and is killed behind a write: FOLDER NUMBER."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from agent_brain.memories import SQLiteJournal, VectorMemory
from agent_brain.memories.embedders import FunctionEmbedder
from tests.memories.forgetting.places import TEXT
from tests.memories.forgetting.test_memories import embed
from tests.support.journals import Killed, MortalJournal

GONE = "the-one-that-goes"  # its ID
end = partial(os._exit, 9)  # as kill -9 does


def open_memory(folder: Path, **options: Any) -> VectorMemory:
    place = {"path": folder, "journal": folder / "journal.db"} | options
    return VectorMemory(**place, embedder=FunctionEmbedder(embed))


async def main(folder: Path, dies_at: int) -> None:
    async with SQLiteJournal(folder / "journal.db") as journal:
        memory = open_memory(folder, journal=MortalJournal(journal, dies_at, after=True))
        try:
            await memory.forget(text=TEXT)
        except Killed:
            end()
        await memory.aclose()


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), int(sys.argv[2]))
