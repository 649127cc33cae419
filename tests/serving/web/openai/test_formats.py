"""Answers as data of a JSON Schema, with the official client."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from pydantic import BaseModel, Field

from agent_brain import Brain, react
from agent_brain.memories import RamJournal
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from tests.serving.web.openai.server import shop
from tests.serving.web.openai.test_response_clients import MODEL, PAYS, approval, client_of

pytestmark = pytest.mark.anyio


class City(BaseModel):
    """A city."""

    name: str
    people: int = Field(0, description="How many live there")


class Trip(BaseModel):
    """A trip."""

    cities: list[City]
    home: City | None = None


class Node(BaseModel):
    """A tree."""

    children: list[Node]


OSLO: Any = {"name": "Oslo", "people": 700_000}
TRIP = Trip(cities=[City(**OSLO)])
GIVEN = Action(name="final_result", args={"cities": [OSLO], "home": None})
MESSAGES: Any = [{"role": "user", "content": "A trip?"}]
OBJECT: Any = {"type": "json_object"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"  # as uvicorn


def schema(of: dict[str, Any]) -> Any:
    return {"type": "json_schema", "json_schema": {"name": "it", "schema": of}}


async def test_a_completion_is_data_of_the_schema_that_is_asked_for():
    llm = ScriptedLLM([["Hm.", GIVEN], [GIVEN]])
    async with client_of(Brain("react", llm=llm)) as client:
        done = await client.chat.completions.parse(
            model=MODEL, messages=MESSAGES, response_format=Trip
        )
        async with client.chat.completions.stream(
            model=MODEL, messages=MESSAGES, response_format=Trip
        ) as stream:
            streamed = await stream.get_final_completion()

    assert done.choices[0].message.parsed == TRIP
    assert streamed.choices[0].message.parsed == TRIP
    [tool] = llm.calls[0].tools
    assert tool.input_schema["required"] == ["cities", "home"]


async def test_a_response_is_data_of_the_schema_and_repeats_it():
    wrong = Action(name="final_result", args={"cities": [{"name": "Oslo"}], "home": None})
    llm = ScriptedLLM([[wrong], [GIVEN], "In words."])
    async with client_of(Brain("react", llm=llm), journal=RamJournal()) as client:
        done = await client.responses.parse(model=MODEL, input="A trip?", text_format=Trip)
        kept = await client.responses.retrieve(done.id)
        words = await client.responses.create(
            model=MODEL, input="Say it.", previous_response_id=done.id
        )

    assert done.output_parsed == TRIP  # after the first one was refused
    assert done.text.format.type == kept.text.format.type == "json_schema"
    assert kept.output_text == done.output_text
    assert words.output_text == "In words."


async def test_any_object_is_asked_for():
    llm = ScriptedLLM([[Action(name="final_result", args={"a": 1})]])
    async with client_of(Brain("react", llm=llm)) as client:
        done = await client.chat.completions.create(
            model=MODEL, messages=MESSAGES, response_format=OBJECT
        )

    assert done.choices[0].message.content == '{"a":1}'


async def test_a_run_that_waited_answers_in_the_format_of_the_request_that_continues_it():
    brain, paid = shop([PAYS], [GIVEN])
    async with client_of(brain) as client:
        asked = await client.responses.parse(model=MODEL, input="Go.", text_format=Trip)
        done = await client.responses.parse(
            model=MODEL,
            input=[approval(True)],
            previous_response_id=asked.id,
            text_format=Trip,
        )

    assert (paid, done.output_parsed) == ([5], TRIP)


async def test_an_agent_with_a_type_of_its_own_gives_that_and_refuses_others():
    llm = ScriptedLLM([[GIVEN], [GIVEN]])
    async with client_of(Brain(react(llm, output_type=Trip))) as client:
        done = await client.responses.parse(model=MODEL, input="A trip?", text_format=Trip)
        await client.responses.create(model=MODEL, input="?", text={"format": OBJECT})
        with pytest.raises(openai.BadRequestError, match="type of its own") as raised:
            await client.responses.parse(model=MODEL, input="A city?", text_format=City)

    assert done.output_parsed == TRIP
    assert raised.value.param == "text.format"


@pytest.mark.parametrize(
    ("wanted", "problem"),
    [
        (schema({"type": "objekt"}), "there is no type 'objekt'"),
        (schema({"$ref": "https://x.example/schema"}), "another document"),
        (schema(Node.model_json_schema()), "refers to itself"),
        ({"type": "json_schema"}, "json_schema with a 'schema'"),
        ({"type": "xml"}, "A format is text"),
    ],
)
async def test_what_is_no_format_is_refused_with_what_is_wrong(wanted, problem):
    async with client_of(Brain("react", llm=ScriptedLLM([]))) as client:
        with pytest.raises(openai.BadRequestError, match=problem) as raised:
            await client.chat.completions.create(
                model=MODEL, messages=MESSAGES, response_format=wanted
            )

    assert raised.value.param == "response_format"


async def test_an_agent_that_cannot_give_data_says_so():
    async with client_of(Brain(react(ScriptedLLM([])))) as client:
        with pytest.raises(openai.BadRequestError, match="given by name") as raised:
            await client.chat.completions.create(
                model=MODEL, messages=MESSAGES, response_format=OBJECT
            )

    assert raised.value.code == "unsupported_parameter"
