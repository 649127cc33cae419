"""Router: the model or a function picks the net that works on the goal."""

from __future__ import annotations

import pytest

from agent_brain import Brain, Limits, Memory, StopReason, react
from agent_brain.errors import LLMServerError, MalformedOutputError
from agent_brain.nets import Route, Router, router
from agent_brain.states import StateDefinitionError, TextDelta
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from tests.brain.nets import Endless, Say, add, single

pytestmark = pytest.mark.anyio


def poems_and_sums(llm: ScriptedLLM) -> dict[str, Route]:
    return {
        "poems": Route(single(Say("Roses")), "verses of any kind"),
        "sums": Route(react(llm), "arithmetic"),
    }


async def test_the_model_picks_by_the_descriptions() -> None:
    llm, worker = ScriptedLLM(['{"name": "sums"}']), ScriptedLLM(["4"])
    result = await Brain(router(llm, routes=poems_and_sums(worker))).run("2 + 2?")
    assert (result.answer, result.stop_reason) == ("4", StopReason.DONE)
    assert "- sums: arithmetic" in llm.calls[0].messages[0].content


async def test_a_function_picks_without_a_model() -> None:
    async def choose(memory: Memory) -> str:
        return "poems" if "poem" in (await memory.goal())[-1].content else "sums"

    net = router(ScriptedLLM(), routes=poems_and_sums(ScriptedLLM(["4"])), choose=choose)
    assert (await Brain(net).run("A poem!")).answer == "Roses"
    assert (await Brain(net).run("2 + 2?")).answer == "4"


async def test_another_model_may_pick() -> None:
    chooser = ScriptedLLM(['{"name": "poems"}'])
    net = router(ScriptedLLM(), routes=poems_and_sums(ScriptedLLM()), choose=chooser)
    assert (await Brain(net).run("go")).answer == "Roses"


async def test_the_chosen_net_streams_its_answer_and_its_events_name_it() -> None:
    net = router(ScriptedLLM(), routes=poems_and_sums(ScriptedLLM()), choose=lambda m: "poems")
    texts = []
    async with Brain(net).stream("go") as run:
        async for event in run:
            if isinstance(event, TextDelta):
                texts.append((event.text, event.thought, event.path))
    assert texts == [("Route: poems\n", True, ()), ("Roses", False, ("ROUTE", "poems"))]


async def test_an_unknown_route_is_corrected_once() -> None:
    llm = ScriptedLLM(['{"name": "prose"}', '{"name": "poems"}'])
    assert (await Brain(router(llm, routes=poems_and_sums(llm))).run("go")).answer == "Roses"
    assert "no route of that name, but 'poems', 'sums'" in llm.calls[1].messages[-1].content
    llm = ScriptedLLM(['{"name": "prose"}'] * 2)
    with pytest.raises(MalformedOutputError, match="'poems', 'sums'"):
        await Brain(router(llm, routes=poems_and_sums(llm))).run("go")


async def test_an_unknown_route_from_a_function_is_an_error_with_the_known_ones() -> None:
    net = router(ScriptedLLM(), routes={"a": single(Say("x"))}, choose=lambda memory: "b")
    with pytest.raises(StateDefinitionError, match=r"choose= returned 'b'.*'a'"):
        await Brain(net).run("go")


async def test_it_resumes_inside_the_net_that_was_picked() -> None:
    call = Action(name="add", args={"a": 2, "b": 2})
    llm = ScriptedLLM(['{"name": "sums"}', [call], LLMServerError("down"), "4"])
    brain = Brain(router(llm, routes=poems_and_sums(llm)), tools=[add])
    with pytest.raises(LLMServerError):
        await brain.run("2 + 2?")
    assert (await brain.resume()).answer == "4"
    llm.assert_complete()


async def test_limits_reach_into_the_net() -> None:
    endless = single(Endless())
    brain = Brain(router(ScriptedLLM(), routes={"a": endless}, choose=lambda m: "a"), stuck=None)
    brain.limits = Limits(max_steps=5)
    assert (await brain.run("go")).stop_reason is StopReason.MAX_STEPS


def test_the_default_routes_are_shown_in_the_diagram() -> None:
    picture = router(ScriptedLLM()).to_mermaid()
    assert "plan_execute" in picture
    assert "react" in picture


def test_a_router_without_routes_is_refused() -> None:
    with pytest.raises(StateDefinitionError, match="at least one route"):
        router(ScriptedLLM(), routes={})
    assert set(router(ScriptedLLM()).states) == set(Router)
