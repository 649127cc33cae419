"""What is asked of a run in progress: to stop, and to read messages."""

from __future__ import annotations

import anyio

from agent_brain.common.aio import CLEANUP_SECONDS
from agent_brain.errors import BrainUseError
from agent_brain.limits import StopReason
from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message, Role, as_message


class Steering:
    """The requests to a run, which are carried out between its steps.

    Attributes:
        unread: Messages that are not in the memory yet, in the order of arrival.
    """

    __slots__ = ("_stopping", "unread")

    def __init__(self) -> None:
        self._stopping: StopReason | None = None
        self.unread: list[Message] = []

    @property
    def stopping(self) -> StopReason | None:
        """Why the run is to stop after the current step: it is stopped or paused."""
        return self._stopping

    def stop(self, reason: StopReason) -> None:
        """Ask the run to stop after the current step; a pause does not replace a stop."""
        if self._stopping is None or reason is StopReason.STOPPED:
            self._stopping = reason

    def for_branch(self) -> Steering:
        """Return the requests as a branch with a memory of its own carries them out."""
        return BranchSteering(self)

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


class BranchSteering(Steering):
    """The requests to a run in a branch of it: it is paused with the run, and reads nothing.

    Args:
        run: The requests to the run.
    """

    __slots__ = ("_run",)

    def __init__(self, run: Steering) -> None:
        super().__init__()
        self._run = run

    @property
    def stopping(self) -> StopReason | None:
        """Why the branch is to stop after its current step."""
        return StopReason.PAUSED if self._run.stopping is StopReason.PAUSED else None
