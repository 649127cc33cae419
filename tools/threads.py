"""Run a tool's sync function in a thread, and say so when it holds the program at its exit.

Python cannot stop a thread. A call that is cancelled or takes too long returns at once, its thread
goes on, and a program that ends waits for it: killing it could leave what it writes half written.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread

T = TypeVar("T")

GRACE = 0.5  # seconds that a thread gets to end before anything is said


async def run_in_thread(name: str, function: Callable[[], T]) -> T:
    """What ``function`` returns. When the call is cancelled, its thread is left behind.

    Args:
        name: What the tool is called, for the message.
        function: Is called in a worker thread.
    """
    begun, ended = threading.Event(), threading.Event()

    def call() -> tuple[T]:  # a tuple: trio refuses a thread's function that returns a coroutine
        thread = threading.current_thread()
        usual, thread.name = thread.name, f"tool {name!r}"
        begun.set()
        try:
            return (function(),)
        finally:
            thread.name = usual
            ended.set()

    try:
        (result,) = await anyio.to_thread.run_sync(call, abandon_on_cancel=True)
    except BaseException:
        if begun.is_set() and not ended.is_set():
            watcher = threading.Thread(target=_watch, args=(name, ended), daemon=True)
            watcher.start()
        raise
    return result


def _watch(name: str, ended: threading.Event) -> None:
    """Once the program ends, say that it waits for the tool."""
    while not ended.wait(GRACE):
        if not threading.main_thread().is_alive():
            if not ended.wait(GRACE):
                sys.stderr.write(
                    f"The program waits for the tool {name!r}, which was cut off and still runs in "
                    "a thread; Ctrl-C ends it at once\n"
                )
                sys.stderr.flush()
            return
