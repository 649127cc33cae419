"""Debate: personas argue, each with its own memory; the moderator sees everything and answers."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from agent_brain import Brain, Limits, StopReason, react, tool
from agent_brain.errors import LLMServerError
from agent_brain.memories import Role
from agent_brain.nets import debate
from agent_brain.nets.library.debate import Debated
from agent_brain.states import StateDefinitionError, TextDelta
from agent_brain.testing import ModelCall, ScriptedLLM
from agent_brain.tools import Action
from tests.nets.models import FunctionLLM, last_user, text_of

pytestmark = pytest.mark.anyio

GOAL = "Should we build the bridge?"


@tool
def archive(topic: str) -> str:
    """Look something up."""
    return "SECRET: the river floods every year"


def speak(call: ModelCall) -> Any:
    """The advocate looks into the archive first; everyone says who they are and the round."""
    system = call.messages[0].content
    if "You moderated" in system:
        return "Build it higher."
    name = "Advocate" if "as Advocate" in system else "Sceptic"
    asked = last_user(call.messages)
    if name == "Advocate" and asked.startswith("Round 1") and call.messages[-1].role is Role.USER:
        return Action(name="archive", args={"topic": "bridge"})
    return f"{name} in {asked[:7]}"


async def test_the_moderator_sees_all_sides_and_answers() -> None:
    llm, moderator = FunctionLLM(speak), ScriptedLLM(["Build it higher."])
    result = await Brain(debate(llm, moderator=moderator), tools=[archive]).run(GOAL)
    assert (result.answer, result.stop_reason) == ("Build it higher.", StopReason.DONE)
    seen = text_of(moderator.calls[0].messages)
    for number in (1, 2):
        for name in ("Advocate", "Sceptic"):
            assert f"{name}: {name} in Round {number}" in seen


async def test_personas_see_what_others_said_but_not_their_private_messages() -> None:
    llm = FunctionLLM(speak)
    await Brain(debate(llm, rounds=3), tools=[archive]).run(GOAL)
    sceptics = [c for c in llm.calls if "as Sceptic" in c.messages[0].content]
    advocates = [c for c in llm.calls if "as Advocate" in c.messages[0].content]
    assert len(sceptics) == 3
    assert all("SECRET" not in text_of(call.messages) for call in sceptics)
    assert "SECRET" in text_of(advocates[-1].messages)
    assert "Advocate in Round 2" in last_user(sceptics[2].messages)
    assert "Sceptic in" not in last_user(sceptics[2].messages)
    assert "Sceptic in Round 1" in text_of(sceptics[2].messages)


async def test_what_a_persona_sees_is_in_the_order_it_happened() -> None:
    llm = FunctionLLM(speak)
    await Brain(debate(llm), tools=[archive]).run(GOAL)
    last = [c for c in llm.calls if "as Advocate" in c.messages[0].content][-1]
    roles = [message.role.value for message in last.messages]
    assert roles == ["system", "user", "user", "assistant", "tool", "assistant", "user"]


async def test_only_the_goal_and_the_answer_are_recorded_and_streamed_as_text() -> None:
    said: dict[bool, str] = {True: "", False: ""}
    async with Brain(debate(FunctionLLM(speak)), tools=[archive]).stream(GOAL) as run:
        async for event in run:
            if isinstance(event, TextDelta):
                said[event.thought] += event.text
    assert said[False] == "Build it higher."
    assert "Sceptic in Round 2" in said[True]
    assert [m.content for m in run.result.messages] == [GOAL, "Build it higher."]


async def test_personas_may_be_nets_of_their_own_with_models_of_their_own() -> None:
    one, two = FunctionLLM(lambda call: "yes"), FunctionLLM(lambda call: "no")
    llm = ScriptedLLM(['{"build": true}'])

    class Decision(BaseModel):
        build: bool

    net = debate(llm, personas={"A": react(one), "B": react(two)}, rounds=1, output_type=Decision)
    result = await Brain(net).run(GOAL)
    assert result.output == Decision(build=True)
    assert "A: yes\n\nB: no" in llm.calls[0].messages[0].content


async def test_it_resumes_at_the_round_that_failed() -> None:
    failing = iter([True])

    def shaky(call: ModelCall) -> Any:
        late = "as Sceptic" in call.messages[0].content and "Round 2" in last_user(call.messages)
        return LLMServerError("down") if late and next(failing, False) else speak(call)

    llm = FunctionLLM(shaky)
    brain = Brain(debate(llm), tools=[archive])
    with pytest.raises(LLMServerError):
        await brain.run(GOAL)
    assert (await brain.resume()).answer == "Build it higher."
    assert len(Debated.read(brain.memory).rounds) == 2
    assert sum(last_user(c.messages).startswith("Round 1") for c in llm.calls) == 3


async def test_a_limit_keeps_finished_rounds_and_the_fallback_moderates() -> None:
    brain = Brain(debate(FunctionLLM(speak), fallback=True), tools=[archive])
    brain.limits = Limits(max_steps=8)
    result = await brain.run(GOAL)
    assert (result.stop_reason, result.answer) == (StopReason.MAX_STEPS, "Build it higher.")
    assert len(Debated.read(brain.memory).rounds) == 1


async def test_after_a_limit_the_interrupted_round_starts_again() -> None:
    brain = Brain(debate(FunctionLLM(speak)), tools=[archive], limits=Limits(max_steps=8))
    assert (await brain.run(GOAL)).stop_reason is StopReason.MAX_STEPS
    brain.limits = Limits()
    assert (await brain.resume()).answer == "Build it higher."
    rounds = Debated.read(brain.memory).rounds
    assert [said["Sceptic"] for said in rounds] == ["Sceptic in Round 1", "Sceptic in Round 2"]


async def test_a_second_goal_starts_a_new_debate() -> None:
    llm = FunctionLLM(speak)
    brain = Brain(debate(llm, rounds=1), tools=[archive])
    await brain.run(GOAL)
    await brain.run("And a tunnel?")
    assert len(Debated.read(brain.memory).rounds) == 1
    assert len(llm.calls) == 2 * (2 + 1 + 1)


@pytest.mark.parametrize("options", [{"personas": {"A": "alone"}}, {"rounds": 0}])
def test_a_debate_of_one_or_of_no_rounds_is_refused(options: Any) -> None:
    with pytest.raises(StateDefinitionError, match="two personas"):
        debate(ScriptedLLM(), **options)
