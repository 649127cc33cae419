"""The demo model with its own tools: what it answers, and what it declines."""

from __future__ import annotations

import pytest

from agent_brain.memories import Message
from tests.demo import questions
from tests.demo.helpers import Talk, ask

pytestmark = pytest.mark.anyio

ANSWERED = [
    *questions.ARITHMETIC,
    *questions.DATES,
    *questions.TEXT,
    *questions.UNITS,
    *questions.SEVERAL,
    *questions.UNSEEN,
]


@pytest.mark.parametrize("question,expected", ANSWERED)
async def test_a_question_is_answered_through_a_tool(question, expected):
    talk = await ask(question)
    assert talk.calls
    assert expected in talk.answer
    assert "cannot" not in talk.answer


@pytest.mark.parametrize("question", questions.DECLINED)
async def test_what_it_does_not_know_it_says_and_how_to_get_a_real_model(question):
    talk = await ask(question)
    assert talk.calls == []
    assert "not a language model" in talk.answer
    assert "AGENT_BRAIN_MODEL" in talk.answer
    assert "llm=" in talk.answer


@pytest.mark.parametrize(
    "words,expected",
    [
        ("hello", "Hello"),
        ("Thank you!", "welcome"),
        ("Who are you?", "not a language model"),
        ("are you ChatGPT?", "not a language model"),
        ("what can you do", "calculate, date_math"),
        ("bye", "Goodbye"),
    ],
)
async def test_small_talk_needs_no_tool(words, expected):
    talk = await ask(words)
    assert talk.calls == []
    assert expected in talk.answer


async def test_independent_questions_become_calls_at_once():
    talk = await ask("What is 2+2 and what weekday was 4 July 1999?")
    assert [len(group) for group in talk.actions] == [2]
    assert "4" in talk.answer
    assert "Sunday" in talk.answer


async def test_a_second_step_uses_the_first_result():
    talk = await ask("add 3 and 4, then multiply the result by 10")
    assert [group[0].args["expression"] for group in talk.actions] == ["3 + 4", "7 * 10"]


async def test_a_thought_says_what_it_is_about_to_do():
    talk = await ask("what is 2 + 2")
    assert talk.thoughts == ["I will call calculate with expression = '2 + 2'."]


@pytest.mark.parametrize(
    "question,reason",
    [
        ("what is 1/0", "division by zero"),
        ("9**9**9", "too large"),
        ("what weekday is 30 February 2026", "not a date"),
        ("convert 5 miles to kg", "measures"),
        ("multiply that by 2", "no earlier result"),
    ],
)
async def test_a_failure_is_told_as_one(question, reason):
    talk = await ask(question)
    assert talk.answer.startswith("I cannot answer that")
    assert reason in talk.answer


async def test_an_error_that_names_the_right_word_is_corrected_once():
    talk = await ask("what time is it in Asia/Tokio")
    assert [args["zone"] for _, args in talk.calls] == ["Asia/Tokio", "Asia/Tokyo"]
    assert "23:30" in talk.answer


async def test_what_was_answered_stays_beside_what_was_not():
    talk = await ask("what is 2 + 2 and who wrote Hamlet?")
    assert "2 + 2 = 4" in talk.answer
    assert "cannot answer" in talk.answer


async def _then(first: Talk, question: str) -> str:
    return (await ask(question, before=first.messages)).answer


async def test_it_remembers_the_conversation():
    first = await ask("what is 6 times 7")
    assert "what is 6 times 7" in await _then(first, "what did I ask before?")
    assert "what is 6 times 7" in await _then(first, "What was my first question?")
    assert "6 * 7 = 42" in await _then(first, "what was your last answer?")
    assert "42 + 8 = 50" in await _then(first, "add 8 to that")


async def test_it_remembers_what_it_was_told_and_nothing_else():
    first = await ask("Hi, my name is Ann")
    assert "Ann" in await _then(first, "what is my name?")
    assert "have not told me" in await _then(first, "what is my birthday?")


async def test_an_empty_conversation_is_no_error():
    talk = await ask("", before=[Message.system("Be brief.")])
    assert "not a language model" in talk.answer
