"""Tools that are classes, and tools as a set."""

from __future__ import annotations

from typing import Any

import pytest

from agent_brain.testing import FakeMemory
from agent_brain.tools import (
    Action,
    BaseTool,
    FunctionTool,
    ToolArgumentsError,
    ToolDefinitionError,
    as_tool,
    call_tool,
    tool,
)

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "array", "items": {"type": "integer"}},
    },
    "required": ["city"],
    "additionalProperties": False,
}


class Weather(BaseTool):
    def __init__(self, name: str = "weather", schema: Any = SCHEMA, **options: Any) -> None:
        super().__init__(name, "Tell the weather.", schema, **options)

    async def execute(self, **kwargs: Any) -> Any:
        return kwargs


def test_it_is_described_by_what_it_was_given():
    assert Weather().to_dict() == {
        "weather": {"description": "Tell the weather.", "input_schema": SCHEMA}
    }


def test_a_tool_without_execute_is_abstract():
    with pytest.raises(TypeError, match="execute"):
        BaseTool("a", "b", SCHEMA)  # type: ignore[abstract]


def test_arguments_are_checked_against_the_schema_and_every_problem_listed():
    with pytest.raises(ToolArgumentsError) as caught:
        Weather().validate({"days": [1, "x"], "color": "red"})

    told = sorted(problem.split(":")[0] for problem in caught.value.problems)
    assert told == ["arguments", "arguments", "days.1"]


@pytest.mark.anyio
async def test_valid_arguments_reach_execute():
    outcome = await call_tool(
        Action(name="weather", args={"city": "Oslo", "days": [1]}), {"weather": Weather()}
    )

    assert outcome.content == '{"city":"Oslo","days":[1]}'


@pytest.mark.filterwarnings("ignore")  # a warning would stop the fetch that is looked for
def test_a_schema_that_refers_elsewhere_is_refused_and_fetches_nothing(monkeypatch):
    fetched: list[object] = []
    monkeypatch.setattr("urllib.request.urlopen", fetched.append)
    elsewhere = {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/schema.json"}}}

    with pytest.raises(ToolDefinitionError, match="leads to another document"):
        Weather("w", elsewhere)
    assert fetched == []


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"type": "string"}, '"type": "object"'),
        ({}, '"type": "object"'),
        ("object", '"type": "object"'),
        ({"type": "object", "properties": {"a": {"type": "banana"}}}, "banana"),
        ({"type": "object", "required": "a"}, r"\$\.required"),
    ],
)
def test_a_schema_that_is_none_is_refused(schema, says):
    with pytest.raises(ToolDefinitionError, match=says):
        Weather(schema=schema)


@pytest.mark.parametrize("name", ["", "a b", "é", "x" * 65, "a.b", "a\n", 5])
def test_a_name_that_no_api_takes_is_refused(name):
    with pytest.raises(ToolDefinitionError, match="letters, digits"):
        Weather(name)


@pytest.mark.parametrize("name", ["a", "get-it_2", "x" * 64])
def test_a_name_that_apis_take_is_fine(name):
    assert Weather(name).name == name


def test_all_that_is_wrong_is_said_at_once():
    with pytest.raises(ToolDefinitionError) as caught:
        Weather("a b", {}, timeout=0, max_result_tokens=0)

    assert str(caught.value).count(";") == 3


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_a_timeout_must_be_above_zero(timeout):
    with pytest.raises(ToolDefinitionError, match="timeout"):
        Weather(timeout=timeout)


def test_options_of_the_decorator_reach_the_tool():
    @tool(timeout=2, requires_approval=True, idempotent=True, max_result_tokens=9)
    def f() -> None: ...

    assert (f.timeout, f.requires_approval, f.idempotent, f.max_result_tokens) == (2, True, True, 9)


def test_as_tool_leaves_a_tool_as_it_is():
    weather = Weather()

    assert as_tool(weather) is weather


def test_as_tool_makes_a_tool_of_a_function():
    def f() -> None: ...

    assert isinstance(as_tool(f), FunctionTool)


def test_as_tool_refuses_a_tool_class_and_says_what_is_missing():
    with pytest.raises(ToolDefinitionError, match="pass an instance"):
        as_tool(Weather)


@pytest.mark.parametrize("value", ["weather", None, {"name": "x"}])
def test_as_tool_refuses_what_is_not_a_tool(value):
    with pytest.raises(ToolDefinitionError, match="is not a tool"):
        as_tool(value)


def test_two_tools_of_one_name_are_refused_and_both_named():
    @tool(name="weather")
    def other() -> None: ...

    with pytest.raises(
        ToolDefinitionError, match="<Weather 'weather'> and <FunctionTool 'weather'>"
    ):
        FakeMemory(tools=[Weather(), other])


def test_the_same_tool_twice_is_one_tool():
    weather = Weather()

    assert FakeMemory(tools=[weather, weather]).available_tools == {"weather": weather}


def test_of_tools_with_a_taken_name_none_is_added():
    memory = FakeMemory(tools=[Weather()])

    with pytest.raises(ToolDefinitionError):
        memory.add_tools([Weather("new"), Weather("weather")])
    assert list(memory.available_tools) == ["weather"]
