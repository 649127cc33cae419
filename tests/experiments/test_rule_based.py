"""The model of rules answers from what it is shown, and slips as often as it is told to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter

from agent_brain import Brain
from agent_brain.demo import DemoLLM
from agent_brain.errors import ExperimentError
from agent_brain.experiments import RuleBasedLLM
from agent_brain.experiments.rule_based.llm import mistaken
from agent_brain.experiments.rule_based.solving import Answer, Data
from agent_brain.memories import Message, VectorMemory
from agent_brain.nets import react
from agent_brain.nets.library.router import RouteName, router
from agent_brain.states import LLM, Evaluation, Usage
from agent_brain.states.planning import Plan
from agent_brain.testing import CassetteLLM, ScriptedLLM
from agent_brain.tools import Action, BaseTool, ToolError, tool

pytestmark = pytest.mark.anyio


async def reply(llm: LLM, *said: Message, tools: list[BaseTool] | None = None, **more: Any) -> Any:
    """Return the text of a response, or its call."""
    pieces = [piece async for piece in llm.stream(said, tools=tools or [], **more)]
    calls = [piece for piece in pieces if isinstance(piece, Action)]
    return calls[0] if calls else "".join(piece for piece in pieces if isinstance(piece, str))


@pytest.mark.parametrize(
    "llm, rules",
    [
        (RuleBasedLLM(), True),
        (DemoLLM(), True),
        (ScriptedLLM("Hello"), True),
        (CassetteLLM(DemoLLM()), True),
    ],
)
def test_models_of_rules_say_so(llm: LLM, rules: bool) -> None:
    assert llm.rule_based is rules
    assert LLM.rule_based is False


async def test_it_knows_what_a_message_says_and_nothing_else() -> None:
    llm = RuleBasedLLM()
    told = Message.user("The code of the cellar is K4-1234. The code of the attic is K4-9999.")
    asked = Message.user("What is the code of the cellar?")
    assert await reply(llm, told, asked) == "The code of the cellar is K4-1234."
    assert await reply(llm, asked) == "I do not know the code of the cellar."
    assert await reply(llm, told) == "Noted."


async def test_the_newest_of_two_facts_counts() -> None:
    said = [
        Message.user("The code of the cellar is A2-1111."),
        Message.user("I was wrong. The code of the cellar is now B3-2222."),
        Message.user("What is the code of the cellar?"),
    ]
    assert "B3-2222" in await reply(RuleBasedLLM(), *said)


async def test_it_calls_the_tools_that_are_offered_one_by_one() -> None:
    @tool
    def total(first: int, second: int) -> int:
        """Add two numbers."""
        return first + second

    asked = Message.user("What is (17 + 25) * 3?")
    call = await reply(RuleBasedLLM(), asked, tools=[total])
    assert (call.name, call.args) == ("total", {"first": 17, "second": 25})
    done = [asked, Message.assistant(tool_calls=call), Message.tool(40, call)]  # a tool is believed
    assert await reply(RuleBasedLLM(), *done, tools=[total]) == "(17 + 25) * 3 = 120"


async def test_it_gives_up_on_a_tool_that_fails_and_says_so() -> None:
    calls = 0

    @tool
    def look_up(name: str) -> str:
        """Look up a name."""
        nonlocal calls
        calls += 1
        raise ToolError("The records have burnt")

    brain = Brain(react(RuleBasedLLM()), tools=[look_up])
    result = await brain.run("What is the town of Ann Berg?")
    assert result.answer == "I do not know the town of Ann Berg. The tool look_up failed."
    assert calls == 2


async def test_it_leaves_tools_that_write_alone() -> None:
    @tool
    def add_record(text: str) -> str:
        """Add a record."""
        return "Added."

    asked = Message.user("What is the town of Ann Berg?")
    assert (
        await reply(RuleBasedLLM(), asked, tools=[add_record])
        == "I do not know the town of Ann Berg."
    )


async def test_a_route_that_is_wrong_is_one_that_there_is() -> None:
    net = router(RuleBasedLLM(slip=1.0))
    result = await Brain(net).run("The code of the cellar is K4-1234.")
    assert result.stop_reason == "done"


async def test_it_slips_as_often_as_it_is_told_to() -> None:
    llm = RuleBasedLLM(slip=0.2)
    right = wrong = 0
    for number in range(1000):
        answer = await reply(llm, Message.user(f"What is {number} + 1?"))
        right += answer.endswith(f" = {number + 1}")
        wrong += not answer.endswith(f" = {number + 1}")
    assert right + wrong == 1000
    assert 160 < wrong < 240  # 200 are expected; three standard deviations are 38


async def test_slips_depend_on_the_seed_and_on_what_is_shown_alone() -> None:
    asked = [Message.user(f"What is {number} + 1?") for number in range(50)]

    async def answers(seed: int) -> list[str]:
        return [await reply(RuleBasedLLM(0.5, seed), message) for message in asked]

    assert await answers(1) == await answers(1)
    assert await answers(1) != await answers(2)


async def test_slips_do_not_depend_on_the_time_of_recalled_messages() -> None:
    async def answers(day: datetime) -> list[str]:
        found = []
        for number in range(50):
            memory = VectorMemory(recent=1)
            await memory.update([Message.user(f"The sum {number} is easy", created_at=day)])
            await memory.update([Message.assistant("Noted.", created_at=day)])
            await memory.set_goal(f"What is the sum {number} + 1?")
            shown = await memory.context()
            assert f"[{day:%Y-%m-%d %H:%M}]" in " ".join(m.content for m in shown)
            found.append(await reply(RuleBasedLLM(0.5), *shown))
        return found

    day = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    assert await answers(day) == await answers(day + timedelta(minutes=1))


class Form(BaseModel):
    name: str
    count: int


@pytest.mark.parametrize(
    "value, output_type",
    [
        ({"passed": True, "score": 1.0, "feedback": ""}, Evaluation),
        ({"steps": ["Find the town of Ann Berg."]}, Plan),
        ({"name": "Ann", "count": 3}, Form),
        (7, int),
    ],
)
def test_data_that_is_wrong_still_fits_its_type(value: Any, output_type: Any) -> None:
    wrong = mistaken(Data(value), output_type)
    assert isinstance(wrong, Data)
    assert wrong.value != value
    TypeAdapter(output_type).validate_python(wrong.value)


def test_a_judgement_that_is_wrong_is_wrong_altogether() -> None:
    wrong = mistaken(Data({"passed": True, "score": 1.0, "feedback": ""}), Evaluation)
    assert isinstance(wrong, Data)
    assert (wrong.value["passed"], wrong.value["score"]) == (False, 0.0)


def test_calls_and_answers_that_are_wrong() -> None:
    call = mistaken(Action(name="add", args={"a": 1, "b": 2}), None)
    assert isinstance(call, Action)
    assert call.args == {"a": 1, "b": 3}
    look_up = mistaken(Action(name="look_up", args={"name": "Ann Berg"}), None)
    assert isinstance(look_up, Action)
    assert look_up.args == {"name": "Ann Ber"}
    assert mistaken(Answer("1 + 1 = 2", "2"), None) == Answer("1 + 1 = 3")
    assert mistaken(Answer("Noted."), None) == Answer("I do not know.")
    other = mistaken(Data({"name": "react"}, ({"name": "plan"},)), RouteName)
    assert other == Data({"name": "plan"})


async def test_usage_and_price() -> None:
    llm = RuleBasedLLM(price=(1.0, 10.0))
    pieces = [piece async for piece in llm.stream([Message.user("What is 1 + 1?")])]
    usage = pieces[-1]
    assert isinstance(usage, Usage)
    assert usage.input_tokens > 0 < usage.output_tokens
    assert usage.cost == pytest.approx((usage.input_tokens + 10 * usage.output_tokens) / 1e6)
    assert (usage.requests, usage.model) == (1, llm.model)


@pytest.mark.parametrize(
    "options", [{"slip": 1.5}, {"slip": -0.1}, {"slip": "a"}, {"price": (-1.0, 0.0)}, {"price": 1}]
)
def test_options_that_make_no_sense(options: Any) -> None:
    with pytest.raises(ExperimentError, match=next(iter(options))):
        RuleBasedLLM(**options)
