"""Voting on several answers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import TypeAlias

from pydantic import BaseModel, Field

from agent_brain.common.aio import maybe_await
from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message
from agent_brain.states import prompts
from agent_brain.states.answering import TellState
from agent_brain.states.model_request import (
    StructuredRequest,
    build_messages,
    request_message,
)
from agent_brain.states.models.llm import LLM, Thought
from agent_brain.states.models.resolve import choice_or_llm
from agent_brain.states.output_types import OutputType
from agent_brain.states.session_state import Notes
from agent_brain.states.work import StreamItem, closing

Judge: TypeAlias = Callable[[Memory, Sequence[str]], str | Awaitable[str]]

VOTING = (
    "Several answers to the user's goal were found independently of each other. Decide which is "
    "the best: correct, complete, and in agreement with most of the others where these are sound."
)
REQUEST = "Which of these answers is best?\n\n{options}"

_LEAD_IN = re.compile(r"(?:\banswer(?:\s+is)?\s*[:=]?|####)\s*(?=\S)", re.IGNORECASE)
_DECORATION = re.compile(r"[*_`$\"'“”‘’\\]+")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")


class Candidates(Notes):
    """The answers to vote on, and the winner."""

    answers: list[str] = Field(default_factory=list)
    winner: str = ""


class Choice(BaseModel, frozen=True):
    """The number of the best answer."""

    number: int = Field(ge=1, description="the number of the best answer")


def final_answer(text: str) -> str:
    """Return the final answer of a text, normalised so that equal answers are equal texts.

    It is the text after the last "answer is", "answer:" or "####", or else the last line, without
    case, decoration, thousands separators and closing punctuation. Numbers compare by value.
    """
    leads = list(_LEAD_IN.finditer(text))
    said = text[leads[-1].end() :] if leads else text
    lines = [line for line in said.splitlines() if line.strip()]
    found = (lines[0] if leads else lines[-1]) if lines else ""
    plain = _THOUSANDS.sub("", _DECORATION.sub("", found))
    plain = " ".join(plain.casefold().split()).strip(" .,;:!?")
    try:
        number = Decimal(plain)
        return f"{number.normalize():f}" if number.is_finite() else plain
    except InvalidOperation:
        return plain


def majority(answers: Sequence[str], normalise: Callable[[str], str] = final_answer) -> str:
    """Return the most frequent answer; of equally frequent ones, the first."""
    votes = [normalise(answer) for answer in answers]
    winner = Counter(votes).most_common(1)
    return answers[votes.index(winner[0][0])] if winner else ""


def choice_question(
    llm: LLM, messages: Sequence[Message], request: str, options: Sequence[str]
) -> StructuredRequest[Choice]:
    """Return the request to choose the best of ``options``, which replace ``{options}``."""
    numbered = "\n\n".join(f"Number {n}:\n{option}" for n, option in enumerate(options, 1))
    question = [*messages, request_message(request.replace("{options}", numbered))]

    def check(choice: Choice) -> str | None:
        known = choice.number <= len(options)
        return None if known else f"there are only {len(options)} options"

    return StructuredRequest(llm, question, Choice, check=check)


class VoteState(TellState):
    """Vote on the :class:`Candidates`, and answer with the winner."""

    def __init__(
        self,
        vote: LLM | Judge | str = "majority",
        *,
        normalise: Callable[[str], str] = final_answer,
        output_type: OutputType | None = None,
        prompt: prompts.Prompt = VOTING,
    ) -> None:
        super().__init__(lambda memory: Candidates.read(memory).winner, output_type=output_type)
        self.vote = choice_or_llm("vote", vote, ("majority",))
        self.normalise = normalise
        self.prompt = prompts.checked(prompt)

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        """Vote, store the winner, and answer with it."""
        notes = Candidates.read(memory)
        if isinstance(self.vote, LLM):
            messages = await build_messages(self.vote, memory, self.prompt)
            question = choice_question(self.vote, messages, REQUEST, notes.answers)
            yield question
            notes.winner = notes.answers[question.output.number - 1]
        elif callable(self.vote):
            notes.winner = await maybe_await(self.vote(memory, notes.answers))
        else:
            notes.winner = majority(notes.answers, self.normalise)
            count = Counter(map(self.normalise, notes.answers))
            tally = ", ".join(f"{votes} × {answer!r}" for answer, votes in count.most_common())
            yield Thought(f"Votes: {tally}\n")
        notes.ended = True
        notes.write(memory)
        async with closing(super().run(memory)) as items:
            async for item in items:
                yield item
