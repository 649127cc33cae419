"""From the shell into the command, and out of it with an exit code."""

from __future__ import annotations

import os
import sys
import threading
from io import TextIOWrapper
from pathlib import Path
from typing import NoReturn

GRACE = 0.2  # seconds that a thread gets to end by itself
CANCELLED = 130


def main() -> NoReturn:
    """Run the command with the arguments of this process, then leave the process."""
    _open_missing_streams()
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(
                errors="replace"
            )  # a character that does not fit is no reason to fail
    try:
        _run_command()
    except SystemExit as ending:
        _leave(ending.code)
    except KeyboardInterrupt:
        _leave(CANCELLED)
    _leave(0)


def _run_command() -> None:
    import typer

    from agent_brain.cli.app import app
    from agent_brain.cli.exits import reported

    try:
        with reported(debug=False):  # help and versions are written outside of the commands
            app(prog_name="agent-brain")
    except typer.Exit as ending:
        raise SystemExit(ending.exit_code) from None


def _open_missing_streams() -> None:
    """Where a standard stream was closed (``>&-``), read nothing and write to nowhere.

    The lowest free descriptor is taken, so that no other file gets the number of a stream.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115


def _leave(code: str | int | None) -> NoReturn:
    """End the process, without waiting for tools that were cancelled but run in a thread."""
    left = _threads_left()
    if left:
        tools = [name for name in left if name.startswith("tool ")]
        if tools and code != CANCELLED:  # who presses Ctrl-C knows
            sys.stderr.write(f"Left behind in the middle of their work: {', '.join(tools)}\n")
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code if isinstance(code, int) else int(code is not None))
    sys.exit(code)


def _threads_left() -> list[str]:
    """The names of the threads that do not end by themselves."""
    others = [
        thread
        for thread in threading.enumerate()
        if thread is not threading.current_thread() and not thread.daemon
    ]
    for thread in others:
        thread.join(GRACE)
    return [thread.name for thread in others if thread.is_alive()]
