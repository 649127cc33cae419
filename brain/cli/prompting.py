"""Reading the user's next words."""

from __future__ import annotations

import importlib
import sys
from contextlib import suppress

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
            return input(prompt)
        print(prompt, end="", file=sys.stderr, flush=True)
        return read_line()
    except EOFError:
        print(file=sys.stderr)
        return None
