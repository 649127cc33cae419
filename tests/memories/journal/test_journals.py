"""Both journals pass the conformance suite."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from agent_brain.memories import RamJournal, SQLiteJournal
from agent_brain.testing import Check, journal_conformance

pytestmark = [pytest.mark.anyio, pytest.mark.also_on_trio]

ON_DISK = [
    pytest.param(check, id=f"sqlite-{check}")
    for check in journal_conformance(lambda: SQLiteJournal(Path(tempfile.mkdtemp()) / "journal.db"))
]
IN_RAM = [pytest.param(check, id=f"ram-{check}") for check in journal_conformance(RamJournal)]
NOWHERE = [
    pytest.param(check, id=f"sqlite-in-ram-{check}")
    for check in journal_conformance(lambda: SQLiteJournal(":memory:"))
]


@pytest.mark.parametrize("check", IN_RAM + ON_DISK + NOWHERE)
async def test_a_journal_behaves(check: Check) -> None:
    await check()
