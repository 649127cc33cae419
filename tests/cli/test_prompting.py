"""What the keyboard does at the prompt."""

from __future__ import annotations

import builtins
import sys

import pytest

from agent_brain.cli.prompting import ask_person


@pytest.fixture
def keys(monkeypatch, capsys):
    """What comes of each call of ``input``, one after the other."""
    pressed = []

    def read(prompt):
        came = pressed.pop(0)
        if isinstance(came, type):
            raise came
        return came

    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(builtins, "input", read)
    return pressed


def test_ctrl_c_gives_up_the_line_and_not_the_chat(keys, capsys):
    keys += [KeyboardInterrupt, KeyboardInterrupt, "the next line"]
    assert ask_person() == "the next line"
    assert capsys.readouterr().err.count("(/exit or Ctrl-D leaves)") == 2


def test_ctrl_d_ends_the_chat(keys):
    keys += [EOFError]
    assert ask_person() is None
