"""The journal of one case while it is run. Private."""

from __future__ import annotations

from agent_brain.memories.journal.base import Journal
from agent_brain.memories.journal.ram import RamJournal


class CaseJournal(RamJournal):
    """Holds the sessions of a case in RAM until it ends.

    A case that does not end starts from its beginning, so nothing of it must be on the disk before,
    and one write at the end is cheaper than one in each step. Memories treat it as the journal of a
    file, so that a case behaves as a program that is restarted.
    """

    persistent = True

    async def copy_to(self, journal: Journal) -> None:
        """Write all sessions to another journal, which has none of them."""
        for key in await self.sessions():
            await journal.load(key, await self.read(key, history=True))
