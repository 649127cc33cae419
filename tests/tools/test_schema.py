"""The schema of a function: names, types, defaults and descriptions."""

from __future__ import annotations

import enum
import functools
import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from agent_brain.tools import ToolDefinitionError, as_tool, tool
from agent_brain.tools.schemas import reworded


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(BaseModel):
    """A place."""

    x: int
    y: int = 0


def properties(function: Any) -> dict[str, Any]:
    return as_tool(function).input_schema["properties"]


def test_the_name_and_the_description_come_from_the_function():
    def look_up(word: str) -> str:
        """Look a word up.

        Slowly, but well.

        Args:
            word: What to look up.
        """
        return word

    described = as_tool(look_up).to_dict()

    assert described == {
        "look_up": {
            "description": "Look a word up.\n\nSlowly, but well.",
            "input_schema": {
                "type": "object",
                "properties": {"word": {"type": "string", "description": "What to look up."}},
                "required": ["word"],
                "additionalProperties": False,
            },
        }
    }


def test_name_and_description_can_be_said():
    @tool(name="other", description="Said.")
    def f() -> None:
        """Written."""

    assert f.to_dict()["other"]["description"] == "Said."


def test_without_a_docstring_the_description_is_empty():
    def f() -> None: ...

    assert as_tool(f).description == ""


def test_a_parameter_with_a_default_is_optional_and_shows_it():
    def f(a: int, b: str = "x") -> None: ...

    schema = as_tool(f).input_schema

    assert schema["required"] == ["a"]
    assert schema["properties"]["b"] == {"type": "string", "default": "x"}


def test_a_default_that_json_cannot_express_is_left_out_of_the_schema():
    missing = object()

    def f(a: Any = missing) -> None: ...

    assert properties(f) == {"a": {}}


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_default_that_json_does_not_have_is_left_out_of_the_schema(number):
    def f(a: float = number, b: Point | list[float] = [1.0, number]) -> None: ...  # noqa: B006

    assert json.dumps(as_tool(f).input_schema, allow_nan=False)
    assert "required" not in as_tool(f).input_schema
    assert properties(f)["a"] == {"type": "number"}


GOOGLE = """Do it.

    Args:
        count (int): How many.
        where: The place,
            as exact as can be.
    """
NUMPY = """Do it.

    Parameters
    ----------
    count : int
        How many.
    where : str
        The place,
        as exact as can be.
    """
SPHINX = """Do it.

    :param count: How many.
    :type count: int
    :param where: The place,
        as exact as can be.
    """


@pytest.mark.parametrize("docstring", [GOOGLE, NUMPY, SPHINX], ids=["google", "numpy", "sphinx"])
def test_parameter_texts_are_read_from_every_style_of_docstring(docstring):
    def f(count: int, where: str) -> None: ...

    f.__doc__ = docstring
    made = as_tool(f)

    assert made.description == "Do it."
    assert made.input_schema["properties"]["count"]["description"] == "How many."
    where = made.input_schema["properties"]["where"]["description"]
    assert where.split() == ["The", "place,", "as", "exact", "as", "can", "be."]


def test_numpy_docstrings_may_describe_two_parameters_at_once():
    def f(x: int, y: int) -> None:
        """Do it.

        Parameters
        ----------
        x, y : int
            Coordinates.
        """

    assert properties(f)["y"]["description"] == "Coordinates."


@pytest.mark.parametrize("docstring", [":param", "Args:\n  ???", ":raises :", "----\n", "Args:"])
def test_an_odd_docstring_is_a_description_and_no_error(docstring):
    def f(a: int) -> None: ...

    f.__doc__ = docstring

    assert as_tool(f).description


def test_annotated_text_wins_over_the_docstring():
    def f(a: Annotated[int, Field(description="annotated")]) -> None:
        """Do it.

        Args:
            a: docstring
        """

    assert properties(f)["a"]["description"] == "annotated"


def test_annotated_keeps_its_text_and_constraints_without_a_docstring():
    def f(a: Annotated[int, Field(description="annotated", ge=1)]) -> None: ...

    assert properties(f)["a"] == {"type": "integer", "description": "annotated", "minimum": 1}


def test_a_field_as_default_keeps_default_text_constraints_and_examples():
    def f(a: int = Field(3, ge=1, description="said", examples=[4])) -> None: ...

    expected = {
        "type": "integer",
        "default": 3,
        "minimum": 1,
        "description": "said",
        "examples": [4],
    }
    assert properties(f)["a"] == expected


def test_a_field_without_default_is_required():
    def f(a: int = Field(ge=1)) -> None: ...

    assert as_tool(f).input_schema["required"] == ["a"]


def test_the_docstring_describes_a_field_that_has_no_text():
    def f(a: int = Field(3)) -> None:
        """Do it.

        Args:
            a: docstring
        """

    assert properties(f)["a"]["description"] == "docstring"


def test_a_default_inside_annotated_is_kept():
    def f(a: Annotated[int, Field(default=5)]) -> None: ...

    assert as_tool(f).validate({}) == {"a": 5}


def test_enums_literals_optionals_and_unions_become_json_schema():
    def f(
        color: Color, mode: Literal["r", "w"], maybe: int | None = None, both: int | str = 1
    ) -> None: ...

    schema = as_tool(f).input_schema

    assert schema["$defs"]["Color"] == {"type": "string", "enum": ["red", "blue"]}
    assert schema["properties"]["mode"] == {"type": "string", "enum": ["r", "w"]}
    assert schema["properties"]["maybe"]["anyOf"] == [{"type": "integer"}, {"type": "null"}]
    assert schema["properties"]["both"]["anyOf"] == [{"type": "integer"}, {"type": "string"}]


def test_nested_models_are_described():
    def f(points: list[Point]) -> None: ...

    schema = as_tool(f).input_schema

    assert schema["$defs"]["Point"]["properties"]["x"] == {"type": "integer"}
    assert schema["properties"]["points"]["items"] == {"$ref": "#/$defs/Point"}


def test_titles_that_say_nothing_are_left_out_but_a_property_called_title_stays():
    class Book(BaseModel):
        title: str

    @tool
    def f(title: str, book: Book) -> None: ...

    assert f.input_schema["properties"]["title"] == {"type": "string"}
    assert f.input_schema["$defs"]["Book"]["properties"] == {"title": {"type": "string"}}


def test_a_default_that_has_a_title_stays_whole():
    def f(a: dict[str, str] = {"title": "x"}) -> None: ...  # noqa: B006

    assert properties(f)["a"]["default"] == {"title": "x"}


def test_types_local_to_a_function_are_resolved():
    class Local(enum.Enum):
        A = "a"

    @tool
    def bare(value: Local) -> None: ...

    @tool(name="with_options")
    def options(value: Local) -> None: ...

    assert bare.validate({"value": "a"}) == options.validate({"value": "a"}) == {"value": Local.A}


AWKWARD = "schema model_config json self_ _x copy dict model_dump validate construct fields p0 type"


@pytest.mark.parametrize("parameter", AWKWARD.split())
def test_parameters_may_have_names_that_pydantic_uses_itself(parameter):
    scope: dict[str, Any] = {}
    exec(f"def f({parameter}: int, b: int = 2): return {parameter} + b", scope)
    made = as_tool(scope["f"])

    assert list(made.input_schema["properties"]) == [parameter, "b"]
    assert made.validate({parameter: "40"}) == {parameter: 40, "b": 2}


def test_an_untyped_parameter_takes_anything():
    def f(a): ...

    assert properties(f) == {"a": {}}


def test_a_partial_hides_what_it_has_bound():
    def send(text: str, key: str, *, retries: int = 1) -> None:
        """Send it."""

    made = tool(name="send")(functools.partial(send, key="secret"))

    assert list(made.input_schema["properties"]) == ["text", "retries"]
    assert "secret" not in str(made.to_dict())


def test_a_partial_keeps_types_and_docstring_of_its_function():
    def send(channel: str, count: int) -> None:
        """Send it."""

    made = tool(name="send")(functools.partial(send, "news"))

    assert made.description == "Send it."
    assert made.input_schema["properties"] == {"count": {"type": "integer"}}


def test_a_bound_method_is_a_function_without_self():
    class Clock:
        def read(self, zone: str) -> str:
            """Read it."""
            return zone

    made = as_tool(Clock().read)

    assert made.name == "read"
    assert list(made.input_schema["properties"]) == ["zone"]


def test_an_object_that_can_be_called_is_a_function():
    class Adder:
        """Adds."""

        def __call__(self, a: int) -> int:
            return a + 1

    made = tool(name="add")(Adder())

    assert made.description == "Adds."
    assert made.validate({"a": "1"}) == {"a": 1}


def test_a_class_is_a_function_that_makes_one():
    @dataclass
    class Order:
        item: str
        count: int = 1

    assert as_tool(Order).validate({"item": "tea", "count": "2"}) == {"item": "tea", "count": 2}


def test_a_decorated_function_keeps_the_types_it_was_written_with():
    def inner(a: int) -> int:
        """Inner."""
        return a

    @functools.wraps(inner)
    def outer(*args: Any, **kwargs: Any) -> Any:
        return inner(*args, **kwargs)

    assert properties(outer) == {"a": {"type": "integer"}}


def test_what_a_function_returns_need_not_be_known():
    def f(a: int) -> Nowhere: ...  # type: ignore[name-defined]  # noqa: F821

    assert properties(f) == {"a": {"type": "integer"}}


def args_function(a: int, *rest: int) -> None: ...
def kwargs_function(a: int, **rest: int) -> None: ...
def unknown_name(a: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821
def unknown_attribute(a: enum.Nowhere) -> None: ...  # type: ignore[name-defined]
def not_json(a: type[Color], b: Annotated[Any, 1]) -> None: ...
def arbitrary(a: functools.partial) -> None: ...


def broken_syntax(a: int) -> None: ...


broken_syntax.__annotations__["a"] = "int or"


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (args_function, r"\*rest"),
        (kwargs_function, r"\*\*rest"),
        (unknown_name, "Nowhere"),
        (unknown_attribute, "Nowhere"),
        (broken_syntax, "cannot be resolved"),
        (arbitrary, "arbitrary"),
        (max, "signature"),
        (lambda a: a, "letters, digits"),
    ],
)
def test_what_no_model_could_call_is_refused(function, says):
    with pytest.raises(ToolDefinitionError, match=says):
        as_tool(function)


def test_an_unbound_method_is_refused_with_what_to_do():
    with pytest.raises(ToolDefinitionError, match=r"tool\(object\.method\)"):

        class Clock:
            @tool
            def read(self, zone: str) -> str:
                return zone


def test_generators_are_refused():
    def sync_numbers():
        yield 1

    async def async_numbers():
        yield 1

    for function in (sync_numbers, async_numbers):
        with pytest.raises(ToolDefinitionError, match="generator"):
            as_tool(function)


def test_a_tool_of_a_tool_is_refused():
    @tool
    def f() -> None: ...

    with pytest.raises(ToolDefinitionError, match="already"):
        tool(f)


def test_a_partial_needs_a_name():
    with pytest.raises(ToolDefinitionError, match="name"):
        as_tool(functools.partial(args_function, 1))


def test_texts_of_keywords_are_reworded_and_those_of_data_and_names_are_not():
    properties = {"title": {"title": "A"}, "default": {"title": "B", "default": {"title": "C"}}}
    schema = {"title": "D", "type": "object", "properties": properties, "enum": [{"title": "E"}]}

    assert reworded(schema, lambda key, text: None if key == "title" else text) == {
        "type": "object",
        "properties": {"title": {}, "default": {"default": {"title": "C"}}},
        "enum": [{"title": "E"}],
    }
