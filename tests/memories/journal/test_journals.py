"""The journals that need no server pass the conformance suite."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_brain.memories import Journal, RamJournal, SQLiteJournal
from agent_brain.testing import journal_conformance
from tests.support.conformance import pass_all

pytestmark = [pytest.mark.anyio, pytest.mark.also_on_trio]


def on_disk() -> SQLiteJournal:
    return SQLiteJournal(Path(tempfile.mkdtemp()) / "journal.db")


def nowhere() -> SQLiteJournal:
    return SQLiteJournal(":memory:")


@pytest.mark.parametrize("make", [RamJournal, on_disk, nowhere])
async def test_a_journal_behaves(make: Callable[[], Journal]) -> None:
    await pass_all(journal_conformance(make))
