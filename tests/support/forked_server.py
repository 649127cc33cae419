"""Imports modules once, and runs each program that it is asked for in a fork of itself.

Its arguments are the path of a socket and the modules. See :mod:`tests.support.forked`.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import random
import runpy
import select
import signal
import socket
import struct
import sys
from pathlib import Path
from typing import Any


def serve(place: str) -> dict[str, Any]:
    """Wait for programs; returns in each process that is to run one, with what it is to run."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(place)
        listener.listen(64)
        print("ready", flush=True)
        waiting: list[Any] = [listener, 0]  # stdin ends with the tests
        while select.select(waiting, [], [])[0] == [listener]:
            connection, _ = listener.accept()
            if os.fork() == 0 and (program := keep(connection)) is not None:
                return program
            connection.close()
    os._exit(0)


def keep(connection: socket.socket) -> dict[str, Any] | None:
    """Run a program in a fork: pass signals on to it, and its end to who asked for it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    data, files, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    child = os.fork()
    if child == 0:
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        connection.close()
        return dict(json.loads(data))
    for file in (0, 1, 2, *files):
        os.close(file)
    ended = os.pidfd_open(child)
    waiting: list[Any] = [connection, ended]
    while ended not in select.select(waiting, [], [])[0]:
        numbers = connection.recv(1)
        os.kill(child, numbers[0] if numbers else signal.SIGKILL)
        if not numbers:
            os._exit(0)
    try:
        connection.sendall(struct.pack("i", os.waitpid(child, 0)[1]))
    finally:
        os._exit(0)


def reopen_files() -> None:
    """Open stdin, stdout and stderr as Python does when it starts."""
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    setattr(sys, "__stdin__", sys.stdin)  # noqa: B010 - final for type checkers
    for number, name in ((1, "stdout"), (2, "stderr")):
        file = open(  # noqa: SIM115
            number,
            "w",
            buffering=1 if number == 2 or os.isatty(number) else -1,
            errors="strict" if number == 1 else "backslashreplace",
            closefd=False,
        )
        setattr(sys, name, file)
        setattr(sys, f"__{name}__", file)


if __name__ == "__main__":
    for name in sys.argv[2:]:
        importlib.import_module(name)
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that keep programs
    given = serve(sys.argv[1])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    random.seed()
    os.chdir(given["folder"])
    os.environ.clear()
    os.environ.update(given["environment"])
    reopen_files()
    sys.argv = given["arguments"]
    if sys.argv[0] == "-m":
        sys.path[0] = given["folder"]
        runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(sys.argv[0]).parent)
        runpy.run_path(sys.argv[0], run_name="__main__")
