"""Ctrl-C for a server that reads stdin."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType


@contextmanager
def stdin_closed_by_interrupt() -> Iterator[None]:
    """Let Ctrl-C close stdin, so that its reader stops, and raise KeyboardInterrupt at the end.

    A thread that waits for stdin cannot be stopped, and a server cannot end before it does. So the
    server reads from a pipe, which can be closed, and a daemon thread copies stdin to it. A second
    Ctrl-C does not wait for the server.
    """
    try:
        original = os.dup(0)
    except OSError:  # stdin is closed
        yield
        return
    reading, writing = os.pipe()
    os.dup2(reading, 0)
    os.close(reading)
    pipe = [writing]  # empty once it is closed, perhaps in a signal handler: no lock

    def close() -> None:
        with suppress(IndexError, OSError):
            os.close(pipe.pop())

    def copy() -> None:
        with suppress(IndexError, OSError):
            while data := os.read(original, 65536):
                while data:
                    data = data[os.write(pipe[0], data) :]
        close()

    interrupted = False

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        interrupted = True
        signal.signal(signal.SIGINT, signal.default_int_handler)
        close()

    threading.Thread(target=copy, name="stdin", daemon=True).start()
    in_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, on_interrupt) if in_main else None
    try:
        yield
    finally:
        if in_main:
            signal.signal(signal.SIGINT, before)
        close()
        os.dup2(original, 0)
    if interrupted:
        raise KeyboardInterrupt
