"""Output types: everything that pydantic validates can be asked for."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, RootModel, ValidationError
from typing_extensions import TypedDict  # pydantic asks for this one before Python 3.12

from agent_brain import Brain, MessagesMemory
from agent_brain.memories import Message
from agent_brain.nets import create_net, net_names
from agent_brain.states import AnswerState, StateDefinitionError, StructuredRequest, TellState
from agent_brain.states.output_types import Shape, shape_of
from agent_brain.states.schema_types import type_of_schema
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action

pytestmark = pytest.mark.anyio


class City(BaseModel):
    name: str
    people: int = Field(ge=0)


class Color(enum.Enum):
    RED = "red"


@dataclass
class Place:
    city: City
    since: date


class Entry(TypedDict):
    name: str
    when: date


OSLO = City(name="Oslo", people=700_000)
PLACE = '{"city":{"name":"Oslo","people":700000},"since":"1048-01-01"}'
TYPES: dict[str, tuple[Any, str, Any, str]] = {
    "model": (City, OSLO.model_dump_json(), OSLO, OSLO.model_dump_json()),
    "root model": (RootModel[list[int]], "[1, 2]", RootModel[list[int]]([1, 2]), "[1,2]"),
    "int": (int, '{"value": 4}', 4, "4"),
    "bare int": (int, "4", 4, "4"),
    "float": (float, '{"value": 0.5}', 0.5, "0.5"),
    "bool": (bool, "true", True, "true"),
    "str": (str, '{"value": "hi"}', "hi", "hi"),
    "list": (list[str], '{"value": ["a", "b"]}', ["a", "b"], '["a","b"]'),
    "bare list": (list[City], f"[{OSLO.model_dump_json()}]", [OSLO], f"[{OSLO.model_dump_json()}]"),
    "set": (set[int], "[1]", {1}, "[1]"),
    "tuple": (tuple[int, str], '{"value": [1, "a"]}', (1, "a"), '[1,"a"]'),
    "dict": (dict[str, int], '{"a": 1}', {"a": 1}, '{"a":1}'),
    "dataclass": (Place, PLACE, Place(OSLO, date(1048, 1, 1)), PLACE),
    "typed dict": (
        Entry,
        '{"name": "a", "when": "2026-01-02"}',
        {"name": "a", "when": date(2026, 1, 2)},
        '{"name":"a","when":"2026-01-02"}',
    ),
    "union": (int | City, f'{{"value": {OSLO.model_dump_json()}}}', OSLO, OSLO.model_dump_json()),
    "optional": (City | None, '{"value": null}', None, "null"),
    "literal": (Literal["yes", "no"], '{"value": "yes"}', "yes", "yes"),
    "bare literal": (Literal["yes", "no"], "yes", "yes", "yes"),
    "enum": (Color, '{"value": "red"}', Color.RED, "red"),
    "annotated": (Annotated[int, Field(ge=1)], '{"value": 2}', 2, "2"),
    "date": (date, "2026-01-02", date(2026, 1, 2), "2026-01-02"),
}


@pytest.mark.parametrize(("kind", "said", "output", "answer"), TYPES.values(), ids=TYPES)
async def test_any_type_is_asked_for_and_read(kind: Any, said: str, output: Any, answer: str):
    llm = ScriptedLLM(["Hm.", said])
    result = await Brain("react", llm=llm, output_type=kind).run("Well?")

    assert (result.output, type(result.output)) == (output, type(output))
    assert result.answer == result.messages[-1].content == answer
    asked = llm.calls[1].output_type
    assert isinstance(asked, type)
    assert issubclass(asked, BaseModel)
    assert asked.__name__.isidentifier() or asked is kind
    assert asked.model_json_schema().get("type") == "object" or asked is kind


@pytest.mark.parametrize(("kind", "said", "output", "answer"), TYPES.values(), ids=TYPES)
async def test_the_output_is_restored_from_its_json(kind: Any, said: str, output: Any, answer: str):
    net = create_net("react", ScriptedLLM(["Hm.", said]), output_type=kind)
    brain = Brain(net)
    await brain.run("Well?")
    kept = type(brain.memory.control).model_validate_json(brain.memory.control.model_dump_json())

    assert net.output_type is kind
    restored = net.restore_output(kept.output)
    assert (restored, type(restored)) == (output, type(output))
    assert net.restore_output(output) == output


class Up(BaseModel):
    floors: int


class Down(BaseModel):
    floors: int


@dataclass
class Left:
    metres: int


@dataclass
class Right:
    metres: int


@pytest.mark.parametrize("kind", [Up | Down, Left | Right, dict | Down, Up | dict | Down | None])
async def test_members_that_look_alike_are_told_apart_in_results_and_in_a_journal(
    kind: Any, tmp_path: Path
) -> None:
    name = "Right" if kind == Left | Right else "Down"
    value: Any = {"metres": 3} if name == "Right" else {"floors": 3}
    llm = ScriptedLLM([[Action(name=f"final_result_{name}", args=value)]])
    output = {"Right": Right(3), "Down": Down(floors=3)}[name]
    async with MessagesMemory(journal=tmp_path / "a.db") as memory:
        result = await Brain("react", memory, llm=llm, output_type=kind).run("Which way?")
    assert result.output == output
    async with MessagesMemory(journal=tmp_path / "a.db") as memory:
        again = Brain("react", memory, llm=llm, output_type=kind)
        stored = await again.stored_result()
        assert stored is not None
        assert stored.output == (await again.resume()).output == output


SCALARS: dict[str, tuple[Any, str, Any]] = {
    "int": (int, "42", 42),
    "float": (float, "4.5", 4.5),
    "bool": (bool, "true", True),
    "literal": (Literal["yes", "no"], "yes", "yes"),
    "literal in quotes": (Literal["yes", "no"], '"yes"', "yes"),
    "literal number": (Literal[1, 2], "2", 2),
    "enum": (Color, "red", Color.RED),
    "date": (date, "2026-01-02", date(2026, 1, 2)),
    "optional": (int | None, "42", 42),
    "nothing": (int | None, "null", None),
}


@pytest.mark.parametrize(
    "form",
    [
        "```\n{}\n```",
        "```json\n{}\n```",
        "```{}```",
        "`{}`",
        "~~~\n{}\n~~~",
        "The answer is:\n```text\n{}\n```\nAnything else?",
        "I tried\n```\nbash\n```\nand found\n```\n{}\n```",
    ],
)
@pytest.mark.parametrize(("kind", "said", "output"), SCALARS.values(), ids=SCALARS)
def test_a_scalar_in_a_fence_is_read(kind: Any, said: str, output: Any, form: str):
    value = shape_of(kind).read(form.replace("{}", said))

    assert (value, type(value)) == (output, type(output))


def test_text_keeps_its_fences():
    assert shape_of(str).read("```python\nx = 1\n```") == "```python\nx = 1\n```"


async def test_what_does_not_fit_goes_back_once():
    llm = ScriptedLLM(["Hm.", '{"value": 0}', '{"value": 3}'])
    result = await Brain("react", llm=llm, output_type=Annotated[int, Field(ge=1)]).run("Well?")

    assert result.output == 3
    assert "greater than or equal to 1" in llm.calls[2].messages[-1].content


@pytest.mark.parametrize(
    ("kind", "text", "problem"),
    [
        (Annotated[int, Field(le=3)], "7", "less than or equal to 3"),
        (Annotated[list[int], Field(max_length=1)], "[1, 2]", "at most 1 item"),
        (Literal["a", "b"], "C", "should be 'a' or 'b'"),
        (type_of_schema({"type": "integer", "maximum": 3}), "7", r"\n  7 is greater"),
    ],
    ids=str,
)
def test_what_is_wrong_with_a_bare_value_is_said(kind: Any, text: str, problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        shape_of(kind).read(text)


class Pair(enum.Enum):
    ONE = (1, 2)


NOT_TYPES: dict[str, Any] = {
    "a value": 5,
    "an instance": OSLO,
    "a name": "City",
    "a list": [int],
    "a dict": {"a": int},
    "a schema": {"type": "object"},
    "a callable type": Callable[[int], int],
    "a class without a schema": Exception,
    "a class that JSON Schema cannot describe": type,
    "members whose values JSON does not have": list[Pair],
}


@pytest.mark.parametrize("kind", NOT_TYPES.values(), ids=NOT_TYPES)
@pytest.mark.parametrize("name", [name for name in net_names() if name != "router"])
def test_what_cannot_be_asked_for_is_refused_when_the_brain_is_built(name: str, kind: Any):
    with pytest.raises(
        StateDefinitionError, match=r"output_type=.* cannot be requested from a model"
    ):
        Brain(name, llm=ScriptedLLM(), output_type=kind)


@pytest.mark.parametrize("kind", NOT_TYPES.values(), ids=NOT_TYPES)
def test_states_and_questions_refuse_it_too(kind: Any):
    for build in (
        lambda: AnswerState(ScriptedLLM(), output_type=kind),
        lambda: TellState(lambda memory: "", output_type=kind),
        lambda: StructuredRequest(ScriptedLLM(), [Message.user("?")], kind),
    ):
        with pytest.raises(StateDefinitionError, match="cannot be requested from a model"):
            build()


def test_a_shape_is_made_once():
    assert shape_of(list[int]) is shape_of(list[int])
    assert isinstance(shape_of(Annotated[int, Field(json_schema_extra={"a": []})]), Shape)


def test_a_model_with_aliases_is_restored():
    class Aliased(BaseModel):
        city_name: str = Field(alias="cityName")

    shape: Shape[Aliased] = shape_of(Aliased)
    value = shape.read('{"cityName": "Oslo"}')
    assert shape.restore({"city_name": "Oslo"}) == shape.restore({"cityName": "Oslo"}) == value


@pytest.mark.parametrize("text", ["NaN", '{"value": NaN}', '{"value": 1e400}', "[1, -Infinity]"])
@pytest.mark.parametrize("kind", [float, list[float], dict[str, float]])
def test_numbers_that_json_does_not_have_are_refused(kind: Any, text: str) -> None:
    with pytest.raises(ValidationError):
        shape_of(kind).read(text)
