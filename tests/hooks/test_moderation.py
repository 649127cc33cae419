"""What goes into models and what comes out of them is checked."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from agent_brain import Brain, MessagesMemory, SummaryMemory, UsageLedger, WindowedMemory, tool
from agent_brain.errors import BrainDefinitionError, Refused
from agent_brain.hooks import HidePersonalData, Moderation
from agent_brain.memories import RamJournal, Role
from agent_brain.states import TextDelta, Thought, model_summarizer
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action

pytestmark = pytest.mark.anyio


def no_bombs(text: str) -> str | None:
    return "no weapons" if "bomb" in text else None


def said(llm: ScriptedLLM) -> str:
    return "\n".join(m.content for call in llm.calls for m in call.messages)


async def test_a_question_is_refused_with_a_text_and_the_next_one_is_answered() -> None:
    llm = ScriptedLLM(["Paris."])
    brain = Brain("react", llm=llm, hooks=[Moderation(no_bombs, instead="No.")])

    refused = await brain.run("How do I build a bomb?")
    assert (refused.answer, refused.finish_reason) == ("No.", "refusal")
    assert refused.usage.requests == 0
    assert (await brain.run("Capital of France?")).answer == "Paris."
    assert "bomb" not in said(llm)
    assert "[withheld: no weapons]" in said(llm)


async def test_a_question_is_refused_with_an_error() -> None:
    llm = ScriptedLLM(["Paris."])
    brain = Brain("react", llm=llm, hooks=[Moderation(no_bombs, instead=None)])

    with pytest.raises(Refused, match="What the user said was refused by moderation: no weapons"):
        await brain.run("How do I build a bomb?")
    assert (await brain.run("Capital of France?")).answer == "Paris."
    assert "bomb" not in said(llm)


@tool
def read_page() -> str:
    """Read the page."""
    return "It says: build a bomb"


@pytest.mark.parametrize("native", [True, False])
async def test_what_a_tool_returns_is_refused(native: bool) -> None:
    turns = [Action(name="read_page"), "Sorry.", "Paris."]
    llm = ScriptedLLM(turns if native else turns[:2], native=native)
    memory = WindowedMemory()
    brain = Brain("react", memory, tools=[read_page], llm=llm, hooks=[Moderation(no_bombs)])

    answer = (await brain.run("What is on the page?")).answer
    assert answer == ("I cannot help with that." if native else "Sorry.")
    assert "bomb" not in said(llm)


async def test_nobody_sees_a_response_that_is_refused() -> None:
    async def check(text: str) -> bool:
        return "bomb" in text

    llm = ScriptedLLM([["Take ", "a bomb"], "It ticks."])
    hook = Moderation(check, sides=("output",))
    brain = Brain("react", llm=llm, hooks=[hook])
    pieces = [piece async for piece in brain.answer("Which bomb?")]
    assert "".join(pieces) == "I cannot help with that."
    assert not [
        m for m in await brain.memory.dump() if m.role is Role.ASSISTANT and "bomb" in m.content
    ]


class City(BaseModel):
    name: str


async def test_data_is_refused_with_an_error() -> None:
    llm = ScriptedLLM(["Bombay", '{"name": "bombay"}'])
    brain = Brain("react", llm=llm, hooks=[Moderation(no_bombs)], output_type=City)
    with pytest.raises(Refused, match="What the model said"):
        await brain.run("Which city?")


@pytest.mark.parametrize("name", ["Bombay bomb", "\\u0062omb"], ids=["plain", "escaped"])
async def test_data_in_json_is_checked_as_it_will_be_read(name: str) -> None:
    llm = ScriptedLLM(["Which?", f'{{"name": "{name}"}}'])
    brain = Brain("react", llm=llm, hooks=[Moderation(no_bombs)], output_type=City)
    with pytest.raises(Refused, match="What the model said"):
        await brain.run("Which city?")


async def test_an_answer_as_data_is_checked() -> None:
    llm = ScriptedLLM([Action(name="final_result", args={"name": "bombay"})])
    brain = Brain("react", llm=llm, hooks=[Moderation(no_bombs)], output_type=City)
    with pytest.raises(Refused, match="What the model said"):
        await brain.run("Which city?")


async def test_thoughts_are_checked() -> None:
    llm = ScriptedLLM([[Thought("They want a bomb."), "Paris."]])
    brain = Brain("react", llm=llm, hooks=[Moderation(no_bombs)])
    async with brain.stream("Which city?") as run:
        said = [event.text async for event in run if isinstance(event, TextDelta)]
    assert "".join(said) == run.result.answer == "I cannot help with that."


async def test_runs_with_moderation_are_replayed() -> None:
    llm, memory = ScriptedLLM(["Boil it.", "Or fry it."]), MessagesMemory(journal=RamJournal())
    questions = {"How long does an egg take?": [True] * 2, "And?": [True] * 2, "Who won?": [False]}
    for question, allowed in questions.items():
        judge = ScriptedLLM([f'{{"allowed": {str(one).lower()}}}' for one in allowed])
        brain = Brain("react", memory, llm=llm, hooks=[Moderation(judge)], trace=True)
        result = await brain.run(question)
        judge.assert_complete()  # in another process too, what was judged is not judged again
        report = await brain.replay()
        assert report.equal, str(report)
    assert result.answer == "I cannot help with that."


async def test_a_memory_does_without_a_summary_that_is_refused() -> None:
    llm = ScriptedLLM(["Yes."] * 6)
    writes = ScriptedLLM(["about bombs"] * 20)
    memory = SummaryMemory(summarize=model_summarizer(writes), max_messages=4)
    brain = Brain("react", memory, llm=llm, hooks=[Moderation(no_bombs)])
    for _ in range(6):
        await brain.run("Do you hear me?")
    assert writes.calls
    assert "bomb" not in said(llm)
    assert "I cannot help" not in said(llm)


async def test_a_model_decides_once_for_each_text_and_its_calls_count() -> None:
    judge = ScriptedLLM(
        [
            '{"allowed": true}',
            '{"allowed": true}',
            '{"allowed": false, "reason": "not cooking"}',
        ],
        model="judge",
    )
    llm, ledger = ScriptedLLM(["Boil it."]), UsageLedger()
    hooks = [HidePersonalData(), Moderation(judge, rules="Only cooking."), ledger]
    brain = Brain("react", llm=llm, hooks=hooks)

    first = await brain.run("How long does an egg of ann@example.org take?")
    assert first.answer == "Boil it."
    assert first.usage.requests == 3
    assert ledger.by_purpose()["moderation"].requests == 2
    second = await brain.run("Who won </data> the match?")
    assert second.answer == "I cannot help with that."
    assert second.usage.requests == 1, "the first question and the answer were judged before"
    assert "Only cooking." in judge.calls[0].messages[0].content
    assert "ann@" not in said(judge)
    assert judge.calls[2].messages[-1].content.count("</data>") == 1


WRONG: dict[str, Any] = {
    "no check": lambda: Moderation(3),  # type: ignore[arg-type]
    "no side": lambda: Moderation(no_bombs, sides=()),
    "unknown side": lambda: Moderation(no_bombs, sides=("both",)),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("make", WRONG.values(), ids=WRONG)
def test_what_is_no_check_is_refused(make: Any) -> None:
    with pytest.raises(BrainDefinitionError, match=r"Moderation\(3\)|sides="):
        make()


@pytest.mark.parametrize("instead", ["", " ", 5])
def test_what_is_no_text_in_place_of_a_response_is_refused(instead: Any) -> None:
    with pytest.raises(BrainDefinitionError, match="give a text, or None to end the run"):
        Moderation(no_bombs, instead=instead)


async def test_what_one_check_says_of_a_text_does_not_count_for_another_one() -> None:
    llm, memory = ScriptedLLM(["Boil it.", "Boil it."]), MessagesMemory()
    asked = "How long does an egg take?"
    allows, refuses = ScriptedLLM(['{"allowed": true}']), ScriptedLLM(['{"allowed": false}'])
    kind = Moderation(allows, rules="Nothing hateful.", sides=("input",))
    cars = Moderation(refuses, rules="Only questions about cars.", sides=("input",), instead="No.")
    assert (await Brain("react", memory, llm=llm, hooks=[kind]).run(asked)).answer == "Boil it."
    assert (await Brain("react", memory, llm=llm, hooks=[cars]).run(asked)).answer == "No."
