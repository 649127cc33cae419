"""Options of one run: the model, tools, limits and prompt."""

from __future__ import annotations

from typing import Any

import pytest

from agent_brain import Brain, Limits, tool
from agent_brain.demo import DemoLLM
from agent_brain.errors import BrainUseError
from agent_brain.memories import MessagesMemory
from agent_brain.nets import react, reflexion
from agent_brain.states import LLM
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action

pytestmark = pytest.mark.anyio


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


CALL = [Action(name="add", args={"a": 1, "b": 2})]


async def test_a_run_has_a_model_tools_limits_and_a_prompt_of_its_own() -> None:
    usual, other = ScriptedLLM(["Usual."]), ScriptedLLM([CALL, "Three."])
    memory = MessagesMemory()
    brain = Brain("react", memory, llm=usual)
    result = await brain.run("1 + 2", llm=other, tools=[add], prompt="Speak French.")
    assert result.answer == "Three."
    first = other.calls[0]
    assert first.messages[0].content.endswith("Speak French.")
    assert [each.name for each in first.tools] == ["add"]
    assert usual.calls == []
    assert memory.available_tools == {}
    assert result.usage.requests == 2

    again = await brain.run("Hello")
    assert again.answer == "Usual."
    assert "French" not in usual.calls[0].messages[0].content


async def test_all_ways_to_run_take_the_options() -> None:
    for way in ("answer", "stream"):
        other = ScriptedLLM(["Other."])
        brain = Brain("react", llm=ScriptedLLM([]))
        if way == "answer":
            assert [piece async for piece in brain.answer("x", llm=other)] == ["Other."]
        else:
            async with brain.stream("x", llm=other) as run:
                _ = [event async for event in run]
            assert run.result.answer == "Other."


async def test_the_limits_of_a_run_replace_those_of_the_brain_and_it_is_resumed_with_more() -> None:
    llm = ScriptedLLM([CALL, CALL, "Three."])
    brain = Brain("react", tools=[add], llm=llm, limits=Limits(max_requests=1))
    result = await brain.run("1 + 2", limits=Limits(max_requests=2))
    assert (result.stop_reason, len(llm.calls)) == ("max_requests", 2)
    result = await brain.resume(limits=Limits())
    assert (result.stop_reason, result.answer) == ("done", "Three.")


async def test_inner_nets_are_asked_by_the_model_too() -> None:
    other = ScriptedLLM(["Four.", '{"passed": true, "score": 1.0}'])
    brain = Brain(reflexion(ScriptedLLM([])))
    assert (await brain.run("2 + 2", llm=other)).answer == "Four."


async def test_a_model_without_tools_cannot_take_the_place_of_one_with_them() -> None:
    other = ScriptedLLM(["x"], native=False)
    brain = Brain("react", tools=[add], llm=ScriptedLLM([]))
    with pytest.raises(BrainUseError, match="does not call tools natively"):
        await brain.run("x", llm=other)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"model": "x"}, "no option model="),
        ({"limits": 3}, r"pass limits=Limits"),
        ({"prompt": 3}, "a text"),
    ],
    ids=["unknown", "limits", "prompt"],
)
async def test_wrong_options_are_refused_before_anything_happens(options: Any, why: str) -> None:
    memory = MessagesMemory()
    with pytest.raises(BrainUseError, match=why):
        await Brain("react", memory, llm=ScriptedLLM([])).run("x", **options)
    assert await memory.goal() == []


def test_without_an_event_loop() -> None:
    other = ScriptedLLM(["Other."])
    assert Brain("react", llm=ScriptedLLM([])).run_sync("x", llm=other).answer == "Other."


async def test_a_run_has_an_output_type_of_its_own_also_when_it_is_resumed() -> None:
    given = Action(name="final_result", args={"value": 3})
    llm = ScriptedLLM([[given], CALL, [given], "Three."])
    brain = Brain("react", tools=[add], llm=llm)
    assert (await brain.run("1 + 2", output_type=int)).output == 3

    stopped = await brain.run("1 + 2", output_type=int, limits=Limits(max_requests=1))
    assert stopped.output is None
    assert (await brain.resume(output_type=int)).output == 3
    again = await brain.run("1 + 2")
    assert (again.output, again.answer) == (None, "Three.")


@pytest.mark.parametrize(
    ("net", "problem"),
    [(reflexion(ScriptedLLM([])), "was given by name"), ("router", "cannot answer with this type")],
    ids=["object", "name"],
)
async def test_a_net_without_output_types_refuses_one(net: Any, problem: str) -> None:
    options: Any = {"routes": {"one": react(ScriptedLLM([]))}} if net == "router" else None
    llm = ScriptedLLM([]) if net == "router" else None
    brain = Brain(net, llm=llm, net_options=options)
    with pytest.raises(BrainUseError, match=problem):
        await brain.run("x", output_type=int)


async def test_a_model_by_name_is_made_once_and_closed_with_the_brain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closed: list[str] = []

    async def aclose(self: LLM) -> None:
        closed.append(self.model)

    monkeypatch.setattr(DemoLLM, "aclose", aclose)
    async with Brain("react", llm=ScriptedLLM([["x"]])) as brain:
        for _ in range(3):
            await brain.over(MessagesMemory()).run("hi", llm="demo")
        await brain.run("hi", llm="demo")
        assert not closed
    assert closed == ["demo"]
