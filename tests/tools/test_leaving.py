"""A program that exits while a sync tool still runs in its thread says so."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import sys, threading
import anyio
from agent_brain.tools import Action, call_tool, tool

began, release = threading.Event(), threading.Event()


@tool(timeout=0.05)
def brew_tea(minutes: int) -> str:
    "Brew tea."
    began.set()
    threading.Timer(float(sys.argv[2]), release.set).start() if sys.argv[2] != "-" else None
    release.wait()
    return "tea"


async def main():
    action = Action(name="brew_tea", args={"minutes": 1})
    while not began.is_set():  # on a busy machine the time may be over before the thread starts
        outcome = await call_tool(action, {"brew_tea": brew_tea})
    print(outcome.content, flush=True)


anyio.run(main, backend=sys.argv[1])
"""
WAITS = "waits for the tool 'brew_tea'"


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROGRAM, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_program_says_which_tool_it_waits_for_and_ctrl_c_ends_it():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with start("asyncio", "-") as program:
            assert program.stderr is not None
            assert WAITS in program.stderr.readline()
            program.send_signal(signal.SIGINT)
            out, _ = program.communicate(timeout=60)
    finally:
        signal.signal(signal.SIGINT, before)
    assert "took longer than 0.05 s" in out


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_tool_that_ends_soon_is_not_worth_a_word(backend):
    with start(backend, "0.1") as program:
        out, err = program.communicate(timeout=60)
    assert program.returncode == 0
    assert "took longer than 0.05 s" in out
    assert err == ""
