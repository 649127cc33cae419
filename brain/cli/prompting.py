"""Reading the user's next words."""

from __future__ import annotations

import importlib
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

PROMPT = "\nyou> "


def read_line(prompt: str = "") -> str | None:
    """The next line of a file or a pipe, which shows no prompt; None at its end."""
    return sys.stdin.readline() or None


def ask_person(prompt: str = PROMPT) -> str | None:
    """The next line from the keyboard, as :func:`read_keyboard` reads it, for a chat.

    Ctrl-C gives up the line, not the chat.
    """
    while True:
        try:
            return read_keyboard(prompt)
        except KeyboardInterrupt:
            print("\n(/exit or Ctrl-D leaves)", file=sys.stderr)


def read_keyboard(prompt: str) -> str | None:
    """The next line from the keyboard, with line editing where Python has it; None for Ctrl-D.

    The prompt never goes into a redirected stdout.

    Raises:
        KeyboardInterrupt: Ctrl-C.
    """
    with suppress(ImportError):  # there is none on Windows
        importlib.import_module("readline")
    try:
        if sys.stdout.isatty():
            with _interruptible():
                return input(prompt)
        print(prompt, end="", file=sys.stderr, flush=True)
        return read_line()
    except EOFError:
        print(file=sys.stderr)
        return None


@contextmanager
def _interruptible() -> Iterator[None]:
    """Have Ctrl-C end the wait for a key, whenever it comes.

    ``input`` looks for signals and then waits in C: one that comes in between would be noticed at
    the next key. A thread interrupts the wait, with a signal that readline handles, until then.
    """
    main = threading.main_thread()
    if sys.platform == "win32" or threading.current_thread() is not main:
        yield
        return
    inner, outer = socket.socketpair()
    outer.settimeout(0)
    seen = threading.Event()

    def interrupt() -> None:
        if inner.recv(1):  # nothing: the line is there
            while not seen.wait(0.05):
                signal.pthread_kill(main.ident or 0, signal.SIGWINCH)

    thread = threading.Thread(target=interrupt, daemon=True)
    before = signal.set_wakeup_fd(outer.fileno(), warn_on_full_buffer=False)
    thread.start()
    try:
        yield
    finally:
        seen.set()
        signal.set_wakeup_fd(before)
        outer.close()
        thread.join()
        inner.close()
