"""What the keyboard does at the prompt."""

from __future__ import annotations

import builtins
import io
import sys

from agent_brain.cli.keyboard import read_chat_line


class Screen(io.StringIO):
    """A stdout that is a terminal."""

    def isatty(self):
        return True


def press(monkeypatch, *keys):
    """Have ``input`` give these, one a call; exceptions are raised."""
    left = list(keys)

    def read(prompt):
        came = left.pop(0)
        if isinstance(came, type):
            raise came
        return came

    monkeypatch.setattr(builtins, "input", read)
    monkeypatch.setattr(sys, "stdout", Screen())


def test_ctrl_c_gives_up_the_line_and_not_the_chat(monkeypatch, capsys):
    press(monkeypatch, KeyboardInterrupt, KeyboardInterrupt, "the next line")
    assert read_chat_line() == "the next line"
    assert capsys.readouterr().err.count("(/exit or Ctrl-D ends the chat)") == 2


def test_ctrl_d_ends_the_chat(monkeypatch):
    press(monkeypatch, EOFError)
    assert read_chat_line() is None
