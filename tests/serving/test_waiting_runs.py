"""Approvals and questions of a served brain, answered by the official client."""

from __future__ import annotations

import json
from datetime import date
from enum import IntEnum
from typing import Any, Literal

import pytest
from mcp import Client
from mcp_types import ElicitResult, ErrorData
from pydantic import BaseModel, Field

from agent_brain import Brain, tool
from agent_brain.serving import Conversations, make_server
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action, InputNeeded, ToolContext
from agent_brain.tools.builtin import ask_user

pytestmark = pytest.mark.anyio

BOTH = pytest.mark.parametrize("mode", ["auto", "legacy"])


class Shop:
    """Makes brains whose agent pays, or asks, and remembers what was paid."""

    def __init__(self, *turns: Any) -> None:
        self.turns = turns
        self.paid: list[int] = []

    def __call__(self) -> Brain:
        @tool(requires_approval=True)
        def pay(amount: int) -> str:
            """Pay."""
            self.paid.append(amount)
            return f"paid {amount}"

        return Brain(llm=ScriptedLLM(self.turns), tools=[pay, ask_user])


def pays(*amounts: int) -> list[Action]:
    return [Action(name="pay", args={"amount": n}, id=f"call_{n}") for n in amounts]


def last_result(messages: list[Any]) -> str:
    return " / ".join(m.content for m in messages if m.role == "tool")


def text_of(result: Any) -> str:
    return "\n".join(part.text for part in result.content)


async def ask(client: Client, question: str, conversation: str | None = None) -> Any:
    args = {"question": question} | ({"conversation": conversation} if conversation else {})
    return await client.call_tool("ask", args)


@BOTH
async def test_the_answer_asks_and_the_next_question_answers(mode):
    shop = Shop(pays(5), last_result, "And now?")
    async with (
        Conversations(shop) as conversations,
        Client(make_server(conversations), mode=mode) as client,
    ):
        asked = await ask(client, "Pay five.")
        assert shop.paid == []
        done = await ask(client, "Yes.")
        after = await ask(client, "And then?")

    assert not asked.is_error
    content = asked.structured_content
    assert content["stop_reason"] == "approval"
    assert content["question"] == 'May the agent call pay with {"amount": 5}?'
    assert content["question"] in text_of(asked)
    assert f'in conversation "{content["conversation"]}"' in text_of(asked)
    assert (text_of(done), shop.paid) == ("paid 5", [5])
    assert "question" not in done.structured_content
    assert text_of(after) == "And now?"


@pytest.mark.parametrize(
    ("words", "paid", "said"),
    [
        ("yes", [5], "paid 5"),
        ("OK", [5], "paid 5"),
        ("no", [], "not"),
        ("No, that is too much", [], "that is too much"),
        ('edit {"amount": 3}', [3], "paid 3"),
        ('{"amount": 3}', [3], "paid 3"),
    ],
)
async def test_words_decide_about_a_call(words, paid, said):
    shop = Shop(pays(5), last_result)
    async with Conversations(shop) as conversations, Client(make_server(conversations)) as client:
        await ask(client, "Pay five.")
        done = await ask(client, words)

    assert shop.paid == paid
    assert said in text_of(done)
    assert done.structured_content["stop_reason"] == "done"


@pytest.mark.parametrize(
    "words",
    [
        "yes, but only three",
        "What is it for?",
        "edit {amount: 3}",
        'edit {"amount": "x"}',
        "edit",
        "nothing",
    ],
)
async def test_words_that_decide_nothing_leave_the_run_waiting(words):
    shop = Shop(pays(5), last_result)
    async with Conversations(shop) as conversations, Client(make_server(conversations)) as client:
        await ask(client, "Pay five.")
        unclear = await ask(client, words)
        assert shop.paid == []
        await ask(client, "yes")

    assert unclear.is_error
    assert "May the agent call pay" in text_of(unclear)
    assert shop.paid == [5]


async def test_several_calls_are_asked_about_one_after_the_other():
    shop = Shop(pays(1, 2, 3), last_result)
    async with Conversations(shop) as conversations, Client(make_server(conversations)) as client:
        replies = [await ask(client, words) for words in ("Pay.", "yes", "no", "yes")]

    questions = [reply.structured_content.get("question") for reply in replies]
    assert questions == [f'May the agent call pay with {{"amount": {n}}}?' for n in (1, 2, 3)] + [
        None
    ]
    assert sorted(shop.paid) == [1, 3]


@BOTH
async def test_a_question_of_the_agent_is_answered_by_the_next_one(mode):
    asks = [Action(name="ask_user", args={"question": "Which city?"})]
    shop = Shop(asks, last_result)
    async with (
        Conversations(shop) as conversations,
        Client(make_server(conversations), mode=mode) as client,
    ):
        asked = await ask(client, "Book a hotel.")
        done = await ask(client, "yes, Rome")

    assert asked.structured_content["stop_reason"] == "input"
    assert asked.structured_content["question"] == "Which city?"
    assert text_of(done) == "yes, Rome"


class Person:
    """Fills in forms."""

    def __init__(self, *replies: Any) -> None:
        self.replies = list(replies)
        self.asked: list[str] = []

    async def __call__(self, context: Any, params: Any) -> Any:
        self.asked.append(params.message)
        reply = self.replies.pop(0)
        if isinstance(reply, dict):
            return ElicitResult(action="accept", content=reply)
        return reply if isinstance(reply, ErrorData) else ElicitResult(action=reply)


@BOTH
async def test_a_client_with_forms_is_asked_in_forms(mode):
    asks = [Action(name="ask_user", args={"question": "Which city?"})]
    shop = Shop(asks, pays(5, 6, 7), last_result)
    person = Person(
        {"answer": "Rome"},
        {"decision": "yes"},
        {"decision": "no", "reason": "too much"},
        {"decision": "edit", "arguments": '{"amount": 1}'},
    )
    async with (
        Conversations(shop) as conversations,
        Client(make_server(conversations), mode=mode, elicitation_callback=person) as client,
    ):
        done = await ask(client, "Book a hotel and pay.")

    assert person.asked == ["Which city?"] + [
        f'May the agent call pay with {{"amount": {n}}}?' for n in (5, 6, 7)
    ]
    assert sorted(shop.paid) == [1, 5]
    assert done.structured_content["stop_reason"] == "done"
    assert "Rome" in text_of(done)
    assert "too much" in text_of(done)


@BOTH
@pytest.mark.parametrize(
    ("reply", "reason", "paid"),
    [
        ("decline", "done", []),
        ("cancel", "approval", []),
        ({"decision": "maybe"}, "approval", []),
        ({"decision": "edit", "arguments": "three"}, "approval", []),
        ({"decision": "edit", "arguments": '{"sum": 3}'}, "approval", []),
    ],
)
async def test_a_form_that_is_not_filled_in(mode, reply, reason, paid):
    shop = Shop(pays(5), last_result)
    person = Person(reply)
    async with (
        Conversations(shop) as conversations,
        Client(make_server(conversations), mode=mode, elicitation_callback=person) as client,
    ):
        result = await ask(client, "Pay five.")

    assert result.structured_content["stop_reason"] == reason
    assert shop.paid == paid
    assert not result.is_error


@BOTH
async def test_a_question_that_is_declined_in_a_form_waits(mode):
    asks = [Action(name="ask_user", args={"question": "Which city?"})]
    person = Person("decline")
    async with (
        Conversations(Shop(asks, last_result)) as conversations,
        Client(make_server(conversations), mode=mode, elicitation_callback=person) as client,
    ):
        result = await ask(client, "Book a hotel.")

    assert result.structured_content["question"] == "Which city?"


class Seat(BaseModel):
    row: int = Field(ge=1, le=30)
    side: Literal["window", "aisle"] = "aisle"
    day: date | None = None


class Bed(IntEnum):
    SINGLE = 1
    DOUBLE = 2


class Room(BaseModel):
    bed: Bed = Bed.DOUBLE


class Trip(BaseModel):
    seats: list[Seat]


ROW = {"row": {"title": "Row", "minimum": 1, "maximum": 30, "type": "integer"}}
SIDE = {"title": "Side", "default": "aisle", "type": "string", "enum": ["window", "aisle"]}
BED = {"title": "Bed", "description": "", "type": "string", "default": "DOUBLE"}
DAY = {"title": "Day", "format": "date", "type": "string"}
TYPED = [
    (Seat, {**ROW, "side": SIDE, "day": DAY}, {"row": 4, "day": ""}, "row=4 side='aisle' day=None"),
    (int, {"answer": {"type": "integer"}}, {"answer": 4}, "4"),
    (bool, {"answer": {"type": "boolean"}}, {"answer": True}, "True"),
    (int | None, {"answer": {"type": "integer"}}, "decline", "None"),
    (Literal[1, 2], {"answer": {"type": "string", "enum": ["1", "2"]}}, {"answer": "2"}, "2"),
    (
        Room,
        {"bed": {**BED, "enum": ["SINGLE", "DOUBLE"]}},
        {"bed": "SINGLE"},
        "bed=<Bed.SINGLE: 1>",
    ),
    (Trip, None, {"answer": '{"seats": [{"row": 4}]}'}, "row=4"),
]


@BOTH
@pytest.mark.parametrize(
    ("kind", "fields", "reply", "said"),
    TYPED,
    ids=["form", "number", "yes or no", "left open", "choice", "names", "nested"],
)
async def test_a_typed_question_is_a_form_with_its_fields(mode, kind, fields, reply, said):
    class Asking(Shop):
        def __call__(self) -> Brain:
            def reserve(context: ToolContext) -> str:
                """Reserve."""
                return str(context.ask("Which one?", kind))

            return Brain(llm=ScriptedLLM(self.turns), tools=[reserve])

    schemas: list[dict[str, Any]] = []

    async def person(context: Any, params: Any) -> ElicitResult:
        schemas.append(params.requested_schema)
        if reply == "decline":
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content=reply)

    async with (
        Conversations(Asking([Action(name="reserve")], last_result)) as conversations,
        Client(make_server(conversations), mode=mode, elicitation_callback=person) as client,
    ):
        done = await ask(client, "Book.")

    assert said in text_of(done)
    [schema] = schemas
    if fields is None:
        assert schema["properties"]["answer"]["type"] == "string"
        assert "seats" in schema["properties"]["answer"]["description"]
    else:
        assert schema["properties"] == fields
    json.dumps(schema)


async def test_a_typed_question_is_answered_in_words_too():
    def choose() -> str:
        """Choose."""
        raise InputNeeded("Which side?", Literal["window", "aisle"])

    class Asking(Shop):
        def __call__(self) -> Brain:
            return Brain(llm=ScriptedLLM(self.turns), tools=[choose])

    make = Asking([Action(name="choose")], last_result)
    async with Conversations(make) as conversations, Client(make_server(conversations)) as client:
        asked = await ask(client, "Book.")
        wrong = await ask(client, "the middle")
        done = await ask(client, "Aisle")

    assert "Answer it with your next call: window / aisle" in text_of(asked)
    assert wrong.is_error
    assert "That does not fit: 'the middle' is not one of ['window', 'aisle']" in text_of(wrong)
    assert text_of(done) == "aisle"
