"""Runs, one after the other, on one event loop; Ctrl-C cancels the one under way."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, Self

from agent_brain.brain import Brain
from agent_brain.cli.agents import mistakes
from agent_brain.cli.exits import UserError
from agent_brain.errors import ResumeError
from agent_brain.limits import StopReason
from agent_brain.memories import Memory
from agent_brain.result import Result
from agent_brain.run import Run
from agent_brain.states.events import Event, Position, RunFinished


class Turns:
    """The turns of one session; closes the brain when it is left.

    Between turns nothing runs, so that reading the user's next words may block.

    Args:
        brain: The agent.
        servers: MCP servers to connect it to.
    """

    def __init__(self, brain: Brain, servers: Sequence[str] = ()) -> None:
        self.brain = brain
        self._servers = servers
        self.clean = True
        """No turn was left in its middle, as it is when Ctrl-C is pressed twice."""
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        if self._servers:
            try:
                with mistakes():
                    self._runner.run(self.brain.connect(*self._servers))
            except BaseException:
                self._runner.close()
                raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._runner:
            self._runner.run(self.brain.aclose())

    def take(self, question: str, show: Callable[[Event], None]) -> Result:
        """Run one turn, showing its events as they come.

        What tools print goes to stderr meanwhile: stdout is for the answer.

        Raises:
            KeyboardInterrupt: It was cancelled; the memory keeps what was finished.
            Exception: What :meth:`Brain.run` raises.
        """
        return self._show(self.brain.stream(question), show)

    def resume(self, show: Callable[[Event], None], **decisions: Any) -> Result:
        """Go on with the run that the memory stands in, as :meth:`take` does with a new one.

        Args:
            show: Shows an event.
            **decisions: As :meth:`Brain.resume` takes them.

        Raises:
            UserError: There is nothing to go on with, or the decisions do not fit.
        """
        return self._show(self.brain.stream_resume(**decisions), show)

    def memory(self) -> Memory:
        """The session's memory, read from where it is kept."""
        with mistakes():
            self._runner.run(self.brain.memory.open())
        return self.brain.memory

    def _show(self, run: Run, show: Callable[[Event], None]) -> Result:
        self.clean = False
        with contextlib.redirect_stdout(sys.stderr), _wakes_at_signals(self._runner.get_loop()):
            return self._runner.run(self._take(run, show))

    async def _take(self, run: Run, show: Callable[[Event], None]) -> Result:
        try:
            async with run:
                async for event in run:
                    show(event)
        except ResumeError as error:
            raise UserError(str(error)) from error
        except asyncio.CancelledError:
            show(_cancelled(run.result))
            raise
        finally:
            self.clean = True
        return run.result


@contextlib.contextmanager
def _wakes_at_signals(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Wake ``loop`` at every signal.

    A Ctrl-C that comes in the moment before the loop falls asleep would else be noticed only when
    something else happens, which a blocked tool may keep from happening.
    """
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        yield
        return
    inner, outer = socket.socketpair()
    with inner, outer:
        inner.settimeout(0)
        outer.settimeout(0)
        loop.add_reader(inner, inner.recv, 4096)
        before = signal.set_wakeup_fd(outer.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            loop.remove_reader(inner)


def _cancelled(result: Result) -> RunFinished:
    """The last event of a run whose stream was cut off before it could bring one."""
    at = Position(result.run_id, result.steps)
    return RunFinished(StopReason.CANCELLED, result.answer, result.output, result.usage, at=at)
