"""Starts Python programs without importing again what takes most of their time.

A program that imports MCP or the command line takes up to a second of a processor until it begins.
:func:`forked` starts a process that has imported it, which runs each program in a fork: a process
with its own files, environment, signals and end. CI starts each program by itself.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from tests.support.thorough import THOROUGH

HERE = Path(__file__).parent


@cache
def forked(*modules: str, options: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the beginning of a command: what precedes ``-m module`` or the path of a script.

    Args:
        modules: What is imported only once.
        options: Options of Python.
    """
    if THOROUGH or not hasattr(os, "pidfd_open"):
        return (sys.executable, *options)
    folder = tempfile.TemporaryDirectory()
    place = f"{folder.name}/socket"
    server = subprocess.Popen(
        [sys.executable, *options, "-m", "tests.support.forked_server", place, *modules],
        cwd=HERE.parents[1],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"

    def end() -> None:
        server.communicate()
        folder.cleanup()

    atexit.register(end)
    return (sys.executable, "-I", "-S", str(HERE / "forked_client.py"), place)
