"""The program that a case is run by: a brain over a memory, which may be restarted. Private."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import anyio

from agent_brain.brain import Brain
from agent_brain.experiments.case_plan import Case
from agent_brain.experiments.choices.memories import MemoryChoice, Place
from agent_brain.experiments.choices.models import ModelChoice
from agent_brain.experiments.choices.nets import NetChoice
from agent_brain.experiments.running.pace import Pace
from agent_brain.experiments.running.tally import Tally
from agent_brain.experiments.settings import Settings
from agent_brain.memories.base import Memory
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.stored import StoredMemory
from agent_brain.memories.wrapper import WrappingMemory, offers
from agent_brain.states.hooks import Hook
from agent_brain.tools.aio import CLEANUP_SECONDS
from agent_brain.tools.toolset import ToolLike
from agent_brain.usage_ledger import UsageLedger


@dataclass(frozen=True, slots=True, kw_only=True)
class Equipment:
    """What a case is run with.

    Attributes:
        net: Its net.
        memory: Its memory.
        model: Its model.
        client: Returns the client of Chroma of the folder.
        pace_of: Returns the pace of a model.
        ledger: Counts what all cases use; None if nobody asks.
    """

    net: NetChoice
    memory: MemoryChoice
    model: ModelChoice
    client: Callable[[], Any]
    pace_of: Callable[[str], Pace]
    ledger: UsageLedger | None


class Program:
    """A brain over a memory of its own.

    Attributes:
        sessions: The sessions that were opened and are stored, in order.

    Args:
        case: The case.
        equipment: What it is run with.
        settings: The settings of the experiment.
        tools: The tools of the case.
        hooks: The hooks of its runs.
        journal: Where its sessions are stored.
        tally: Counts what its runs use.
    """

    def __init__(
        self,
        case: Case,
        equipment: Equipment,
        settings: Settings,
        tools: Sequence[ToolLike],
        hooks: Sequence[Hook],
        journal: Journal,
        tally: Tally,
    ) -> None:
        self._case = case
        self._with = equipment
        self._settings = settings
        self._tools = tools
        self._hooks = hooks
        self._journal = journal
        self._tally = tally
        self._memory: Memory | None = None
        self.sessions: dict[str, None] = {}

    async def start(self, session: str) -> Brain[Any]:
        """Make the memory of a session and a brain over it."""
        place = Place(
            journal=self._journal,
            session=session,
            tenant=self._case.id,
            client=self._with.client,
        )
        task = self._case.task
        memory = self._memory = self._with.memory.create(self._tools, place)
        if memory.durable and memory.session is not None:
            self.sessions[memory.session] = None
        brain: Brain[Any] = Brain(
            self._with.net.make(self._with.model.llm, task.output_type),
            memory,
            limits=task.limits or self._settings.limits,
            stuck=self._settings.stuck,
            hooks=self._hooks,
            trace=self._settings.trace and offers(memory, "record_call"),
        )
        await brain.open()
        return brain

    @property
    def lasts(self) -> bool:
        """Whether the memory is there again after a restart."""
        memory = self._memory
        if memory is None or memory.durable:
            return memory is not None
        while isinstance(memory, WrappingMemory):
            memory = memory.inner
        shared = isinstance(memory, StoredMemory) and memory.shared  # it stores its messages alone
        return shared and memory.session is not None

    async def stop(self) -> None:
        """Count what was used, and close the memory. Models are closed by the experiment."""
        memory, self._memory = self._memory, None
        if memory is not None:
            self._tally.count(memory)
            with anyio.CancelScope(shield=True, deadline=anyio.current_time() + CLEANUP_SECONDS):
                await memory.aclose()
