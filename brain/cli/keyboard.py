"""Read lines from the keyboard, and react to Ctrl-C at any time. Private."""

from __future__ import annotations

import importlib
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

PROMPT = "\nyou> "


def read_stdin(prompt: str = "") -> str | None:
    """Return the next line of a file or a pipe, without a prompt; None at its end."""
    return sys.stdin.readline() or None


def read_chat_line(prompt: str = PROMPT) -> str | None:
    """Return the next line from the keyboard; Ctrl-C discards the line and not the chat."""
    while True:
        try:
            return read_keyboard(prompt)
        except KeyboardInterrupt:
            print("\n(/exit or Ctrl-D ends the chat)", file=sys.stderr)


def read_keyboard(prompt: str) -> str | None:
    """Return the next line from the keyboard, with line editing if available; None for Ctrl-D.

    The prompt is not written to a redirected stdout.

    Raises:
        KeyboardInterrupt: For Ctrl-C.
    """
    with suppress(ImportError):  # not available on Windows
        importlib.import_module("readline")
    try:
        if sys.stdout.isatty():
            with _interruptible():
                return input(prompt)
        print(prompt, end="", file=sys.stderr, flush=True)
        return read_stdin()
    except EOFError:
        print(file=sys.stderr)
        return None


@contextmanager
def signal_sockets() -> Iterator[tuple[socket.socket, socket.socket] | None]:
    """Yield a connected pair of sockets, the first of which receives a byte at every signal.

    Yields None on Windows and outside of the main thread.
    """
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        yield None
        return
    receiver, sender = socket.socketpair()
    with receiver, sender:
        sender.settimeout(0)
        before = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
        try:
            yield receiver, sender
        finally:
            signal.set_wakeup_fd(before)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C end the wait for a key, whenever it is pressed.

    ``input`` checks for signals and then waits in C: a signal in between would only be noticed at
    the next key. A thread interrupts the wait with another signal, which readline handles.
    """
    with signal_sockets() as sockets:
        if sockets is None:
            yield
            return
        receiver, sender = sockets
        main = threading.get_ident()
        done = threading.Event()

        def interrupt() -> None:
            receiver.recv(1)
            while not done.wait(0.05):
                signal.pthread_kill(main, signal.SIGWINCH)

        thread = threading.Thread(target=interrupt, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            sender.send(b"\0")
            thread.join()
