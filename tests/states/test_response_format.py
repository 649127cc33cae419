"""Schemas are sent in the strict mode if its rules can express them, and without it if not."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, TypeVar

import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel

from agent_brain import Brain, LiteLLM
from agent_brain.states.models.litellm.messages import response_format
from agent_brain.states.output_types import shape_of
from tests.support.openai_server import OpenAIServer, Reply

T = TypeVar("T")


class Color(enum.Enum):
    RED = "red"


class Flight(BaseModel):
    model_config = ConfigDict(regex_engine="python-re")  # which knows look-around

    number: str = Field(min_length=3, pattern=r"^(?!XX)", description="As on the ticket.")
    price: float = Field(ge=0, le=1000)
    seats: list[int] = Field(default_factory=list, max_length=5)
    via: str | None = None
    bags: int = 1


class NoFlight(BaseModel):
    pass


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]
    owner: Annotated[NoFlight, Field(description="Whose it is.")]


class Tree(BaseModel):
    children: list[Tree]


class Box(BaseModel, Generic[T]):
    value: T


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")


class Holder(BaseModel):
    values: dict[str, int]


STRICT: dict[str, Any] = {
    "a model": Flight,
    "an empty model": NoFlight,
    "a recursive model": Tree,
    "a generic model": Box[int],
    "a scalar": int,
    "a list": list[Flight],
    "a set": set[int],
    "an enum": Color,
    "a literal": Literal["a", "b"],
    "a date": date,
    "a decimal": Decimal,
    "an optional model": Flight | None,
    "a union": Flight | NoFlight,
    "a discriminated union": Annotated[Cat | Dog, Field(discriminator="kind")],
    "a root model": RootModel[list[int]],
}
NOT_STRICT: dict[str, Any] = {
    "a dict": dict[str, int],
    "a field with a dict": Holder,
    "a union with a dict": Flight | Holder,
    "a tuple": tuple[int, str],
    "any value": Any,
    "any list": list,
    "an open model": Open,
    "a root that is a dict": RootModel[dict[str, int]],
}


def sent(kind: Any) -> dict[str, Any]:
    made = response_format(shape_of(kind).model)
    assert made["type"] == "json_schema"
    described: dict[str, Any] = made["json_schema"]
    assert described["name"].replace("_", "").replace("-", "").isalnum()
    return described


def strict_problems(node: Any, path: str = "") -> Iterator[str]:
    """Find what breaks the rules of the strict mode as they are published."""
    known = {"type", "enum", "anyOf", "$ref", "$defs", "description", "properties", "required",
             "additionalProperties", "items", "pattern", "format", "multipleOf", "minimum",
             "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems"}  # fmt: skip
    if unknown := node.keys() - known:
        yield f"{path}: {unknown}"
    if "$ref" in node and len(node) > 1:
        yield f"{path}: keywords beside $ref"
    if not node.keys() & {"type", "enum", "anyOf", "$ref"}:
        yield f"{path}: no type"
    if node.get("type") == "object":
        if node.get("additionalProperties") is not False:
            yield f"{path}: additionalProperties"
        if set(node.get("required", ())) != set(node.get("properties", {})):
            yield f"{path}: required"
    if node.get("type") == "array" and "items" not in node:
        yield f"{path}: items"
    if "(?" in node.get("pattern", ""):
        yield f"{path}: look-around"
    inner = {**node.get("properties", {}), **node.get("$defs", {})}
    inner |= {f"anyOf{n}": each for n, each in enumerate(node.get("anyOf", ()))}
    inner |= {"items": node["items"]} if "items" in node else {}
    for name, each in inner.items():
        yield from strict_problems(each, f"{path}.{name}")


@pytest.mark.parametrize("kind", STRICT.values(), ids=STRICT)
def test_what_the_strict_mode_can_express_is_adapted_to_it(kind: Any):
    described = sent(kind)

    assert described["strict"] is True
    assert described["schema"]["type"] == "object"
    assert "anyOf" not in described["schema"]
    assert [*strict_problems(described["schema"])] == []


@pytest.mark.parametrize("kind", NOT_STRICT.values(), ids=NOT_STRICT)
def test_what_it_cannot_express_is_sent_as_it_is_and_without_strict(kind: Any):
    described = sent(kind)

    assert described["strict"] is False
    assert described["schema"] == shape_of(kind).model.model_json_schema()
    assert described["schema"]["type"] == "object"


def test_what_is_left_out_is_in_the_description():
    properties = sent(Flight)["schema"]["properties"]

    assert properties["number"] == {
        "type": "string",
        "description": 'As on the ticket. (minLength: 3, pattern: "^(?!XX)")',
    }
    assert properties["price"] == {"type": "number", "minimum": 0, "maximum": 1000}
    assert properties["bags"] == {"type": "integer", "description": "(default: 1)"}
    assert properties["via"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}
    assert properties["seats"]["maxItems"] == 5


def test_a_schema_above_the_limits_of_the_mode_is_sent_without_strict():
    many = Literal[tuple(f"v{number}" for number in range(1001))]  # type: ignore[valid-type]
    assert sent(many)["strict"] is False
    deep: Any = int
    for _ in range(12):
        deep = list[deep]
    assert sent(deep)["strict"] is False


@pytest.mark.asyncio
@pytest.mark.parametrize(("kind", "strict"), [(Flight, True), (Holder, False)])
async def test_a_provider_gets_the_schema_so(kind: Any, strict: bool):
    said = '{"number": "LH1", "price": 9, "seats": [], "via": null, "bags": 1}'
    said = said if kind is Flight else '{"values": {"a": 1}}'
    with OpenAIServer([Reply("Hm."), Reply(said)]) as server:
        llm = LiteLLM("openai/local", api_base=server.url, api_key="none", supports_schema=True)
        result = await Brain("react", llm=llm, output_type=kind).run("Which?")
        await llm.aclose()

    assert isinstance(result.output, kind)
    wire = server.requests[1].body["response_format"]["json_schema"]
    assert (wire["name"], wire["strict"]) == (kind.__name__, strict)
    assert wire["schema"] == sent(kind)["schema"]
