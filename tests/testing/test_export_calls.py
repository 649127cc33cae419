"""A run that a session has kept becomes a test, without being replayed."""

from __future__ import annotations

import runpy
from typing import Any

import anyio
import pytest

from agent_brain import Brain, Limits
from agent_brain.demo import demo_tools
from agent_brain.memories import MessagesMemory, RamJournal
from agent_brain.memories.sessions.timeline import read_parts
from agent_brain.memories.store.session import session_key
from agent_brain.nets import create_net
from agent_brain.recording.run import run_of_parts
from agent_brain.states.errors import LLMServerError
from agent_brain.testing import ExportError, ScriptedLLM
from agent_brain.testing.export import write_test
from agent_brain.testing.exported_run import export_run
from agent_brain.tools import Action

CALL = Action(name="calculate", args={"expression": "17 * 23"})
SAME = [CALL] * 6


async def written(net: str, *, limits: Limits | None = None, trace: bool = True, **llm: Any) -> str:
    journal = RamJournal()
    memory = MessagesMemory(journal=journal, session="1")
    model: Any = ScriptedLLM(llm["turns"]) if "turns" in llm else "demo"
    built = create_net(net, model) if "turns" in llm else net
    brain = Brain(built, memory, demo_tools(), limits=limits or Limits(), trace=trace)
    try:
        answer = (await brain.run("What is 17 times 23?")).answer
    except LLMServerError:
        answer = ""
    key = session_key("1")
    parts = [part async for part in read_parts(journal, key) if part.step is not None]
    run = run_of_parts(parts, await memory.recorded_calls())
    return write_test(export_run(run, net=net, answer=answer), "case")


async def whole(net: str) -> str:
    return await written(net)


@pytest.mark.parametrize(
    "net", ["react", "plan_execute", "reflexion", "refact", "router", "tree_of_thoughts"]
)
def test_the_test_of_a_run_passes(net, tmp_path):
    run(anyio.run(whole, net), tmp_path)


async def limited() -> str:
    return await written("react", limits=Limits(max_steps=1), turns=SAME)


async def limited_later() -> str:
    return await written("react", limits=Limits(max_steps=4), turns=SAME)


async def stuck() -> str:
    return await written("react", turns=SAME * 3)


async def failed() -> str:
    return await written("react", turns=[[CALL], LLMServerError("it is down")])


@pytest.mark.parametrize(
    "way, told",
    [
        (limited, "max_steps=1"),
        (limited_later, "max_steps=4"),
        (stuck, "== 'stuck'"),
        (failed, "LLMServerError"),
    ],
)
def test_the_test_ends_as_the_run_did(way, told, tmp_path):
    text = anyio.run(way)

    assert told in text
    run(text, tmp_path)


async def untraced() -> str:
    return await written("react", trace=False)


async def concurrent() -> str:
    return await written("self_consistency")


@pytest.mark.parametrize(
    "way, why", [(untraced, "not traced"), (concurrent, "Branches ran concurrently")]
)
def test_what_is_not_known_is_refused(way, why):
    with pytest.raises(ExportError, match=why):
        anyio.run(way)


def run(text: str, folder: Any) -> None:
    path = folder / "test_case.py"
    path.write_text(text)
    runpy.run_path(str(path))["test_case"]()
