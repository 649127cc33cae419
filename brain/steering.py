"""What is asked of a run in progress: to stop, to read messages, and to end what it waits for."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from agent_brain.common.aio import CLEANUP_SECONDS, in_trio
from agent_brain.errors import BrainUseError
from agent_brain.limits import StopReason
from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message, Role, as_message

if TYPE_CHECKING:
    import asyncio
    from types import AsyncGeneratorType


class Steering:
    """The requests to a run, which are carried out between its steps.

    Attributes:
        unread: Messages that are not in the memory yet, in the order of arrival.

    Args:
        run: The requests to the run, for a branch of it on a memory of its own: it is paused with
            the run, and reads nothing.
    """

    __slots__ = ("_run", "_stopping", "unread")

    def __init__(self, run: Steering | None = None) -> None:
        self._run = run
        self._stopping: StopReason | None = None
        self.unread: list[Message] = []

    @property
    def stopping(self) -> StopReason | None:
        """Why the run is to stop after the current step: it is stopped or paused."""
        if self._run is None:
            return self._stopping
        return StopReason.PAUSED if self._run.stopping is StopReason.PAUSED else None

    def stop(self, reason: StopReason) -> None:
        """Ask the run to stop after the current step; a pause does not replace a stop."""
        if self._stopping is None or reason is StopReason.STOPPED:
            self._stopping = reason

    def send(self, message: str | Message) -> None:
        """Add a message of the user.

        Raises:
            BrainUseError: It is empty, or not from a user.
        """
        received = as_message(message)
        if received.role is not Role.USER:
            raise BrainUseError(
                f"send() takes a text or a user message, not one with role={received.role.value!r}"
            )
        if not received.content.strip() and not received.attachments:
            raise BrainUseError("The message is empty")
        self.unread.append(received)

    async def record(self, memory: Memory) -> list[Message]:
        """Record the messages in ``memory`` and return them; none while tool calls are open."""
        received = [*self.unread]
        if not received or memory.control.next_actions:
            return []
        try:
            await memory.update(received)
        except BaseException:  # some memories still have to index what they have recorded
            with anyio.move_on_after(CLEANUP_SECONDS, shield=True):
                known = {message.id for message in await memory.dump()}
                self.unread = [message for message in self.unread if message.id not in known]
            raise
        del self.unread[: len(received)]
        return received


class Interrupted(BaseException):
    """Raised in a run that was interrupted while its consumer worked."""


class Interruption:
    """Ends what a run waits for.

    With a cancel scope around each wait, if there is one; else by cancelling the task that waits,
    as ``asyncio.timeout`` does, which costs next to nothing for items that are ready.

    Attributes:
        asked: Whether :meth:`ask` was called.
        ending: Whether the run is being ended: the task then waits only for what must be finished.
        current_task: That of asyncio, for the event loop of the run: to ask for the loop each time
            is a system call in Python 3.11. None before :meth:`note_task`.
        scope: The cancel scope of the current wait, or of the last one.
        task: The task that waits for the next event.
    """

    asked = False
    ending = False
    scope: anyio.CancelScope | None = None
    task: asyncio.Task[Any] | None = None
    _before = 0  # cancellations of the task that are older than the run
    _cancelled = False  # the task, which has not noticed yet
    current_task: Any = None

    @property
    def timed_out(self) -> bool:
        """Whether the deadline of the scope has passed."""
        return not self.asked and self.scope is not None and self.scope.cancel_called

    def ask(self, events: AsyncGeneratorType[Any, None]) -> None:
        """End the wait for the next of ``events``, if somebody waits; call it on the event loop."""
        if self.asked:
            return
        self.asked = True
        if self.scope is not None:
            self.scope.cancel()
        elif self.task is not None and events.ag_running and not self.ending:
            self._cancelled = self.task.cancel()

    def note_task(self) -> None:
        """Note the task that waits for the next event; for runs without scopes.

        Raises:
            Interrupted: The run was interrupted meanwhile.
        """
        if self.current_task is None:
            from asyncio import current_task, get_running_loop  # programs on trio do not import it

            self.current_task = partial(current_task, get_running_loop())
        if self.asked:
            raise Interrupted
        task = self.current_task()
        if task is not self.task:
            self.task, self._before = task, 0 if task is None else task.cancelling()

    async def explains(self, error: BaseException) -> bool:
        """Return whether ``error`` comes from the interruption, and from nothing else."""
        if isinstance(error, Interrupted):
            await self.take_back()
            return True
        if self._cancelled:
            from asyncio import CancelledError

            if isinstance(error, CancelledError):  # the task has noticed
                return not self._uncancel()
        await self.take_back()
        return False

    async def take_back(self) -> None:
        """Take back the cancellation of the task, if it has not noticed.

        Before Python 3.13 ``uncancel()`` alone leaves the task to be cancelled where it waits next.
        """
        if not self._cancelled or self._uncancel():
            return
        try:
            await anyio.lowlevel.cancel_shielded_checkpoint()
        except BaseException:
            if self.task is None or self.task.cancelling() > self._before:  # by somebody else
                raise

    def _uncancel(self) -> bool:
        """Withdraw the cancellation from the task; return whether somebody else cancelled it."""
        self._cancelled = False
        return self.task is not None and self.task.uncancel() > self._before


def needs_scope() -> bool:
    """Return whether a wait can only be ended by a cancel scope: everywhere but on asyncio."""
    if in_trio():
        return True
    from asyncio.events import get_running_loop

    try:
        get_running_loop()
    except RuntimeError:
        return True
    return False
