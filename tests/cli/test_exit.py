"""Exit codes, the prompt, and how the process ends."""

from __future__ import annotations

import os
import sys
import threading

import pytest

from agent_brain import Result, StopReason
from agent_brain.cli import keyboard, main, start
from agent_brain.cli.exit_codes import ExitCode, conclude
from agent_brain.states.usage import Usage


def test_main_leaves_with_a_code(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["agent-brain", "ask", "--net", "x", "hi"])
    monkeypatch.setattr(os, "_exit", sys.exit)  # used if another test has left a thread
    with pytest.raises(SystemExit) as ending:
        main()
    assert ending.value.code == 2
    assert "Error: There is no net named 'x'" in capsys.readouterr().err


def test_nobody_waits_for_a_tool_that_still_runs_in_a_thread(monkeypatch):
    codes = []

    def leave(code):
        codes.append(code)
        raise SystemExit(code)

    release = threading.Event()
    thread = threading.Thread(target=release.wait)
    thread.start()
    monkeypatch.setattr(os, "_exit", leave)
    monkeypatch.setattr(start, "GRACE", 0.001)
    monkeypatch.setattr(sys, "argv", ["agent-brain", "--version"])
    try:
        with pytest.raises(SystemExit):
            main()
    finally:
        release.set()
        thread.join()
    assert codes == [0]


def keys(monkeypatch, *typed, terminal=True):
    """Make ``input`` give what was typed: a line, or an exception."""
    left = list(typed)

    def read(prompt):
        item = left.pop(0)
        if isinstance(item, str):
            return item
        raise item

    monkeypatch.setattr("builtins.input", read)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)


def test_ctrl_c_at_the_prompt_discards_only_the_line(monkeypatch, capsys):
    keys(monkeypatch, KeyboardInterrupt(), KeyboardInterrupt(), "hello")
    assert keyboard.read_chat_line() == "hello"
    assert capsys.readouterr().err.count("(/exit or Ctrl-D ends the chat)") == 2


def test_ctrl_d_at_the_prompt_is_the_end(monkeypatch, capsys):
    keys(monkeypatch, EOFError())
    assert keyboard.read_chat_line() is None
    assert capsys.readouterr().err == "\n"


def test_the_prompt_stays_out_of_a_redirected_stdout(monkeypatch, capsys, tmp_path):
    keys(monkeypatch, terminal=False)
    file = tmp_path / "typed"
    file.write_text("hello\n")
    with file.open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert keyboard.read_chat_line() == "hello\n"
        assert keyboard.read_chat_line() is None
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", keyboard.PROMPT * 2)


@pytest.mark.parametrize(
    "reason,code,words",
    [
        (StopReason.DONE, ExitCode.ANSWERED, ""),
        (StopReason.MAX_COST, ExitCode.STOPPED, "the limit of cost was reached (--max-cost)"),
        (StopReason.APPROVAL, ExitCode.STOPPED, "waits for approval"),
        (StopReason.MAX_TOKENS, ExitCode.STOPPED, "the limit of tokens was reached"),
        (StopReason.CANCELLED, ExitCode.CANCELLED, "cancelled"),
    ],
)
def test_why_a_run_ended_is_reported_with_its_exit_code(capsys, reason, code, words):
    result = Result(
        answer="",
        output=None,
        stop_reason=reason,
        steps=1,
        usage=Usage(),
        messages=[],
        run_id="run",
    )
    assert conclude(result) is code
    err = capsys.readouterr().err
    assert words in err
    assert bool(err) == (reason is not StopReason.DONE)
