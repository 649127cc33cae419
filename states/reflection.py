"""States that judge previous work and say what to do differently."""

from __future__ import annotations

from collections.abc import AsyncIterator
from enum import Enum

from pydantic import BaseModel, Field

from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message
from agent_brain.states import prompts
from agent_brain.states.evaluation import Trials
from agent_brain.states.model_request import StructuredRequest, TextRequest, build_messages
from agent_brain.states.models.llm import LLM, Thought
from agent_brain.states.models.resolve import as_llm
from agent_brain.states.routed import Choose, RoutedState
from agent_brain.states.work import StreamItem

REFLECTION = (
    "You watch an assistant at work on the user's goal. Judge its last step: did the tools return "
    "what was needed, does it bring the goal nearer, is anything misread, repeated or forgotten? "
    "If it was good, say so and no more. If not, say in a sentence or two what to do differently."
)
REQUEST = "Judge the last step."

SELF_REFLECTION = (
    "You have tried to reach the user's goal and failed. In a few sentences, diagnose why, and "
    "make a new, concise plan that avoids the same failure. Do not answer the goal yet."
)
SELF_REQUEST = "That answer was not good enough. {feedback}\nWhy did it fail, and what will you do?"
LESSON = "{feedback}\nWhat I take from this: {reflection}\nTry again from the beginning."


class Reflection(BaseModel, frozen=True):
    """A judgement of one step, and what to do differently."""

    on_track: bool = Field(description="whether the last step was good")
    remark: str = Field(default="", description="what to do differently; empty if on track")


class ReflectionState(RoutedState):
    """Judge the last step and give feedback.

    A remark is recorded as a user message, the last one that the next model call sees, and streams
    as a thought. A good step records nothing.

    Args:
        llm: The model that judges.
        on_done: The next state; None ends the run.
        choose: Returns the next state (:class:`RoutedState`).
        prompt: The system prompt.
    """

    def __init__(
        self,
        llm: LLM | str,
        *,
        on_done: Enum | None = None,
        choose: Choose | None = None,
        prompt: prompts.Prompt = REFLECTION,
    ) -> None:
        super().__init__(on_done, choose)
        self.llm = as_llm(llm)
        self.prompt = prompts.checked(prompt)

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        """Judge the step, and record the remark if there is one."""
        messages = await build_messages(self.llm, memory, self.prompt, REQUEST)
        question = StructuredRequest(self.llm, messages, Reflection)
        yield question
        remark = question.output.remark.strip()
        if remark:
            yield Thought(remark + "\n")
        if remark and not question.output.on_track:
            await memory.update([Message.user(remark, cause_by=type(self).__name__)])


class SelfReflectionState(RoutedState):
    """Turn a failed attempt into a lesson for the next (Shinn et al. 2023, "verbal reinforcement").

    The lesson is recorded as a user's message that ends by asking for another attempt, so every
    later attempt has it in its context.

    Args:
        llm: The model that reflects on its failure.
        on_done: The next state, which makes the next attempt.
        choose: Returns the next state (:class:`RoutedState`).
        prompt: The system prompt.
    """

    def __init__(
        self,
        llm: LLM | str,
        *,
        on_done: Enum | None = None,
        choose: Choose | None = None,
        prompt: prompts.Prompt = SELF_REFLECTION,
    ) -> None:
        super().__init__(on_done, choose)
        self.llm = as_llm(llm)
        self.prompt = prompts.checked(prompt)

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        """Reflect on the last evaluated attempt."""
        trials = Trials.read(memory).trials
        feedback = trials[-1].evaluation.feedback if trials else ""
        request = SELF_REQUEST.replace("{feedback}", feedback)
        messages = await build_messages(self.llm, memory, self.prompt, request)
        question = TextRequest(self.llm, messages, as_thoughts=True)
        yield question
        said = f"Attempt {len(trials)} was not good enough. {feedback}".strip()
        lesson = LESSON.replace("{feedback}", said).replace("{reflection}", question.text.strip())
        await memory.update([Message.user(lesson, cause_by=type(self).__name__)])
