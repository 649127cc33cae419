"""The program that a case is run by: a brain over a memory, which may be restarted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio

from agent_brain.brain import Brain
from agent_brain.common.aio import CLEANUP_SECONDS
from agent_brain.experiments.case_plan import Case
from agent_brain.experiments.choices.memories import MemoryChoice
from agent_brain.experiments.choices.models import ModelChoice
from agent_brain.experiments.choices.nets import NetChoice
from agent_brain.experiments.settings import Settings
from agent_brain.hooks.rate_limits import RateLimits
from agent_brain.memories.base import Memory
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.runs.counts import Counts
from agent_brain.memories.stored import StoredMemory
from agent_brain.memories.wrapper import WrappingMemory, offers
from agent_brain.states.hooks import Hook
from agent_brain.tools.toolset import ToolLike
from agent_brain.usage.ledger import UsageLedger


@dataclass(frozen=True, slots=True, kw_only=True)
class Equipment:
    """What cases are run with.

    Attributes:
        nets: The nets by name.
        memories: The memories by name.
        models: The models by name.
        settings: The settings of the experiment.
        client: Returns the client of Chroma of the folder.
        limits: What calls of models wait for, together.
        ledger: Counts what all cases use; None if nobody asks.
    """

    nets: Mapping[str, NetChoice]
    memories: Mapping[str, MemoryChoice]
    models: Mapping[str, ModelChoice]
    settings: Settings
    client: Callable[[], Any]
    limits: RateLimits
    ledger: UsageLedger | None


@dataclass(eq=False, repr=False)
class Program:
    """A brain over a memory of its own.

    Attributes:
        sessions: The sessions that were opened and are stored, in order.
        used: What its runs have used, also those that raised or were cut off.

    Args:
        case: The case.
        equipment: What it is run with.
        tools: The tools of the case.
        hooks: The hooks of its runs.
        journal: Where its sessions are stored.
    """

    _case: Case
    _with: Equipment
    _tools: Sequence[ToolLike]
    _hooks: Sequence[Hook]
    _journal: Journal
    _memory: Memory | None = None
    _counted: set[str] = field(default_factory=set)  # the IDs of runs
    sessions: dict[str, None] = field(default_factory=dict)
    used: Counts = field(default_factory=Counts)

    async def start(self, session: str) -> Brain[Any]:
        """Make the memory of a session and a brain over it."""
        own, task, cell = self._with, self._case.task, self._case.cell
        place = {"journal": self._journal, "session": session, "tenant": self._case.id}
        choice = own.memories[cell.memory]
        memory = self._memory = choice.create(self._tools, client=own.client, **place)
        if memory.durable and memory.session is not None:
            self.sessions[memory.session] = None
        brain: Brain[Any] = Brain(
            own.nets[cell.net].make(own.models[cell.model].llm, task.output_type),
            memory,
            limits=task.limits or own.settings.limits,
            stuck=own.settings.stuck,
            hooks=self._hooks,
            trace=own.settings.trace and offers(memory, "record_call"),
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

    def count(self) -> None:
        """Count what the last run has used, once."""
        if self._memory is None or (control := self._memory.control).run_id in self._counted:
            return
        if control.run_id:
            self._counted.add(control.run_id)
            more = Counts(**control.spent.as_data(), step=control.step)
            self.used = self.used.plus(more)

    async def stop(self) -> None:
        """Count what was used, and close the memory. Models are closed by the experiment."""
        self.count()
        memory, self._memory = self._memory, None
        if memory is not None:
            with anyio.CancelScope(shield=True, deadline=anyio.current_time() + CLEANUP_SECONDS):
                await memory.aclose()
