"""The demo model behind the model port: both modes, structured answers, usage, determinism."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncGenerator

import pytest
from pydantic import BaseModel

from agent_brain.demo import DemoLLM, demo_tools
from agent_brain.memories import Message
from agent_brain.states.llm import Thought
from agent_brain.states.prompts import REASONING_TEXT, as_text
from agent_brain.states.usage import Usage
from agent_brain.tools import Action, call_tool
from agent_brain.tools.text import to_compact_json
from tests.demo.helpers import ask, fixed_clock

pytestmark = pytest.mark.anyio
TOOLS = {tool.name: tool for tool in demo_tools(clock=fixed_clock)}


def _told() -> Message:
    described = {k: v for tool in TOOLS.values() for k, v in tool.to_dict().items()}
    return Message.system(REASONING_TEXT.replace("{tools}", to_compact_json(described)))


async def _text(messages, llm=None, **options) -> str:
    pieces = (llm or DemoLLM(native=False)).stream(messages, **options)
    return "".join([piece async for piece in pieces if isinstance(piece, str)])


async def _text_mode_results(question: str) -> tuple[list[Message], str]:
    """The messages after all calls, and the last thought, which has no JSON."""
    messages = [Message.user(question)]
    while True:
        text = await _text([_told(), *as_text(messages)])
        start = text.find("\n{")
        if start < 0:
            return messages, text
        action = Action(**json.loads(text[start:]))
        outcome = await call_tool(action, TOOLS)
        messages += [
            Message.assistant(text[:start], [action]),
            Message.tool(outcome.content, action, is_error=outcome.is_error),
        ]
        assert len(messages) < 10


@pytest.mark.parametrize(
    "question,expected",
    [
        ("what is 17 times 23 plus 4", "395"),
        ("add 3 and 4, then multiply the result by 10", "70"),
        ("how many days until Christmas?", "290"),
        ("What is 2+2 and what weekday was 4 July 1999?", "Sunday"),
        ("what time is it in Asia/Tokio", "23:30"),
    ],
)
async def test_the_text_mode_calls_by_json_and_answers_from_written_results(question, expected):
    messages, thought = await _text_mode_results(question)
    assert expected in thought
    assert "{" not in thought
    answer = await _text([Message.system("Answer now."), *as_text(messages)])
    assert expected in answer


async def test_an_answering_call_without_tools_uses_the_results_there_are():
    talk = await ask("how many days until Christmas?")
    answer = await _text(talk.messages[:-1], DemoLLM())
    assert answer == talk.answer


async def test_an_answering_call_without_any_result_claims_none():
    answer = await _text([Message.user("what is 2 + 2")], DemoLLM())
    assert "= 4" not in answer
    assert "cannot" in answer


class Sum(BaseModel):
    question: str
    answer: float


class Weather(BaseModel):
    city: str
    rain_probability: float


async def test_a_structured_answer_is_filled_from_results():
    talk = await ask("what is 17 times 23 plus 4")
    text = await _text(talk.messages[:-1], DemoLLM(), output_type=Sum)
    assert Sum.model_validate_json(text) == Sum(question="what is 17 times 23 plus 4", answer=395)


async def test_a_structured_answer_is_not_made_up():
    talk = await ask("what is 17 times 23 plus 4")
    text = await _text(talk.messages[:-1], DemoLLM(), output_type=Weather)
    assert text.startswith("I cannot fill in Weather")


async def test_a_call_ends_with_its_usage_at_no_cost():
    pieces = [p async for p in DemoLLM().stream([Message.user("2+2")], tools=[*TOOLS.values()])]
    assert isinstance(pieces[0], Thought)
    usage = pieces[-1]
    assert isinstance(usage, Usage)
    assert usage.input_tokens > 100
    assert usage.output_tokens > 0
    assert (usage.cost, usage.model) == (0.0, "demo")


async def test_an_answer_comes_word_by_word():
    talk = await ask("reverse 'abc'")
    assert talk.chunks == ["'abc' ", "reversed ", "is ", "'cba'."]


async def test_equal_messages_give_equal_output():
    question = "What is 2+2 and what time is it in Tokyo and in London?"
    first, second = await ask(question), await ask(question)
    assert (first.calls, first.thoughts, first.chunks) == (
        second.calls,
        second.thoughts,
        second.chunks,
    )


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


def test_importing_it_is_light():
    code = (
        "import sys, agent_brain.demo; "
        "sys.exit(any(name in sys.modules for name in ('litellm', 'chromadb', 'jsonschema')))"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
