"""The demo model behind the model port: sums, the clock, tools by their words, usage."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncGenerator

import anyio
import pytest

from agent_brain.demo import DemoLLM, demo_tools
from agent_brain.memories import Message
from agent_brain.states.models.llm import Thought
from agent_brain.states.usage import Usage
from agent_brain.tools import Action, BaseTool, ToolError, call_tool, tool
from tests.demo.helpers import ask, fixed_clock

pytestmark = pytest.mark.anyio
TOOLS = {tool.name: tool for tool in demo_tools(clock=fixed_clock)}


@pytest.mark.parametrize(
    "question, expected",
    [
        ("what is 17 times 23 plus 4", "395"),
        ("15% of 240", "36"),
        ("How much is 15 percent of 240?", "36"),
        ("(3+4)*2^5", "224"),
        ("What's 1,000 divided by 8?", "125"),
        ("add 3 and 4", "7"),
        ("subtract 8 from 20", "12"),
        ("multiply 6 by 7", "42"),
        ("2 to the power of 10", "1024"),
        ("square root of 144", "12"),
        ("add 3 and 4, then multiply the result by 10", "70"),
        ("What is 2+2? And 391 divided by 17?", "23"),
        ("What is 1/0?", "division by zero"),
        ("Which weekday is 24 December 2026, and what is 15% of 240?", "Thursday"),
        ("how many days between 2026-01-05 and 2026-01-12?", "7"),
        ("What time is it in Tokyo?", "23:30"),
        ("what time is it", "14:30"),
        ("How many letters are in strawberry?", "10"),
        ("reverse 'abc'", "cba"),
        ("convert 5 miles to km", "8.04672"),
    ],
)
async def test_questions_are_answered_from_calls(question, expected):
    talk = await ask(question)
    assert talk.calls
    assert expected in talk.answer


async def test_independent_calls_are_made_at_once_and_dependent_ones_wait():
    talk = await ask("What is 2+2 and what time is it in Tokyo?")
    assert [[action.name for action in group] for group in talk.actions] == [
        ["calculate", "current_time"]
    ]
    talk = await ask("add 3 and 4, then multiply it by 10")
    assert [args["expression"] for _, args in talk.calls] == ["3 + 4", "7 * 10"]


async def test_that_is_the_result_before():
    first = await ask("what is 17 times 23")
    talk = await ask("Multiply that by 2.", before=first.messages)
    assert talk.calls == [("calculate", {"expression": "391 * 2"})]
    talk = await ask(
        "And that divided by 17?", [], before=[Message.user("?"), Message.assistant("It is 34.")]
    )
    assert talk.answer == "34 / 17 = 2."


async def test_without_tools_it_calculates_itself():
    assert (await ask("what is 17 times 23", [])).answer == "17 * 23 = 391."
    assert "division by zero" in (await ask("1/0", [])).answer


@pytest.mark.parametrize(
    "question", ["Should we build the bridge?", "", "Hello!", "42", "2026-03-01"]
)
async def test_what_it_cannot_do_it_says_so(question):
    talk = await ask(question)
    assert talk.calls == []
    assert "not a language model" in talk.answer


async def test_it_quotes_the_first_question():
    before = [Message.user("my name is Ann"), Message.assistant("Hello!")]
    talk = await ask("what was my first question?", before=before)
    assert "my name is Ann" in talk.answer


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
def get_weather(city: str) -> str:
    """Get the current weather of a city."""
    return f"It is sunny in {city}."


@tool
def web_search(query: str) -> str:
    """Search the web."""
    return "It was Shakespeare."


@tool
def mean(numbers: list[float]) -> float:
    """The mean of some numbers."""
    return sum(numbers) / len(numbers)


@tool
def shipping_cost(weight_kg: float, express: bool = False) -> str:
    """Tell what it costs to send a parcel."""
    return f"{4.5 + 1.2 * weight_kg:.2f} euros"


@pytest.mark.parametrize(
    "question, tools, calls",
    [
        ("what is 3 plus 4, add them", [add], [("add", {"a": 3, "b": 4})]),
        ("What's the weather in Paris?", [add, get_weather], [("get_weather", {"city": "Paris"})]),
        ("what is the weather in london", [get_weather], [("get_weather", {"city": "london"})]),
        (
            "search the web: who wrote it?",
            [web_search],
            [("web_search", {"query": "search the web:"})],
        ),
        ("the mean of 4, 5 and 9", [mean], [("mean", {"numbers": [4, 5, 9]})]),
        (
            "call get_weather for 'Oslo'",
            [web_search, get_weather],
            [("get_weather", {"city": "Oslo"})],
        ),
        (
            "What is the shipping cost for a weight of 3 kg?",
            [shipping_cost],
            [("shipping_cost", {"weight_kg": 3})],
        ),
        ("What's the weather?", [get_weather], []),
        ("Should we go?", [add, get_weather, mean], []),
    ],
)
async def test_a_tool_is_called_by_the_words_of_the_question(question, tools, calls):
    assert (await ask(question, tools)).calls == calls


class Odd(BaseTool):
    """A tool whose schema was written elsewhere."""

    async def execute(self, **kwargs):
        return repr(kwargs)


@pytest.mark.parametrize(
    "parameter",
    [
        True,
        {},
        {"type": ["null", "string"]},
        {"type": ["integer", "null"]},
        {"anyOf": [{"type": "null"}, True]},
        {"$ref": "#/allOf/0"},
        {"$ref": "#/$defs/list"},
        {"enum": [1, None, "red"]},
        {"enum": [1, 2]},
        {"type": "array", "items": True},
        {"type": "array", "items": {"type": ["number", "null"]}},
        {"type": "object"},
        {"type": "null"},
        {"type": "boolean"},
    ],
    ids=str,
)
async def test_any_valid_schema_of_a_tool_is_read(parameter):
    schema = {
        "type": "object",
        "properties": {"value": parameter},
        "required": ["value"],
        "allOf": [True],
        "$defs": {"list": {"type": "array", "items": {"$ref": "#/$defs/list"}}},
    }
    talk = await ask("call odd with 5 and 'red' in Rome", [Odd("odd", "", schema)])
    assert len(talk.calls) <= 1
    assert talk.answer


async def test_a_tool_that_fails_is_reported_as_failing():
    @tool
    def get_tides(harbour: str) -> str:
        """Tides of a harbour."""
        raise ToolError("the gauge is broken")

    talk = await ask("tides in Hamburg", [get_tides])
    assert len(talk.calls) == 1
    assert "the gauge is broken" in talk.answer


async def test_a_call_ends_with_its_usage_at_no_cost():
    pieces = [p async for p in DemoLLM().stream([Message.user("2+2")], tools=[*TOOLS.values()])]
    assert isinstance(pieces[0], Thought)
    usage = pieces[-1]
    assert isinstance(usage, Usage)
    assert usage.input_tokens > 100
    assert usage.output_tokens > 0
    assert (usage.cost, usage.model) == (0.0, "demo")


async def test_equal_messages_give_equal_output():
    question = "What is 2+2 and what time is it in Tokyo?"
    first, second = await ask(question), await ask(question)
    assert (first.calls, first.thoughts, first.chunks) == (
        second.calls,
        second.thoughts,
        second.chunks,
    )
    assert len(first.chunks) > 3


async def test_leaving_early_is_allowed():
    stream = DemoLLM().stream([Message.user("who are you?")])
    assert await anext(stream) == "I "
    assert isinstance(stream, AsyncGenerator)
    await stream.aclose()


@pytest.mark.parametrize(
    "text", ["(" * 10_000, "a and " * 3_000, "what is " + "1+" * 5_000, "'" * 9_999, "{" * 9_999]
)
async def test_hostile_words_are_declined_quickly(text):
    assert "not a language model" in (await ask(text)).answer


@pytest.mark.parametrize(
    "name, args, reason",
    [
        ("date_math", {"operation": "weekday", "date": "soon"}, "valid date"),
        ("date_math", {"operation": "days_between", "date": "2026-01-01"}, "other_date"),
        ("date_math", {"operation": "add_days", "date": "9999-12-31", "days": 1}, "9999"),
        ("date_math", {"operation": "add_days", "date": "2000-01-01", "days": 10**12}, "9999"),
    ],
)
async def test_a_wrong_argument_of_a_tool_is_explained(name, args, reason):
    outcome = await call_tool(Action(name=name, args=args), TOOLS)
    assert outcome.is_error
    assert reason in outcome.content


@pytest.mark.parametrize(
    "args, expected",
    [
        ({"operation": "add_days", "date": "2024-02-28", "days": 2}, "2024-03-01"),
        ({"operation": "weekday", "date": "2000-01-01"}, "Saturday"),
    ],
)
async def test_dates(args, expected):
    assert (await call_tool(Action(name="date_math", args=args), TOOLS)).content == expected


@pytest.mark.parametrize("operation, expected", [("count_words", "2"), ("uppercase", "A B1")])
async def test_texts(operation, expected):
    action = Action(name="text_tool", args={"operation": operation, "text": "a b1"})
    assert (await call_tool(action, TOOLS)).content == expected


def test_importing_it_is_light():
    code = (
        "import sys, agent_brain.demo; "
        "sys.exit(any(name in sys.modules for name in ('litellm', 'chromadb', 'jsonschema')))"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


@pytest.mark.parametrize("text", ["a", "1 ", "(", "a b ", "\n "])
async def test_a_long_text_is_answered_at_once(text: str) -> None:
    with anyio.fail_after(60):  # reading all of it by patterns would take minutes
        assert "built-in demo model" in (await ask(text * 200_000 + "hello")).answer
