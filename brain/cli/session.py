"""Runs of one brain, one after the other, on one event loop. Private."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from agent_brain.brain import Brain
from agent_brain.cli.decisions import Read, ask_person
from agent_brain.cli.exit_codes import UserError, user_errors
from agent_brain.cli.keyboard import signal_sockets
from agent_brain.cli.printers import Printer
from agent_brain.errors import ResumeError
from agent_brain.limits import WAITING, StopReason
from agent_brain.memories import Memory
from agent_brain.result import Result
from agent_brain.run import Run
from agent_brain.states.events import Position, RunFinished


@contextlib.contextmanager
def open_session(
    brain: Brain, new_printer: Callable[[], Printer], servers: Sequence[str] = ()
) -> Iterator[Session]:
    """Yield a session, with the tools of MCP servers; close the brain at the end."""
    with asyncio.Runner() as runner:
        try:
            if servers:
                with user_errors():
                    runner.run(brain.connect(*servers))
            yield Session(brain, new_printer, runner)
        finally:
            runner.run(brain.aclose())


class Session:
    """Runs a brain; Ctrl-C cancels the current run.

    Between runs nothing executes, so the program may block while it reads the user's input.
    """

    def __init__(
        self, brain: Brain, new_printer: Callable[[], Printer], runner: asyncio.Runner
    ) -> None:
        self.brain = brain
        self.clean = True
        """False while a run is not yet closed, as after a second Ctrl-C."""
        self._new_printer = new_printer
        self._runner = runner

    def run(self, question: str) -> Result:
        """Run one turn. What tools print goes to stderr, because stdout is for the answer."""
        return self._show(self.brain.stream(question))

    def resume(self, **decisions: Any) -> Result:
        """Continue the run in the memory; see :meth:`Brain.resume`."""
        return self._show(self.brain.stream_resume(**decisions))

    def settle(self, result: Result, read: Read) -> Result:
        """Ask the person and resume, until the run no longer waits or the person postpones it."""
        while result.stop_reason in WAITING:
            decisions = ask_person(self.brain.memory, read)
            if decisions is None:
                break
            result = self.resume(**decisions)
        return result

    def open_memory(self) -> Memory:
        """Return the memory, loaded from where it is stored."""
        with user_errors():
            self._runner.run(self.brain.memory.open())
        return self.brain.memory

    def _show(self, run: Run) -> Result:
        self.clean, show = False, self._new_printer()  # before stdout is redirected
        with contextlib.redirect_stdout(sys.stderr), _woken_by_signals(self._runner.get_loop()):
            return self._runner.run(self._drive(run, show))

    async def _drive(self, run: Run, show: Printer) -> Result:
        try:
            async with run:
                async for event in run:
                    show(event)
        except ResumeError as error:
            raise UserError(str(error)) from error
        except asyncio.CancelledError:
            result = run.result  # the stream was closed before it could yield its last event
            at = Position(result.run_id, result.steps)
            show(
                RunFinished(StopReason.CANCELLED, result.answer, result.output, result.usage, at=at)
            )
            raise
        finally:
            self.clean = True
        return run.result


@contextlib.contextmanager
def _woken_by_signals(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Wake ``loop`` at every signal.

    Otherwise a Ctrl-C in the moment before the loop sleeps is only noticed at the next event, and
    a blocked tool may prevent that.
    """
    with signal_sockets() as sockets:
        if sockets is None:
            yield
            return
        receiver, _ = sockets
        receiver.settimeout(0)
        loop.add_reader(receiver, receiver.recv, 4096)
        try:
            yield
        finally:
            loop.remove_reader(receiver)
