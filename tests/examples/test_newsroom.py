"""The newsroom example: a team that writes, and a hand-off."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_brain import Brain
from examples.newsroom import letters, main, write

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGENT_BRAIN_MODEL", raising=False)


async def test_the_team_corrects_the_article(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "newsroom.db")
    assert await write("When was Oslo founded?", path) == "Oslo was founded around 1048."
    assert "[checker] The sources say: around 1048." in capsys.readouterr().out
    assert await write("again", path) == "Oslo was founded around 1048.", "the task has ended"


async def test_the_archive_answers_readers() -> None:
    result = await Brain(letters()).run("When did Oslo burn down?")
    assert (result.answer, result.messages[-1].sent_from) == ("It burned down in 1624.", "archive")


async def test_the_program_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    await main()
    assert "answered by the archive: It burned down in 1624." in capsys.readouterr().out
