"""A recorded session becomes a cassette, and a test."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from agent_brain import Brain, tool
from agent_brain.memories import MessagesMemory, RamJournal
from agent_brain.nets import react
from agent_brain.states.models.litellm.adapter import LiteLLM
from agent_brain.testing import (
    CassetteError,
    CassetteLLM,
    ScriptedLLM,
    export_cassette,
    export_test,
    replay,
)
from agent_brain.tools import Action

pytestmark = pytest.mark.anyio


@tool
def look(number: int) -> str:
    """Look something up."""
    return f"seen {number}"


@tool(requires_approval=True)
def pay(number: int) -> str:
    """Pay."""
    return f"paid {number}"


async def recorded(turns: list[Any], memory: Any = None) -> Brain[Any]:
    memory = memory or MessagesMemory(journal=RamJournal())
    llm = ScriptedLLM(turns, model="openai/some")
    return Brain(react(llm), memory, [look, pay], trace=True)


TURNS: list[Any] = [
    ["Let me look. ", Action(name="look", args={"number": 1})],
    ["And again. ", Action(name="look", args={"number": 2})],
    "Seen.",
]


async def test_a_run_with_the_same_requests_plays_the_cassette(tmp_path: Path) -> None:
    brain = await recorded(TURNS)
    await brain.run("Look.")
    path = export_cassette(await brain.memory.model_calls(), tmp_path / "c.json")  # type: ignore[attr-defined]
    real = CassetteLLM(ScriptedLLM(model="openai/some"))
    with replay(path) as tape:
        result = await Brain(react(real), MessagesMemory(), [look, pay]).run("Look.")
    tape.assert_complete()
    assert result.answer == "Seen."


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_litellm_plays_it_too(tmp_path: Path) -> None:
    brain = await recorded(TURNS)
    await brain.run("Look.")
    path = export_cassette(await brain.memory.model_calls(), tmp_path / "c.json")  # type: ignore[attr-defined]
    with replay(path) as tape:
        model = LiteLLM("openai/some", api_key="k")
        await Brain(react(model), MessagesMemory(), [look, pay]).run("Look.")
    tape.assert_complete()


async def test_a_cassette_leaves_out_what_was_repeated(tmp_path: Path) -> None:
    brain = await recorded([*TURNS[:1], OSError("no power"), *TURNS[1:]])
    with pytest.raises(OSError, match="no power"):
        await brain.run("Look.")
    await brain.resume()
    path = export_cassette(await brain.memory.model_calls(), tmp_path / "c.json")  # type: ignore[attr-defined]
    with replay(path) as tape:
        real = CassetteLLM(ScriptedLLM(model="openai/some"))
        await Brain(react(real), MessagesMemory(), [look, pay]).run("Look.")
    tape.assert_complete()


async def test_a_session_without_calls_is_no_cassette(tmp_path: Path) -> None:
    with pytest.raises(CassetteError, match="trace=True"):
        export_cassette([], tmp_path / "c.json")
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("kind", ["whole", "resumed", "approved"])
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_session_becomes_a_test_that_passes(kind: str, tmp_path: Path) -> None:
    turns = list(TURNS)
    if kind == "resumed":
        turns[1:1] = [OSError("no power")]
    if kind == "approved":
        turns[1] = [Action(name="pay", args={"number": 1}), Action(name="look", args={"number": 3})]
    brain = await recorded(turns)
    if kind == "resumed":
        with pytest.raises(OSError, match="no power"):
            await brain.run("Look.")
        await brain.resume()
    else:
        await brain.run("Look.")
        if kind == "approved":
            await brain.resume(approve=True)
    report = await brain.replay()
    assert report.equal, str(report)
    path = export_test(report.events, tmp_path / "test_session.py")
    from anyio import to_thread

    found = runpy.run_path(str(path))
    await to_thread.run_sync(found["test_session"])
