"""Memories by name, stored in a folder: a later command continues the conversation."""

from __future__ import annotations

import pytest

from agent_brain.cli.options import Options
from agent_brain.cli.serve import make_sessions
from agent_brain.cli.session import build
from agent_brain.memories import AutoMemory, Message, MessagesMemory, memory_names
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


LONG = [Message.user(f"Talk {n}: " + "and so on " * 40) for n in range(300)]


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # LiteLLM knows no other
@pytest.mark.parametrize(("model", "whole"), [("demo", False), ("gpt-4o-mini", True)])
async def test_a_conversation_is_shown_whole_as_long_as_the_model_can_read_it(
    model, whole, tmp_path
):
    async with MessagesMemory(journal=tmp_path / "memory.db") as before:
        await before.update(LONG)
    options = Options(folder=tmp_path, model=model)
    async with build(options) as brain:
        assert isinstance(brain.memory, AutoMemory)
        assert (len(await brain.memory.context()) == 300) is whole
    sessions = make_sessions(build(options), options)
    async with sessions, sessions.use("one", user="ann") as session:
        assert isinstance(session.memory, AutoMemory)
        await session.memory.update(LONG)
        assert session.memory.fits is whole
