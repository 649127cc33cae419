"""Progress of a tool call, reported while it runs.

The caller of a tool sets a context variable to receive it, so a tool may report from anywhere below
its ``execute``, also from the thread that a sync function runs in.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass

from agent_brain.tools.secrets import hide_in_result


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a call.

    Attributes:
        done: How much is done, in any unit.
        total: How much there is to do, if known.
        message: The current activity, for people.
    """

    done: float
    total: float | None = None
    message: str | None = None


ProgressSink = Callable[[Progress], None]  # may be called from any thread, and must not block

progress_sink: ContextVar[ProgressSink | None] = ContextVar("progress_sink", default=None)
"""Receives the progress of the current call."""


def report_progress(done: float, total: float | None = None, message: str | None = None) -> None:
    """Report the progress of the current tool call. Has no effect if nobody listens."""
    sink = progress_sink.get()
    if sink is not None:
        sink(Progress(done, total, None if message is None else hide_in_result(message)))
