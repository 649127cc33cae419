"""What the model of rules replies where nets ask for votes, judgements, plans and forms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from agent_brain import Brain, Result
from agent_brain.experiments import RuleBasedLLM, game24
from agent_brain.experiments.rule_based.sight import recognise
from agent_brain.experiments.task_sets.with_tools import Records, reading_tool
from agent_brain.memories import Message
from agent_brain.nets import (
    Net,
    debate,
    plan_execute,
    react,
    refact,
    reflexion,
    self_consistency,
    tree_of_thoughts,
)
from agent_brain.stuck import HINT
from agent_brain.tools import ToolError, tool

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]
LLM = RuleBasedLLM()
TOWN = Records({"Ann Berg": {"town": "Bergen"}}, "Ann Berg", ("town",), "Bergen")
ASKED = "What is the town of Ann Berg?"


async def answer(net: Net, text: str, **options: Any) -> Result[Any]:
    async with Brain(net, **options) as brain:
        return await brain.run(text)


async def test_a_model_votes_for_the_answer_that_it_knows() -> None:
    net = self_consistency(LLM, paths=3, vote=LLM)
    assert "= 42" in (await answer(net, "What is 17 + 25?")).answer


@pytest.mark.parametrize(
    "options", [{"evaluate": "vote"}, {"propose": "sample"}, {"strategy": "dfs"}]
)
async def test_a_tree_is_searched_in_every_way(options: Any) -> None:
    net = tree_of_thoughts(LLM, **options)
    assert (await answer(net, "What is (17 + 25) * 3?")).answer == "(17 + 25) * 3 = 126"


async def test_debaters_hear_each_other() -> None:
    result = await answer(debate(LLM), ASKED, tools=[reading_tool(TOWN)])
    assert result.answer == "The town of Ann Berg is Bergen."


async def test_it_reflects_on_a_tool_that_fails_and_tries_again() -> None:
    calls = 0

    @tool
    def look_up(name: str) -> str:
        """Look up a name."""
        nonlocal calls
        calls += 1
        if calls == 1:
            raise ToolError("Busy")
        return TOWN.read(name)

    result = await answer(refact(LLM), ASKED, tools=[look_up])
    assert result.answer == "The town of Ann Berg is Bergen."
    assert any("Look at this again" in message.content for message in result.messages)


async def test_what_nobody_knows_is_not_made_up() -> None:
    result = await answer(reflexion(LLM, attempts=2), "What is the code of the cellar?")
    assert result.answer == "I do not know the code of the cellar."
    result = await answer(plan_execute(LLM, max_plans=2), "What is the code of the cellar?")
    assert result.answer == "I do not know the code of the cellar."


async def test_a_new_plan_leaves_out_what_is_known() -> None:
    records = Records({"Ann Berg": {"town": "Bergen"}}, "Ann Berg", (), "")
    asked = "What is the mayor of the town of Ann Berg?"
    result = await answer(plan_execute(LLM, max_plans=2), asked, tools=[reading_tool(records)])
    plans = [m.content for m in result.messages if m.content.startswith("Plan:")]
    assert plans[0].count("Find the") == 2
    assert plans[1] == "Plan:\n1. Find the mayor of the town of Ann Berg."


async def test_arithmetic_that_cannot_be_done() -> None:
    assert "divides by zero" in (await answer(react(LLM), "What is 4 / (3 - 3)?")).answer

    @tool
    def add(a: int, b: int) -> str:
        """Add two numbers."""
        return "a lot"

    result = await answer(react(LLM), "What is 4 + 3?", tools=[add])
    assert result.answer.startswith("I do not know")


class Colour(BaseModel):
    colour: Literal["red", "green"]
    weight: float
    fragile: bool
    parts: list[int]
    owner: str
    note: str | None = None


@dataclass
class Door:
    code: str


async def test_forms_of_any_type_are_filled_in() -> None:
    said = (
        "The colour of parcel 3 is green. The weight of parcel 3 is 1.5. The fragile of parcel 3 is "
        "yes. The parts of parcel 3 are 7, 8 and 9. Fill in the form for parcel 3."
    )
    form = (await answer(react(LLM, output_type=Colour), said)).output
    assert form.model_dump(exclude={"note"}) == {
        "colour": "green",
        "weight": 1.5,
        "fragile": True,
        "parts": [7, 8, 9],
        "owner": "unknown",
    }
    asked = "The code of the cellar is K4-1234. Fill in the form for the cellar."
    assert (await answer(react(LLM, output_type=Door), asked)).output == Door("K4-1234")
    assert (await answer(react(LLM, output_type=int), "What is 17 + 25?")).output == 42


async def test_a_tree_of_thoughts_does_a_puzzle_with_its_thoughts() -> None:
    (puzzle,) = game24(1)
    result = await answer(tree_of_thoughts(LLM), str(puzzle.turns))
    assert "= 24" in result.answer


def test_requests_are_told_from_what_users_write(anyio_backend: str) -> None:
    assert recognise("What is the town of Ann Berg?") is None
    assert recognise("Judge the last step, please.") is None
    hint = recognise(HINT.replace("{reason}", "three times the same"))
    assert hint is not None
    assert (hint.kind, hint.fields) == ("hint", {"reason": "three times the same"})


async def test_it_reads_a_question_behind_a_hint() -> None:
    said = [Message.user("What is 1 + 1?"), Message.user(HINT.replace("{reason}", "it is so"))]
    pieces = [piece async for piece in LLM.stream(said)]
    assert "".join(piece for piece in pieces if isinstance(piece, str)) == "1 + 1 = 2"
