"""What a run is given for its states, tools and hooks: ``brain.run(task, deps=…)``."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest

from agent_brain import Brain, MessagesMemory, Net, SQLiteJournal, State, react, tool
from agent_brain.nets import ParallelState
from agent_brain.states import Hook
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action, ToolContext

pytestmark = pytest.mark.anyio


@dataclass
class Deps:
    user: str
    password: str = "kept out of files"


@tool
async def who(context: ToolContext[Deps]) -> str:
    """Say who asks."""
    return context.deps.user


@tool
async def who_perhaps(context: ToolContext[Deps] | None = None) -> str:
    """Say who asks."""
    return context.deps.user if context is not None and context.deps is not None else "nobody"


class One(Enum):
    ONLY = 1


class Greet(State):
    async def run(self, memory: Any) -> AsyncIterator[str]:
        yield f"Hello {memory.deps.user}"

    async def next_state(self, memory: Any) -> None:
        return None


def asking(name: str = "who") -> ScriptedLLM:
    return ScriptedLLM([[Action(name=name)], "done"])


async def results(memory: Any) -> list[str]:
    return [m.content for m in await memory.messages(role="tool")]


async def test_a_tool_reads_the_deps_of_its_run():
    brain = Brain("react", tools=[who], llm=asking())
    await brain.run("who am I?", deps=Deps("Ann"))
    assert await results(brain.memory) == ["Ann"]
    assert who.to_dict()["who"]["input_schema"].get("properties", {}) == {}


async def test_an_optional_context_has_the_deps_too():
    brain = Brain("react", tools=[who_perhaps], llm=asking("who_perhaps"))
    await brain.run("who am I?", deps=Deps("Ann"))
    assert await results(brain.memory) == ["Ann"]


async def test_a_state_reads_the_deps_of_its_run():
    brain = Brain(Net({One.ONLY: Greet()}))
    assert (await brain.run("hi", deps=Deps("Ann"))).answer == "Hello Ann"
    async with brain.stream("hi", deps=Deps("Bob")) as run:
        async for _ in run:
            pass
    assert run.result.answer == "Hello Bob"
    assert "".join([text async for text in brain.answer("hi", deps=Deps("Cy"))]) == "Hello Cy"


def test_run_sync_passes_them_on():
    assert Brain(Net({One.ONLY: Greet()})).run_sync("hi", deps=Deps("Ann")).answer == "Hello Ann"


async def test_hooks_read_the_deps_around_models_and_tools():
    seen: list[Any] = []

    class Look(Hook):
        def before_model_call(self, request: Any) -> None:
            seen.append(request.deps.user)

        def before_tool_call(self, request: Any) -> None:
            seen.append(request.deps.user)

    brain = Brain("react", tools=[who], llm=asking(), hooks=[Look()])
    await brain.run("who am I?", deps=Deps("Ann"))
    assert seen == ["Ann"] * 3


async def test_branches_on_forks_and_nested_brains_have_them():
    branch = react(asking())
    net = Net({One.ONLY: ParallelState([branch], on_done=None, join=_join)})
    brain = Brain(net, MessagesMemory([who]))
    assert (await brain.run("go", deps=Deps("Ann"))).answer == "Ann"
    inner = Brain("react", tools=[who], llm=asking(), net_options={})
    outer = Brain(
        "react",
        tools=[inner.as_tool("helper", "Helps.")],
        llm=ScriptedLLM([[Action(name="helper", args={"task": "who?"})], "done"]),
        hooks=[],
    )
    told: list[str] = []
    async with outer.stream("go", deps=Deps("Bob")) as run:
        async for event in run:
            if event.kind == "action_finished" and event.action.name == "who":
                told.append(event.result.content)
    assert told == ["Bob"]


async def _join(memory: Any, branches: Any) -> str:
    return (await branches[0].memory.messages(role="tool"))[0].content


async def test_deps_end_with_the_run_and_are_not_stored(tmp_path: Any):
    path = tmp_path / "journal.db"
    async with MessagesMemory([who], journal=SQLiteJournal(path)) as memory:
        await Brain(react(asking()), memory).run("who?", deps=Deps("Ann"))
        assert memory.deps is None
        assert "kept out of files" not in str(await memory.export())
    stored = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"Ann" in stored  # the result of the tool
    assert b"kept out of files" not in stored


async def test_deps_end_with_a_run_that_fails():
    class Fails(Greet):
        async def run(self, memory: Any) -> AsyncIterator[str]:
            raise RuntimeError("no")
            yield ""

    brain = Brain(Net({One.ONLY: Fails()}))
    with pytest.raises(RuntimeError):
        await brain.run("go", deps=Deps("Ann"))
    assert brain.memory.deps is None


async def test_resume_takes_them_again():
    brain = Brain("react", tools=[who], llm=asking())
    async with brain.stream("who?", deps=Deps("Ann")) as run:
        async for event in run:
            if event.kind == "action_requested":
                run.stop()
    result = await brain.resume(deps=Deps("Bob"))
    assert result.stop_reason == "done"
    assert await results(brain.memory) == ["Bob"]


async def test_a_tool_outside_of_a_run_has_none():
    assert await who_perhaps.execute() == "nobody"
