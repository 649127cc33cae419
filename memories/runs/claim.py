"""Lets one run at a time use a memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import anyio

from agent_brain.common.aio import CLEANUP_SECONDS
from agent_brain.memories.errors import MemoryBusyError
from agent_brain.memories.runs.work import family

if TYPE_CHECKING:
    from agent_brain.memories.base import Memory


class Claim:
    """A run's claim on its memory and on the memories that it wraps.

    Attributes:
        abandoned: Whether nobody reads the run any more and it is being closed.
        memories: The memory, and all that it wraps.
    """

    __slots__ = ("_leased", "_released", "abandoned", "memories")

    def __init__(self, memories: list[Memory]) -> None:
        self.memories = memories
        self._leased: tuple[Memory, ...] = ()
        self._released: anyio.Event | None = None  # made when somebody waits
        self.abandoned = False

    @classmethod
    async def take(cls, memory: Memory) -> Self:
        """Claim ``memory`` for a run.

        Waits until an abandoned run is closed.

        Args:
            memory: The memory; what it wraps is claimed as well.

        Raises:
            MemoryBusyError: Another run uses it.
        """
        memories = family(memory)
        while other := next((m.claim for m in memories if m.claim), None):
            if not other.abandoned:
                raise MemoryBusyError(
                    "Another run is using this memory. Wait for it to end, or give each "
                    "run a memory of its own (a Brain each, or memory.fork()). An answer() that "
                    "was left early and is still referred to ends with its aclose(): "
                    "'async with aclosing(brain.answer(task)) as chunks'"
                )
            other._released = other._released or anyio.Event()
            await other._released.wait()
        claim = cls(memories)
        for held in memories:
            held.claim = claim
        return claim

    async def acquire(self) -> None:
        """Get the leases of the memories' sessions, so that no other process runs them.

        Raises:
            LeaseHeldError: Another runner has one.
        """
        for memory in self.memories:
            if memory.leasable:
                self._leased += (memory,)
                await memory.acquire()

    def reread(self) -> None:
        """Have the memories read again at their next use: their store has failed."""
        for memory in self.memories:
            memory.reread()

    async def release(self) -> None:
        """Give the leases back, and let the next run start.

        Raises:
            Exception: What the first memory raised that could not give its lease back.
        """
        failed: Exception | None = None
        try:
            for memory in self._leased:
                with anyio.move_on_after(CLEANUP_SECONDS, shield=True):
                    try:
                        await memory.release()
                    except Exception as error:
                        failed = failed or error
            if failed is not None:
                raise failed
        finally:
            for memory in self.memories:
                if memory.claim is self:
                    memory.claim = None
            if self._released is not None:
                self._released.set()

    def __deepcopy__(self, memo: dict[int, Any]) -> None:
        """Return None: a copy of a memory is not claimed."""
