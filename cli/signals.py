"""Signals that end what is under way."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any


@contextlib.contextmanager
def signals_wake_loop() -> Iterator[None]:
    """Have every signal wake the running event loop.

    A Ctrl-C in the moment before the loop sleeps would otherwise wait for the next event; with a
    handler for one signal, every signal wakes it.
    """
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGURG, bool)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGURG)


def end_quietly_at_second_ctrl_c() -> None:
    """Have the running event loop tell nothing of tasks that end because of another Ctrl-C.

    The first one cancels them, and the next is raised in the midst of that.
    """
    asyncio.get_running_loop().set_exception_handler(_handle)


def _handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    error = context.get("exception")
    if isinstance(error, BaseExceptionGroup):
        error = error.split(KeyboardInterrupt)[1] or KeyboardInterrupt()
    if not isinstance(error, KeyboardInterrupt):
        loop.default_exception_handler(context)


@contextlib.contextmanager
def sigterm_as_ctrl_c() -> Iterator[threading.Event]:
    """Have SIGTERM do what Ctrl-C does, as a ``timeout`` or a scheduler sends it.

    Yields an event that is set once one has come.
    """
    came = threading.Event()

    def interrupt(number: int, frame: FrameType | None) -> None:
        came.set()
        signal.raise_signal(signal.SIGINT)

    if threading.current_thread() is not threading.main_thread():
        yield came
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield came
    finally:
        signal.signal(signal.SIGTERM, before)
