"""Memories by name, stored in a folder: a later command continues the conversation."""

from __future__ import annotations

import pytest

from agent_brain.memories import memory_names
from tests.cli.support import invoke


def ask(folder, question, *options):
    return invoke("ask", "-m", "demo", "--folder", str(folder), *options, question)


@pytest.mark.parametrize("memory", memory_names())
def test_a_later_command_continues_the_conversation(memory, tmp_path):
    ask(tmp_path / "new", "my name is Ann", "--memory", memory)
    later = ask(tmp_path / "new", "what was my first question?", "--memory", memory)
    assert "my name is Ann" in later.stdout


def test_sessions_in_one_folder_are_separate(tmp_path):
    ask(tmp_path, "my name is Ann", "--session", "a/b")
    other = ask(tmp_path, "what was my first question?", "--session", "a")
    assert "my name is Ann" not in other.stdout


def test_without_a_folder_nothing_is_stored(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    invoke("ask", "-m", "demo", "hello")
    assert list(tmp_path.iterdir()) == []
