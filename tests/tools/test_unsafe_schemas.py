"""Schemas from strangers: refused when the tool is defined, or safe to check arguments with."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import Any

import pytest

from agent_brain.common.patterns import _searcher
from agent_brain.tools import BaseTool, ToolArgumentsError, ToolDefinitionError


class Plain(BaseTool):
    def __init__(self, schema: Any, **options: Any) -> None:
        super().__init__("plain", "A tool.", schema, **options)

    async def execute(self, **kwargs: Any) -> str:
        return "done"


def with_properties(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def circle(length: int) -> dict[str, Any]:
    parts = {f"p{n}": {"$ref": f"#/$defs/p{(n + 1) % length}"} for n in range(length)}
    return {"type": "object", "$defs": parts, "properties": {"a": {"$ref": "#/$defs/p0"}}}


def doubling(levels: int) -> dict[str, Any]:
    parts: dict[str, Any] = {
        f"p{n}": {"anyOf": [{"$ref": f"#/$defs/p{n + 1}"}] * 2} for n in range(levels)
    }
    parts[f"p{levels}"] = {"type": "string"}
    return {"type": "object", "$defs": parts, "properties": {"a": {"$ref": "#/$defs/p0"}}}


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = with_properties(a=schema)
    return schema


@pytest.fixture(params=["with RE2", "without RE2"])
def engine(request, monkeypatch):
    """Every test of patterns holds with and without the extra."""
    _searcher.cache_clear()
    if request.param == "without RE2":
        monkeypatch.setattr("agent_brain.common.patterns.find_spec", lambda name: None)
    yield request.param
    _searcher.cache_clear()


@pytest.mark.parametrize("approval", [False, True, lambda args: True])
@pytest.mark.parametrize(
    ("schema", "says"),
    [
        (with_properties(a={"$ref": "#/$defs/gone"}), r"'#/\$defs/gone' leads nowhere"),
        (with_properties(a={"$ref": "other.json#/x"}), "leads to another document"),
        (with_properties(a={"$ref": "http://[bad"}), "leads to another document"),
        (with_properties(a={"$ref": "#/type"}), "does not lead to a schema"),
        (with_properties(a={"$dynamicRef": "#gone"}), "leads nowhere"),
        ({"type": "object", "anyOf": [{"not": {"$ref": "#/x"}}]}, "leads nowhere"),
        ({"type": "object", "$ref": "#"}, "leads back to itself"),
        ({"type": "object", "$schema": 7}, "must be a string"),
        (circle(1), "leads back to itself"),
        (circle(2), "leads back to itself"),
        (circle(3), "leads back to itself"),
        (doubling(30), "more than 10,000 subschemas"),
        (nested(3000), "nested too deeply"),
    ],
)
def test_a_schema_that_cannot_be_evaluated_is_refused_at_once(schema, says, approval):
    with pytest.raises(ToolDefinitionError, match=says):
        Plain(schema, requires_approval=approval)


@pytest.mark.parametrize(
    "schema",
    [
        with_properties(child={"$ref": "#"}),
        {**with_properties(a={"$ref": "#/$defs/a"}), "$defs": {"a": {"type": "integer"}}},
        with_properties(a={"$ref": "#part"}, b={"$anchor": "part", "type": "integer"}),
        with_properties(a={"$ref": "https://json-schema.org/draft/2020-12/schema"}),
        {
            **with_properties(a={"type": "integer"}),
            "$schema": "http://json-schema.org/draft-07/schema#",
        },
        {**with_properties(a={"type": "integer"}), "$schema": "https://example.org/unknown"},
        doubling(8),
    ],
)
def test_references_that_lead_somewhere_are_fine(schema):
    assert Plain(schema).name == "plain"


def test_all_that_is_wrong_with_the_types_is_said_at_once_with_hints():
    schema = {
        "type": ["object", "null"],
        "properties": {
            "price": {"type": "float"},
            "count": {"type": ["int", "null"]},
            "name": {"type": "strng"},
            "what": {"type": "xyz"},
        },
    }
    with pytest.raises(ToolDefinitionError) as caught:
        Plain(schema)

    text = str(caught.value)
    assert '"type": "object" at its root' in text
    assert "$.properties.price.type: there is no type 'float' (did you mean 'number'?)" in text
    assert "$.properties.count.type: there is no type 'int' (did you mean 'integer'?)" in text
    assert "there is no type 'strng' (did you mean 'string'?)" in text
    assert "there is no type 'xyz' (there are: array, " in text


EVIL = [
    "^(a+)+$",
    "^(a|a)*$",
    "(.*a){20}$",
    "^(([a-z])+.)+[A-Z]([a-z])+$",
    "a*a*a*a*a*a*a*b",
    "(a?){30}a{30}b",
]


@pytest.mark.parametrize("pattern", EVIL)
@pytest.mark.parametrize("where", ["pattern", "patternProperties", "nested", "unevaluated"])
def test_no_pattern_holds_up_the_event_loop(pattern, where, engine):
    text = "a" * 3000 + "!"
    schema, args = {
        "pattern": (with_properties(a={"type": "string", "pattern": pattern}), {"a": text}),
        "patternProperties": (
            {
                "type": "object",
                "patternProperties": {pattern: {"type": "string"}},
                "additionalProperties": {"type": "string"},
            },
            {text: "x"},
        ),
        "nested": (
            with_properties(
                a={"$schema": "http://json-schema.org/draft-07/schema#", "pattern": pattern}
            ),
            {"a": text},
        ),
        "unevaluated": (
            {
                "type": "object",
                "allOf": [{"patternProperties": {pattern: {"type": "string"}}}],
                "unevaluatedProperties": False,
            },
            {text: "x"},
        ),
    }[where]
    tool = Plain(schema)
    started = time.perf_counter()
    with contextlib.suppress(ToolArgumentsError):
        tool.validate(args)
    assert time.perf_counter() - started < 60  # or it would take years


def test_patterns_are_held_against_arguments(engine):
    schema = {
        "type": "object",
        "properties": {"code": {"type": "string", "pattern": "^[A-Z]{3}-[0-9]+$"}},
        "patternProperties": {"^x-": {"type": "integer"}},
        "additionalProperties": False,
    }
    tool = Plain(schema)
    assert tool.validate({"code": "ABC-12", "x-a": 1}) == {"code": "ABC-12", "x-a": 1}
    with pytest.raises(ToolArgumentsError) as caught:
        tool.validate({"code": "abc", "x-a": "one", "y": 1})
    assert caught.value.problems == [
        "arguments: Additional properties are not allowed ('y' was unexpected)",
        "code: 'abc' does not match '^[A-Z]{3}-[0-9]+$'",
        "x-a: 'one' is not of type 'integer'",
    ]


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"^\p{L}+$", "été"),
        (r"^(?<year>\d{4})$", "2026"),
        (r"^[\w-.]+$", "a-b.c"),
        (r"^\u{41}", "A"),
        ("^[^]+$", "anything"),
        ("[", "anything"),
        ("x" * 900, "anything"),
    ],
)
def test_a_pattern_that_python_does_not_know_does_not_cost_the_tool(pattern, text, engine):
    tool = Plain(with_properties(a={"type": "string", "pattern": pattern}))
    assert tool.validate({"a": text}) == {"a": text}


def test_a_pattern_that_is_not_checked_is_noted(caplog, engine):
    with caplog.at_level("INFO", logger="agent_brain"):
        Plain(with_properties(a={"type": "string", "pattern": "^(a+)+$"}))
    noted = [record.getMessage() for record in caplog.records]
    assert len(noted) == (engine == "without RE2")
    assert all("'^(a+)+$'" in text and "'plain'" in text for text in noted)


def test_what_a_dialect_is_called_in_data_is_left_alone():
    tool = Plain(with_properties(a={"const": {"$schema": "x"}}))
    assert tool.validate({"a": {"$schema": "x"}})
    assert tool.input_schema["properties"]["a"]["const"] == {"$schema": "x"}


def test_the_schema_that_was_given_is_not_changed():
    schema = with_properties(a={"$schema": "http://json-schema.org/draft-07/schema#"})
    Plain(schema)
    assert schema["properties"]["a"] == {"$schema": "http://json-schema.org/draft-07/schema#"}


@pytest.mark.asyncio
async def test_an_approval_that_cannot_be_decided_is_a_persons():
    class Broken(Plain):
        def validate(self, args: Any) -> dict[str, Any]:
            raise ZeroDivisionError

    assert await Broken(with_properties(), requires_approval=True).needs_approval({}) is True


def test_the_validator_is_not_loaded_by_tools_that_are_functions():
    """It takes 30 ms, and pydantic checks their arguments."""
    import subprocess

    program = (
        "import sys; from agent_brain.tools import tool\n"
        "@tool\ndef f(a: int) -> int: 'F.'\n"
        "sys.exit('jsonschema' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
