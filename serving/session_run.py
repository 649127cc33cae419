"""A run of a session, whose events are numbered and kept for other readers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import anyio

from agent_brain.errors import BrainUseError, SessionBusyError
from agent_brain.limits import StopReason
from agent_brain.memories.message import Message
from agent_brain.result import Result
from agent_brain.run import Run
from agent_brain.serving.event_log import SessionEvent
from agent_brain.states.events import AgentEvent, RunFailed

if TYPE_CHECKING:
    from agent_brain.serving.session import Session

WhenBusy: TypeAlias = Literal["wait", "refuse", "queue"]
Choose: TypeAlias = Callable[[], Awaitable[tuple[Run[Any], str | Message | None]]]
"""Returns a run when it is its turn, and its task; None if it is resumed."""
MAX_UNREAD = 100  # messages to a run


class SessionRun:
    """A run in a session: ``async with session.stream(task) as run: async for item in run: …``.

    The items are :class:`SessionEvent`; ``item.event`` is the event. As with
    :class:`~agent_brain.Run`, it continues only when the next item is requested, and leaving the
    block early cancels it. The server reads the items of a detached run; see :meth:`wait`.

    Attributes:
        choose: Returns the run when it is its turn.
        when_busy: What to do while the session has another run.
        deps: What the tools get, if it is driven by the server.
        detached: Whether the server drives the run.
        after: ID of the last event of the session before this run.
        recorded: Of a run that was resumed, how many messages were recorded before.
        begun: Whether the run has begun: a run that fails at its start has no events.
        error: The error of a run that failed.
    """

    def __init__(
        self,
        session: Session,
        choose: Choose,
        when_busy: WhenBusy | None,
        *,
        deps: object = None,
        detached: bool = False,
    ) -> None:
        self.choose = choose
        self.when_busy: WhenBusy | None = when_busy
        self.deps = deps
        self.detached = detached
        self.after = session.log.last_id
        self.recorded: int | None = None
        self.begun = False
        self.error: Exception | None = None
        self._session = session
        self._run: Run[Any] | None = None
        self._events: AsyncIterator[AgentEvent] | None = None
        self._ended = False
        self._over: anyio.Event | None = None

    async def __aenter__(self) -> Self:
        if self._run is not None:
            raise BrainUseError("A run of a session can be entered only once")
        self._run = await self._session.begin(self)
        self.after = self._session.log.last_id
        return self

    async def __aexit__(self, *_: object) -> None:
        with anyio.CancelScope(shield=True):
            try:
                await self._entered.aclose()
            finally:
                self._ended = True
                await self._session.end(self)
                if self._over is not None:
                    self._over.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionEvent:
        if self._events is None:
            self._events = aiter(self._entered)
        try:
            event = await anext(self._events)
            if not self.begun:
                if type(event) is RunFailed:  # nothing has happened: the error says it
                    event = await anext(self._events)
                self.begun = True
            if type(event) is RunFailed:
                self.error = event.error  # also if nobody asks for more
        except StopAsyncIteration:
            raise
        except Exception as error:
            self.error = error
            raise
        return self._session.log.append(event)

    @property
    def _entered(self) -> Run[Any]:
        if self._run is None:
            raise BrainUseError("The run has not begun: use 'async with session.stream(…) as run'")
        return self._run

    @property
    def run_id(self) -> str:
        """The ID of the run."""
        return self._entered.run_id

    @property
    def ended(self) -> bool:
        """Whether the run has ended and the session is free for the next one."""
        return self._ended

    @property
    def result(self) -> Result[Any]:
        """The result of the run.

        Raises:
            BrainUseError: The run has not ended yet, or it failed.
        """
        return self._entered.result

    @property
    def unread(self) -> list[Message]:
        """Messages that were sent and not recorded."""
        return self._entered.unread

    @property
    def completed(self) -> bool:
        """Whether the run has reached its end: it was not stopped and does not wait."""
        try:
            return self.ended and self.error is None and self.result.stop_reason is StopReason.DONE
        except BrainUseError:  # it failed, or was left before it began
            return False

    def stop(self) -> None:
        """Stop after the current step; see :meth:`agent_brain.Run.stop`."""
        self._entered.stop()

    def cancel(self) -> None:
        """Cancel the run at once; see :meth:`agent_brain.Run.cancel`."""
        self._entered.cancel()

    def send(self, message: str | Message) -> None:
        """Send the run a message of the user; see :meth:`agent_brain.Run.send`.

        Raises:
            BrainUseError: The run has ended, or the message is empty or not from a user.
            SessionBusyError: Too many messages are unread.
        """
        if len(self._entered.unread) >= MAX_UNREAD:
            raise SessionBusyError(
                f"The run has not read {MAX_UNREAD} messages yet: wait until it has"
            )
        self._entered.send(message)

    async def over(self) -> None:
        """Wait until the run has ended."""
        if not self.ended:
            self._over = self._over or anyio.Event()
            await self._over.wait()

    async def wait(self) -> Result[Any]:
        """Wait until the run has ended and return its result; who waits counts as a reader.

        Raises:
            Exception: The error of the run, if it failed.
        """
        with self._session.log.read():
            await self.over()
        if self.error is not None:
            raise self.error
        return self.result
