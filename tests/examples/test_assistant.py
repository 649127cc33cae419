"""The assistant example: what one conversation said, a later one knows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent_brain.testing import ScriptedLLM
from examples.assistant import assistant
from tests.examples.ending import interrupt
from tests.project.repository import ROOT

pytestmark = pytest.mark.anyio


async def seen(user: str, folder: Path, question: str) -> str:
    """What the model sees in a conversation that asks one question."""
    llm = ScriptedLLM(["I see."])
    async with assistant(user, folder, llm) as brain:
        await brain.run(question)
    return "\n".join(message.content for message in llm.calls[0].messages)


async def test_a_later_conversation_recalls_an_earlier_one(tmp_path: Path) -> None:
    assert "Oslo" in await seen("ann", tmp_path, "My sister Eva lives in Oslo.")
    assert "lives in Oslo" in await seen("ann", tmp_path, "Where does my sister live?")


async def test_users_do_not_see_each_others_conversations(tmp_path: Path) -> None:
    await seen("ann", tmp_path, "My sister Eva lives in Oslo.")
    assert "Oslo" not in await seen("bob", tmp_path, "Where does my sister live?")


async def test_a_question_is_not_shown_twice_in_its_conversation(tmp_path: Path) -> None:
    await seen("ann", tmp_path, "My sister Eva lives in Oslo.")
    text = await seen("ann", tmp_path, "Does my sister Eva live in Oslo?")
    assert text.count("Does my sister Eva live in Oslo?") == 1


def test_the_program_answers_line_by_line(tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "AGENT_BRAIN_MODEL"}
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples/assistant.py"), "ann"],
        cwd=tmp_path, env=environment, input="What is 17 times 23?\n\n", text=True,
        capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "391" in done.stdout


def test_ctrl_c_ends_the_conversation(tmp_path: Path) -> None:
    code, said = interrupt("assistant.py", tmp_path, at="391.\n> ", typed="What is 17 times 23?\n")
    assert (code, "Traceback" in said) == (0, False)
