"""Ctrl-C for a server that reads stdin."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

STDIN = 0
CHUNK = 65536


@contextmanager
def stdin_ending_at_interrupt() -> Iterator[None]:
    """Let Ctrl-C end stdin inside, so that whoever reads it stops; then raise KeyboardInterrupt.

    A thread that waits for stdin cannot be stopped, and a server cannot end before it. So the
    server reads from a pipe, which can be closed, and a thread that holds up nobody fills it.
    A second Ctrl-C does not wait for the server.
    """
    try:
        original = os.dup(STDIN)
    except OSError:  # there is no stdin
        yield
        return
    reading, writing = os.pipe()
    os.dup2(reading, STDIN)
    os.close(reading)
    end = _End(writing)
    threading.Thread(target=_fill, args=(original, end), name="stdin", daemon=True).start()
    interrupted = False

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        interrupted = True
        signal.signal(signal.SIGINT, signal.default_int_handler)
        end.close()

    in_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, on_interrupt) if in_main else None
    try:
        yield
    finally:
        if in_main:
            signal.signal(signal.SIGINT, before)
        end.close()
        os.dup2(original, STDIN)
    if interrupted:
        raise KeyboardInterrupt


class _End:
    """The end of a pipe that is written to; closed once."""

    def __init__(self, descriptor: int) -> None:
        self._open = [descriptor]

    def write(self, data: bytes) -> None:
        while data and self._open:
            data = data[os.write(self._open[0], data) :]

    def close(self) -> None:
        with suppress(IndexError, OSError):  # from a signal handler too: no lock
            os.close(self._open.pop())


def _fill(source: int, end: _End) -> None:
    with suppress(OSError, IndexError):
        while data := os.read(source, CHUNK):
            end.write(data)
    end.close()
