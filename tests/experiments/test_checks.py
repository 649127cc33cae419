"""Checks of answers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from agent_brain import Result, StopReason
from agent_brain.errors import ExperimentError
from agent_brain.experiments import (
    Check,
    Contains,
    Equals,
    Function,
    JsonMatches,
    Judge,
    Matches,
    Number,
    Reply,
    Task,
    Verdict,
)
from agent_brain.experiments.checks import as_check
from agent_brain.states import Usage
from agent_brain.testing import ScriptedLLM

pytestmark = pytest.mark.anyio


class City(BaseModel):
    name: str
    people: int = 0


@dataclass
class Point:
    x: int


def reply(answer: str = "", output: Any = None) -> Reply:
    task = Task(id="t", turns="Say it", expected="x")
    result = Result(
        answer=answer,
        output=output,
        stop_reason=StopReason.DONE,
        steps=1,
        usage=Usage(),
        messages=[],
        run_id="r",
    )
    return Reply(task, task.all_turns[0], result)


async def passes(check: Check, answer: str = "", output: Any = None) -> bool:
    verdict = await check.check(reply(answer, output))
    assert verdict.reason
    assert verdict.score == float(verdict.passed)
    return verdict.passed


@pytest.mark.parametrize(
    ("expected", "kind"),
    [
        ("Porto", Contains),
        (42, Number),
        (0.5, Number),
        (re.compile("a"), Matches),
        ({"a": 1}, Equals),
        ([1], Equals),
        (City(name="Porto"), Equals),
        (Point(1), Equals),
        (lambda reply: True, Function),
    ],
)
def test_an_expectation_stands_for_a_check(expected: Any, kind: type[Check]) -> None:
    assert isinstance(as_check(expected), kind)


def test_a_check_stands_for_itself() -> None:
    check = Contains("a")

    assert as_check(check) is check


def holds_itself() -> list[Any]:
    data: list[Any] = []
    data.append(data)
    return data


@pytest.mark.parametrize("expected", [True, None, b"a", City, object()])
def test_what_cannot_be_expected_is_refused(expected: Any) -> None:
    with pytest.raises(ExperimentError, match="expected="):
        as_check(expected)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Contains(" "),
        lambda: Number(float("nan")),
        lambda: Number(True),
        lambda: Number(10**400),
        lambda: Number(1, tolerance=-1),
        lambda: Matches("("),
        lambda: JsonMatches("a"),
        lambda: Equals(holds_itself()),
        lambda: Function(City),  # type: ignore[arg-type]
        lambda: Function(lambda reply: True, threshold=2),
        lambda: Judge("demo", ""),
        lambda: Judge(3, "good"),  # type: ignore[arg-type]
        lambda: Judge("demo", "good", threshold=-1),
    ],
)
def test_a_check_that_makes_no_sense_is_refused(make: Any) -> None:
    with pytest.raises(ExperimentError):
        make()


async def test_contains_ignores_case_and_white_space() -> None:
    assert await passes(Contains("new  YORK"), "It is New\nYork.")
    assert not await passes(Contains("New York", ignore_case=False), "It is new york.")


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        (42, "The answer is 42."),
        (1234.5, "It costs $1,234.5"),
        (1234567, "1,234,567 people"),
        (-3, "x = -3"),
        (-3, "It is −3 degrees"),
        (7, "from 5-7"),
        (3, "10-3"),
        (0.5, "It is 50%."),
        (50, "It is 50 %"),
        (1e6, "about 1e6"),
        (0.25, "exactly .25"),
        (391, "17 * 23 = **391**"),
        (2, "1 or 2"),
        (1 / 3, "0.3333333333333"),
    ],
)
async def test_the_last_number_is_read(value: float, answer: str) -> None:
    assert await passes(Number(value), answer)


@pytest.mark.parametrize(
    ("value", "answer"), [(42, "no idea"), (42, "42 or 43"), (3, "-3"), (1234, "1,23,4")]
)
async def test_another_number_does_not_pass(value: float, answer: str) -> None:
    assert not await passes(Number(value), answer)


async def test_a_number_may_be_near() -> None:
    assert await passes(Number(3.1416, tolerance=0.001), "3.14")
    assert not await passes(Number(3.1416), "3.14")


async def test_a_pattern_is_found() -> None:
    assert await passes(Matches(r"\b4\d\b"), "It is 42.")
    assert not await passes(Matches(re.compile("^x")), "yx")


@pytest.mark.parametrize(
    ("data", "output"),
    [
        (City(name="Porto"), {"name": "Porto", "people": 0}),
        ({"x": 1}, Point(1)),
        ([1, 2], (1, 2)),
    ],
)
async def test_output_is_compared_as_json(data: Any, output: Any) -> None:
    assert await passes(Equals(data), output=output)
    assert not await passes(Equals(data), output=[data])
    assert not await passes(Equals(data))


async def test_json_may_have_more() -> None:
    check = JsonMatches({"city": {"name": "Porto"}, "tags": ["a"], "n": 1})
    whole = {"city": {"name": "Porto", "people": 3}, "tags": ["a"], "n": 1.0}

    assert await passes(check, output=whole)
    assert await passes(check, '```json\n{"city": {"name": "Porto"}, "tags": ["a"], "n": 1}\n```')
    assert not await passes(check, output={**whole, "tags": []})
    assert not await passes(check, output={**whole, "city": "Porto"})
    assert not await passes(check, output={**whole, "city": {}})
    assert not await passes(check, "Porto")


async def test_json_says_where_it_differs() -> None:
    verdict = await JsonMatches({"a": [{"b": 1}]}).check(reply(output={"a": [{"b": 2}]}))

    assert verdict.reason == "a[0].b is '2'; expected '1'"


async def test_a_function_decides() -> None:
    async def later(given: Reply) -> bool:
        return given.result.answer == "yes"

    def verdict(given: Reply) -> Verdict:
        return Verdict(given.turn.text == "Say it", 1.0, "because")

    assert await passes(Function(later), "yes")
    assert not await passes(Function(later), "no")
    assert await passes(Function(verdict))


async def test_a_function_may_give_a_score() -> None:
    half = Function(lambda reply: 0.5)
    enough = Function(lambda reply: 0.5, threshold=0.5)

    assert (await half.check(reply())).passed is False
    assert (await half.check(reply())).score == 0.5
    assert (await enough.check(reply())).passed is True


@pytest.mark.parametrize("found", [2, -1, "yes", None])
async def test_a_function_that_returns_something_else_is_an_error(found: Any) -> None:
    with pytest.raises(ExperimentError, match="returned"):
        await Function(lambda reply: found).check(reply())


async def test_a_model_judges() -> None:
    llm = ScriptedLLM(['{"reason": "It is polite.", "score": 0.8}'])
    verdict = await Judge(llm, "Is it polite?").check(reply("Good day!"))

    assert verdict == Verdict(True, 0.8, "It is polite.", judged=True, cost=0.0)
    (call,) = llm.calls
    assert "Is it polite?" in call.messages[-1].content
    assert "Good day!" in call.messages[-1].content
