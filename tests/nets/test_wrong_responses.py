"""Whatever a model responds, and whenever: a run ends, or raises an error of this library."""

from __future__ import annotations

from contextlib import suppress
from itertools import count, product
from typing import Any

import pytest
from pydantic import BaseModel

from agent_brain import Brain, Limits
from agent_brain.errors import AgentBrainError
from agent_brain.nets import create_net, react
from agent_brain.states import AskState, Finish, Plan, Thought, Usage
from agent_brain.testing import ModelCall, ScriptedLLM
from agent_brain.tools import Action
from tests.brain.nets import add, single
from tests.nets.models import FunctionLLM
from tests.nets.test_answers import CASES, Case, talkative, textual
from tests.support.thorough import THOROUGH

pytestmark = pytest.mark.anyio


def call_of(name: str = "add", **args: Any) -> Action:
    return Action(name=name, args=args)


WRONG: dict[str, Any] = {
    "nothing": [],
    "empty text": "",
    "white space": [" ", "\n"],
    "only thoughts": [Thought("Hm, "), Thought("hm.")],
    "only thoughts in tags": "<think>Hm.</think>",
    "thoughts that never end": ["<think>Hm", "m"],
    "a call": call_of(a=1, b=2),
    "text and a call": ["I add.", call_of(a=1, b=2), Finish("tool_calls")],
    "two calls": [call_of(a=1, b=2), call_of(a=3, b=4)],
    "two calls of one id": [Action(name="add", args={"a": 1, "b": 2}, id="x")] * 2,
    "an unknown tool": call_of("rm", path="/"),
    "a tool without a name": call_of(""),
    "wrong arguments": call_of(a="one"),
    "no arguments": call_of(),
    "arguments that are no JSON": Action(name="add", unparsed='{"a": 1, "b"'),
    "arguments that never arrived": Action(name="add", unparsed=""),
    "text": "I would rather talk about something else.",
    "data of another shape": '{"colour": "blue"}',
    "a list": "[1, 2, 3]",
    "a number": "42",
    "null": "null",
    "cut data": '{"value": 4',
    "cut data, as the provider says": ['{"value": 4', Finish("length")],
    "cut text": ["It is", Finish("length")],
    "a cut call": [Action(name="add", unparsed='{"a"'), Finish("length")],
    "a refusal": ["I cannot help with that.", Finish("refusal")],
    "a refusal without words": [Finish("refusal")],
    "a filtered answer": ["It", Finish("content_filter")],
    "an unknown end": [Finish("unknown")],
    "only usage": [Usage(1, 1)],
    "huge": "x" * 200_000,
    "huge data": '{"thoughts": [' + ", ".join(['"x"'] * 20_000) + "]}",
    "deep data": '{"value": ' * 2_000 + "1" + "}" * 2_000,
    "huge numbers": '{"score": 1e999, "number": 123456789012345678901234567890, "value": NaN}',
    "numbers out of range": '{"score": -7, "number": 99, "passed": true}',
    "empty data": '{"steps": [], "thoughts": [], "thought": "", "name": "", "remark": ""}',
    "another route": '{"name": "no such net"}',
    "half a character": "\ud83d",
    "a NUL": 'a\x00b {"thought": "\x00"}',
    "a quoted call": 'It says {"name": "add", "args": {"a": 1, "b": 2}} there.',
    "a call as text": '{"name": "add", "args": {"a": 1, "b": 2}}',
}


WRONG_AT = [{0}, {*range(100)}, {1}, {3}]  # one of the calls, or all


def places(case: Case) -> list[tuple[str, set[int]]]:
    """Return what is said and where: all of it in CI, otherwise half, at the first call or at all.

    Which half and where differs from one case of a net to the next.
    """
    if THOROUGH:
        return list(product(WRONG, WRONG_AT))
    at = CASES.index(case)
    return [
        (name, WRONG_AT[(n // 2 + at // 2) % 2]) for n, name in enumerate(WRONG) if n % 2 == at % 2
    ]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # what is said matters, not the event loop
@pytest.mark.parametrize("case", CASES, ids=str)
async def test_no_response_raises_a_foreign_error(case: Case) -> None:
    foreign: dict[str, str] = {}
    for name, wrong_at in places(case):
        try:
            with suppress(AgentBrainError):
                await run(case, WRONG[name], wrong_at)
        except Exception as error:
            foreign[f"{name} at {sorted(wrong_at)}"] = repr(error)
    assert not foreign


class Found(BaseModel):
    number: str


class NotFound(BaseModel):
    why: str = ""


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("kind", [str, int, list[int], Found | NotFound, Found], ids=str)
async def test_no_response_where_data_is_asked_for_raises_a_foreign_error(kind: Any) -> None:
    foreign: dict[str, str] = {}
    for name, said in WRONG.items():
        llm = FunctionLLM(lambda _, said=said: said)  # type: ignore[misc]
        asks = AskState(llm, "A number.", output_type=kind, into="kept")
        for net in (single(asks), react(llm, output_type=kind, check=lambda _: None)):
            try:
                with suppress(AgentBrainError):
                    await Brain(net, tools=[add], limits=Limits(max_steps=9)).run("Which?")
            except Exception as error:
                foreign[f"{name} in {net.name}"] = repr(error)
    assert not foreign


@pytest.mark.parametrize("said", [call_of(a=1, b=2), ["I add.", call_of(a=1, b=2)]])
async def test_a_tool_call_where_data_was_asked_goes_back_once(said: Any) -> None:
    llm = ScriptedLLM([said, '{"steps": ["add"]}', "It is 4.", '{"passed": true}', "It is 4."])
    await Brain("plan_execute", llm=llm, tools=[add], limits=Limits(max_steps=3)).run("2 + 2?")

    assert llm.calls[1].output_type is Plan
    assert "That could not be used" in llm.calls[1].messages[-1].content


async def run(case: Case, said: Any, wrong_at: set[int]) -> None:
    good, calls = talkative if case.native else textual, count()

    def reply(call: ModelCall) -> Any:
        return said if next(calls) in wrong_at else good(call)

    net = create_net(case.net, FunctionLLM(reply, native=case.native), **case.options())
    await Brain(net, tools=[add], limits=Limits(max_steps=25)).run("What is 2 + 2?")
