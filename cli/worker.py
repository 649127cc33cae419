"""The command ``worker``."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

import anyio

from agent_brain.cli.exit_codes import ExitCode, UserError, notify, user_errors
from agent_brain.cli.options import Options
from agent_brain.common.references import load_object

if TYPE_CHECKING:
    from agent_brain.workers import RunQueue

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def load_queue(reference: str) -> RunQueue:
    """Return the queue that ``module:name`` or ``path/to/file.py:name`` names.

    Raises:
        UserError: It names something else.
    """
    with user_errors():
        from agent_brain.workers import RunQueue

        found = load_object(repr(reference), reference, UserError)
    if not isinstance(found, RunQueue):
        raise UserError(f"{reference!r} is {found!r}: name a RunQueue")
    return found


def work(queue: str, options: Options) -> ExitCode:
    """Do the runs of a queue until the process gets a signal to stop."""
    loaded = load_queue(queue)
    from agent_brain.workers.performing import one_error

    with one_error():
        asyncio.run(_work(loaded))
    return ExitCode.ANSWERED


async def _work(queue: RunQueue) -> None:
    stop = anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(_wait_for_signal, stop)
        await queue.work(stop=stop, on_ready=_ready)
        group.cancel_scope.cancel()


def _ready(name: str) -> None:
    notify(f"Worker {name} takes runs. Ctrl-C stops it after the steps under way", kind="")


async def _wait_for_signal(stop: anyio.Event) -> None:
    with anyio.open_signal_receiver(*SIGNALS) as signals:
        async for _ in signals:
            if not stop.is_set():
                notify("Stopping: runs end their step, and other workers continue them", kind="")
                stop.set()
