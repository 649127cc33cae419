"""Errors of the operating system are named, and are no traceback."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.support import COMMAND, PATIENCE, environment, invoke
from tests.support.thorough import thorough

SCRIPTED = ("--net", "scripted", "--model", "demo")
UNEXPECTED = "is unexpected"


def test_a_session_needs_a_folder():
    for command in (["ask", "hi"], ["chat"]):
        result = invoke(*command, "--session", "ann")
        assert (result.exit_code, result.stdout) == (2, "")
        assert "--session names a conversation in a folder: give --folder too" in result.stderr


@pytest.mark.parametrize(
    "folder, why",
    [
        ("file/inner", "Not a directory"),
        ("/proc/no/such", "No such file or directory"),
        ("n" * 300, "File name too long"),
        ("loop/inner", "Too many levels of symbolic links"),
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
    assert UNEXPECTED not in result.stderr


@pytest.mark.parametrize("command", ["ask", "chat", "resume"])
@pytest.mark.parametrize("empty", ["", " "])
def test_a_folder_without_a_name_is_not_this_folder(command, empty, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["hi"] if command == "ask" else []
    result = invoke(command, "--folder", empty, *words)
    assert (result.exit_code, "the name is empty" in result.stderr) == (2, True)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("memory", ["messages", "vector"])
def test_a_session_that_is_not_text(memory, tmp_path):
    kept = ("--folder", str(tmp_path / "kept"), "--memory", memory)
    result = invoke("ask", "-m", "demo", *kept, "--session", "a\udcffb", "hi")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "is not valid UTF-8" in result.stderr
    assert not (tmp_path / "kept").exists()


@pytest.mark.parametrize("option", ["--session", "--memory", "--model"])
@pytest.mark.parametrize("empty", ["", " "])
def test_a_name_that_is_empty_is_not_the_default(option, empty, tmp_path):
    result = invoke("ask", "--folder", str(tmp_path / "f"), option, empty, "hi")
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"'{option}'" in result.stderr
    assert "the name is empty" in result.stderr
    assert not (tmp_path / "f").exists()


def test_a_demo_of_an_empty_question():
    result = invoke("demo", " ")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "The question is empty" in result.stderr


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
    assert os.strerror(errno.ENOSPC) in err
    assert UNEXPECTED not in err
    assert "Exception ignored" not in err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["ask", "--help"]])
def test_a_full_disk_under_the_help(arguments):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*COMMAND, *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            env=environment(),
            timeout=PATIENCE,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.decode().startswith(f"Error: [Errno {errno.ENOSPC}]")
    assert "Traceback" not in done.stderr.decode()


@pytest.mark.parametrize(
    ("command", "closed"),
    [
        *(("ask", closed) for closed in ([0], [1], [2], [0, 1, 2])),
        ("chat", [0, 1, 2]),
        *thorough(("chat", [stream]) for stream in (0, 1, 2)),
    ],
)
def test_a_stream_that_is_closed_is_an_empty_one(command, closed):
    arguments = ["ask", "what is 2 + 2?"] if command == "ask" else ["chat"]
    script = f"import os, sys; [os.close(n) for n in {closed}]; os.execv(sys.argv[1], sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", script, *COMMAND, *arguments, "--model", "demo"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environment(),
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, UNEXPECTED in done.stderr.decode()) == (0, False)
    answered = command == "ask" and 1 not in closed
    assert ("2 + 2 = 4" in done.stdout.decode()) == answered


def test_a_port_that_is_taken(script):
    def serve(messages):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            socket.create_server(taken.getsockname())

    script([serve])
    result = invoke("ask", *SCRIPTED, "q")
    assert result.exit_code == 1
    assert "Address already in use" in result.stderr
    assert UNEXPECTED not in result.stderr
