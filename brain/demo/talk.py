"""What the demo model says of itself and of the conversation."""

from __future__ import annotations

from collections.abc import Sequence

from agent_brain.demo.ask_talk import read_fact
from agent_brain.demo.asks import Ask
from agent_brain.demo.conversation import Turn
from agent_brain.demo.schema import Card

WHO = (
    "I am the built-in demo model of Agent Brain: a small rule-based program, not a language model."
)
ABILITIES = (
    "I understand simple questions about arithmetic, dates and times, letters and words, and units "
    "of measurement, and I can call tools whose names and parameters match your words."
)
HOW = 'For a real model, set AGENT_BRAIN_MODEL or pass llm="provider/model".'

_FIXED = {
    "hello": f"Hello! {WHO} Try “what is 17 times 23 plus 4?”.",
    "thanks": "You are welcome.",
    "bye": "Goodbye!",
    "well": f"I am a program, so there is nothing to report; thank you for asking. {WHO}",
    "who": f"{WHO} {HOW}",
    "told": "Noted: it stays in this conversation, and you can ask me for it.",
}


def talk(ask: Ask, turns: Sequence[Turn], cards: Sequence[Card]) -> str:
    """The answer to small talk or to a question about the conversation."""
    topic = ask.slots["topic"]
    if topic == "abilities":
        return " ".join([ABILITIES, _tools(cards), WHO, HOW])
    if topic == "recall":
        return _recalled(str(ask.slots["thing"]), turns)
    before = turns[:-1]
    if topic in ("first", "before", "answer") and not before:
        return "This is the first question in this conversation that I can see."
    if topic == "first":
        return f"Your first question here was: “{before[0].question}”"
    if topic == "before":
        asked = "; ".join(f"“{turn.question}”" for turn in before[-5:])
        return f"Before this, you asked: {asked}"
    if topic == "answer":
        last = before[-1].answer
        return f"My last answer was: {last}" if last else "I see no earlier answer of mine here."
    return _FIXED[topic]


def _recalled(thing: str, turns: Sequence[Turn]) -> str:
    for turn in reversed(turns[:-1]):
        value = read_fact(turn.question, thing)
        if value is not None:
            return f"You told me that your {thing} is {value}."
    return f"You have not told me your {thing} in this conversation, so I do not know it."


def _tools(cards: Sequence[Card]) -> str:
    if not cards:
        return "Right now I have no tools."
    return f"The tools I have now: {', '.join(card.name for card in cards)}."


def unable(reasons: Sequence[str], *, explain: bool) -> str:
    """What to say when nothing of a question could be answered; ``explain`` tells what could be."""
    sentence = f"I cannot answer that: {'; '.join(dict.fromkeys(reasons))}."
    return f"{sentence} {WHO} {ABILITIES} {HOW}" if explain else sentence
