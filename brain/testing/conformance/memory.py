"""The conformance suite for memories."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from agent_brain.memories.base import Memory
from agent_brain.memories.journal import Journal, RamJournal
from agent_brain.testing.conformance.any_memory import ANY_MEMORY
from agent_brain.testing.conformance.check import Behaviour, Check, MakeMemory
from agent_brain.testing.conformance.journaled import JOURNALED
from agent_brain.testing.conformance.query_face import QUERY_FACE

JournaledMemory = Callable[[Journal, str, str | None], Memory | Awaitable[Memory]]


def memory_conformance(
    factory: MakeMemory,
    *,
    query_face: bool = False,
    journaled: JournaledMemory | None = None,
    journal: Callable[[], Journal] = RamJournal,
    holds: int | None = None,
) -> list[Check]:
    """The behaviours that a memory must have, as async checks.

    In a test module::

        @pytest.mark.anyio
        @pytest.mark.parametrize("check", memory_conformance(MyMemory), ids=str)
        async def test_conforms(check):
            await check()

    Args:
        factory: Makes a new, empty memory; sync or async.
        query_face: Check the query face of the built-in memories too (``messages``, ``forget`` …).
        journaled: Makes a memory on ``(journal, session, tenant)``; checks that it lasts. The
            session is opened by each memory that it makes.
        journal: Makes a new journal for each of those checks.
        holds: How many messages the memory is sure to hold, if it lets older ones go, as a window
            does; behaviours for which it takes more are left out. None: it holds all.

    Returns:
        One check a behaviour; each makes memories of its own.
    """

    def shown(behaviours: list[Behaviour]) -> list[Behaviour]:
        return [b for b in behaviours if holds is None or getattr(b, "needs", 1) <= holds]

    checks = [Check(behaviour, factory) for behaviour in shown(ANY_MEMORY)]
    if query_face:
        checks += [Check(behaviour, factory) for behaviour in shown(QUERY_FACE)]
    if journaled is not None:
        checks += [_JournaledCheck(b, journaled, journal) for b in shown(JOURNALED)]
    return checks


class _JournaledCheck(Check):
    """A check whose memories share one journal, which is closed afterwards."""

    def __init__(
        self, behaviour: Any, make: JournaledMemory, journal: Callable[[], Journal]
    ) -> None:
        super().__init__(behaviour, make)
        self._new_journal = journal

    async def __call__(self) -> None:
        journal = self._new_journal()
        try:
            await Check(self._behaviour, partial(self._make, journal))()
        finally:
            await journal.aclose()
