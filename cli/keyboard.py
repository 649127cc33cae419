"""Read lines from the keyboard, and react to Ctrl-C at any time."""

from __future__ import annotations

import importlib
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from getpass import getpass

PROMPT = "\nyou> "


def read_stdin(prompt: str = "", *, hidden: bool = False) -> str | None:
    """Return the next line of a file or a pipe, without a prompt; None at its end."""
    return sys.stdin.readline() or None


def read_chat_line(prompt: str = PROMPT, *, hidden: bool = False) -> str | None:
    """Return the next line from the keyboard; Ctrl-C discards the line and not the chat."""
    while True:
        try:
            return read_keyboard(prompt, hidden=hidden)
        except KeyboardInterrupt:
            print("\n(/exit or Ctrl-D ends the chat)", file=sys.stderr)


def read_keyboard(prompt: str, *, hidden: bool = False) -> str | None:
    """Return the next line from the keyboard, with line editing if available; None for Ctrl-D.

    The prompt is not written to a redirected stdout. A ``hidden`` line is neither shown nor kept in
    the history.
    """
    with suppress(ImportError):  # not available on Windows
        importlib.import_module("readline")
    try:
        if hidden and sys.stdin.isatty():
            with _interruptible():
                return getpass(prompt)
        if sys.stdout.isatty():
            with _interruptible():
                return input(prompt)
        print(prompt, end="", file=sys.stderr, flush=True)
        return read_stdin()
    except EOFError:
        print(file=sys.stderr)
        return None


def discard_typed() -> None:
    """Discard what was typed at a terminal and not read yet: it answers nothing that comes now."""
    with suppress(ImportError, OSError, ValueError):  # not available on Windows, or no terminal
        termios = importlib.import_module("termios")
        with suppress(termios.error):
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Interrupt the wait for a key often, to notice a Ctrl-C from just before it began."""
    if sys.platform == "win32":
        yield
        return
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
