"""A text that was forgotten is in no byte of what a session has stored, wherever it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_brain import MessagesMemory
from agent_brain.memories import SQLiteJournal
from tests.memories.forgetting.places import PLACES, SECRET, TEXT
from tests.memories.forgetting.stores import on_disk

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]


@pytest.mark.parametrize("place", PLACES)
async def test_forgetting_a_text_reaches(place: str, tmp_path: Path) -> None:
    async with SQLiteJournal(tmp_path / "journal.db") as journal:
        await PLACES[place](journal)
        assert SECRET.encode() in on_disk(tmp_path)
        await MessagesMemory(journal=journal).forget(text=TEXT)
        assert SECRET.encode() not in on_disk(tmp_path)
