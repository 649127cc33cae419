"""How far a tool call has come, said while it runs.

Who runs a call says where its progress goes, through a context variable: so a tool may report from
anywhere below its ``execute``, also from the thread that a sync function runs in.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a call has come.

    Attributes:
        done: How much is done, in units of the tool's own.
        total: How much there is to do, if that is known.
        message: What is going on, for people.
    """

    done: float
    total: float | None = None
    message: str | None = None


ProgressSink = Callable[[Progress], None]  # may be called from any thread, and must not block

progress_sink: ContextVar[ProgressSink | None] = ContextVar("progress_sink", default=None)
"""Where the progress of the call under way goes."""


def report_progress(done: float, total: float | None = None, message: str | None = None) -> None:
    """Say inside of a tool how far it has come; without effect where nobody listens."""
    sink = progress_sink.get()
    if sink is not None:
        sink(Progress(done, total, message))
