"""What the machine refuses is said as such, and is no fault of this program."""

from __future__ import annotations

import errno
import socket
import subprocess
from pathlib import Path

import pytest

from agent_brain.cli.exits import machine_refused
from tests.cli.support import COMMAND, PATIENCE, environment, invoke

SCRIPTED = ("--net", "scripted", "--model", "demo")
NOT_FORESEEN = "not foreseen"


def test_a_session_needs_a_folder():
    for command in (["ask", "hi"], ["chat"]):
        result = invoke(*command, "--session", "ann")
        assert (result.exit_code, result.stdout) == (2, "")
        assert "--session names a conversation in a folder: give --folder too" in result.stderr


@pytest.mark.parametrize(
    "folder, why",
    [
        ("file/inner", "a part of the path is not a folder"),
        ("/proc/no/such", "there is no such file or folder"),
        ("n" * 300, "the name is too long"),
        ("loop/inner", "links that go in circles"),
    ],
)
@pytest.mark.parametrize("memory", ["messages", "vector"])
def test_an_unusable_folder(folder, why, memory, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    Path("loop").symlink_to("loop")
    result = invoke("ask", "--memory", memory, "--folder", folder, "hi")
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"--folder {folder!r} cannot be used" in result.stderr
    assert why in result.stderr
    assert NOT_FORESEEN not in result.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_under_the_answer():
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*COMMAND, "ask", "what is 2 + 2?"],
            stdout=full,
            stderr=subprocess.PIPE,
            env=environment(),
            timeout=PATIENCE,
            check=False,
        )
    err = done.stderr.decode()
    assert done.returncode == 1
    assert "Error: the disk is full: make room" in err
    assert NOT_FORESEEN not in err
    assert "Exception ignored" not in err


def test_a_port_that_is_taken(script):
    def serve(messages):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            socket.create_server(taken.getsockname())

    script([serve])
    result = invoke("ask", *SCRIPTED, "q")
    assert result.exit_code == 1
    assert "Error: another program listens on this port: choose another one" in result.stderr
    assert NOT_FORESEEN not in result.stderr


def test_what_wraps_it_is_looked_into():
    full = OSError(errno.ENOSPC, "No space left on device", "memory.db")
    wrapping = RuntimeError("it failed")
    wrapping.__cause__ = full
    assert machine_refused(wrapping).startswith("'memory.db': the disk is full")
    assert machine_refused(OSError("odd")) == ""
    assert machine_refused(ValueError("odd")) == ""
