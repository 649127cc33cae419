"""Every built-in net ends on the demo model, whatever shape it asks for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import Enum
from typing import Annotated, Literal
from uuid import UUID

import pytest
from pydantic import BaseModel, Field, TypeAdapter
from typing_extensions import TypedDict

from agent_brain import Brain
from agent_brain.demo import DemoLLM, demo_tools
from agent_brain.memories import Message
from agent_brain.nets import registry
from agent_brain.states.usage import Usage
from agent_brain.tools import Action

pytestmark = pytest.mark.anyio

NETS = [
    "debate",
    "graph_of_thoughts",
    "plan_execute",
    "react",
    "refact",
    "reflexion",
    "router",
    "self_consistency",
    "tree_of_thoughts",
]
DOCUMENTED = [
    "Should we build the bridge?",
    "Sort 8, 3, 9, 1, 7, 2.",
    "What are 1000 euros in dollars?",
    "Oslo or Bergen?",
    "How many km from Oslo to Bergen?",
    "Write is_leap(year) in Python.",
    "Why is the sky blue?",
    "Hi there",
    "3 boxes with 4 pens each: how many pens?",
    "Make 24 of 4, 9, 10 and 13.",
    "What is 17 times 23?",
]


def test_no_net_is_left_out():
    missing = set(registry._registry.built_in) - set(NETS)
    assert not missing, f"add to NETS, and give the demo model what they ask for: {missing}"


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("question", DOCUMENTED)
async def test_a_documented_question_ends_in_an_answer(net, question):
    result = await Brain(net, tools=demo_tools(), llm=DemoLLM()).run(question)
    assert result.stop_reason == "done"
    assert result.answer


@pytest.mark.parametrize("net", NETS)
async def test_a_sum_is_right_in_every_net(net):
    result = await Brain(net, tools=demo_tools(), llm=DemoLLM()).run("What is 17 times 23?")
    assert "391" in result.answer


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Point(TypedDict):
    x: int
    y: float


@dataclass
class Size:
    width: int
    unit: Literal["cm", "inch"]


class Leaf(BaseModel):
    children: list[Leaf]
    parent: Leaf | None


class Everything(BaseModel):
    colour: Colour
    when: date
    at: datetime
    who: UUID
    points: list[Point]
    size: Size
    pair: tuple[int, str]
    score: Annotated[float, Field(ge=0, le=1)]
    whole: Annotated[int, Field(gt=3, lt=5)]
    name: Annotated[str, Field(min_length=200, max_length=210)]
    many: Annotated[list[Colour], Field(min_length=3)]
    few: Annotated[list[str], Field(max_length=0)]
    table: dict[str, int]
    leaf: Leaf
    either: int | str
    maybe: str | None
    fixed: Literal[7]
    anything: object
    left_out: int = 3


SHAPES = [
    Everything,
    Point,
    Size,
    Colour,
    Leaf,
    int,
    float,
    bool,
    str,
    list[int],
    list[Point],
    dict[str, int],
    tuple[int, str, bool],
    int | None,
    Annotated[float, Field(gt=0, lt=1)],
    Annotated[int, Field(ge=-5, le=-2)],
]


async def written(output_type, question, tools=()):
    messages = [Message.user(question)]
    pieces = [p async for p in DemoLLM().stream(messages, tools=tools, output_type=output_type)]
    assert isinstance(pieces[-1], Usage)
    return "".join(piece for piece in pieces if isinstance(piece, str))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("question", ["Red or blue?", "What is 17 times 23?", ""])
async def test_any_shape_is_filled_with_values_that_fit(shape, question):
    TypeAdapter(shape).validate_json(await written(shape, question))


async def test_durations_fit_too():
    class Trip(BaseModel):
        takes: timedelta

    Trip.model_validate_json(await written(Trip, "How long?"))


async def test_what_is_known_is_filled_in():
    class Sum(BaseModel):
        question: str
        answer: float

    text = await written(Sum, "what is 17 times 23 plus 4")
    assert json.loads(text) == {"question": "what is 17 times 23 plus 4", "answer": 395}
    assert json.loads(await written(Colour, "The sky is blue")) == "blue"


async def test_a_shape_waits_for_the_calls():
    llm = DemoLLM()
    messages = [Message.user("what is 2 + 2?")]
    pieces = [p async for p in llm.stream(messages, tools=demo_tools(), output_type=int)]
    assert [piece.name for piece in pieces if isinstance(piece, Action)] == ["calculate"]


async def test_structured_answers_of_whole_runs():
    class Sum(BaseModel):
        answer: int

    brain = Brain("react", tools=demo_tools(), llm=DemoLLM(), net_options={"output_type": Sum})
    assert (await brain.run("what is 17 times 23?")).output == Sum(answer=391)


async def test_a_question_after_one_without_an_answer_is_the_question():
    messages = [Message.user("what is 2 + 2?"), Message.user("Why is the sky blue?")]
    pieces = [p async for p in DemoLLM().stream(messages, tools=demo_tools())]
    assert "Why is the sky blue?" in "".join(p for p in pieces if isinstance(p, str))
