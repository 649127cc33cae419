"""States that judge an answer or a step, and say what to do differently."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from enum import Enum
from typing import ClassVar, TypeAlias

from pydantic import BaseModel, Field

from agent_brain.common.aio import maybe_await
from agent_brain.common.values import check_count, check_function
from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message
from agent_brain.states import prompts
from agent_brain.states.answering import last_answer
from agent_brain.states.base import Choose, RoutedState, Target
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.model_request import StructuredRequest, TextRequest, build_messages
from agent_brain.states.models.llm import LLM, Thought
from agent_brain.states.models.resolve import as_llm, llm_or
from agent_brain.states.session_state import Notes
from agent_brain.states.work import StreamItem


class Evaluation(BaseModel, frozen=True):
    """A judgement.

    Attributes:
        passed: Whether it is good enough.
        score: From 0, useless, to 1, perfect.
        feedback: What is wrong with it, if anything.
    """

    passed: bool = Field(description="whether it is good enough")
    score: float = Field(default=0.0, description="from 0, useless, to 1, perfect")
    feedback: str = Field(default="", description="what is wrong with it, if anything")


Judged: TypeAlias = bool | float | str | Evaluation
Evaluate: TypeAlias = Callable[[Memory, str], Judged | Awaitable[Judged]]

EVALUATION = (
    "You are a strict examiner. Judge whether the answer reaches the user's goal: is it correct, "
    "complete, and supported by what the tools returned? Say what is wrong as precisely as you "
    "can; do not correct it yourself."
)
REQUEST = "Judge this answer to my question:\n\n{answer}"
FEEDBACK = "That answer was not good enough. {feedback}\nAnswer again, better."


class Trial(BaseModel):
    """An answer and its evaluation."""

    answer: str
    evaluation: Evaluation


class Trials(Notes):
    """The answers evaluated so far, oldest first."""

    trials: list[Trial] = Field(default_factory=list)

    def best(self) -> str:
        """Return the answer that was judged best; the last one of equals."""
        found = max(
            reversed(self.trials),
            key=lambda trial: (trial.evaluation.passed, trial.evaluation.score),
            default=None,
        )
        return "" if found is None else found.answer


def best_answer(memory: Memory) -> str:
    """Return the answer of the run that was judged best; the last one of equals."""
    return Trials.read(memory).best()


class EvaluationState(RoutedState):
    """Judge the last answer with a model or a function, and record the judgement.

    What is wrong with an answer is recorded for the next attempt. If attempts stream as thoughts,
    ``TellState(best_answer)`` then gives the answer::

        {
            Step.WRITE: AnswerState(llm, ask=True, as_thoughts=True, on_done=Step.JUDGE),
            Step.JUDGE: EvaluationState(judge, on_pass=Step.ANSWER, on_fail=Step.WRITE, attempts=3),
            Step.ANSWER: TellState(best_answer),
        }

    Args:
        evaluate: A model; or a function of the memory and the answer, sync or async, that returns
            whether it passes, a score, what is wrong with it (empty text: nothing), or an
            :class:`Evaluation`.
        on_pass: The next state if the answer is good enough; None ends the run.
        choose: Returns the next state in place of ``on_pass`` (:class:`RoutedState`).
        on_fail: The next state otherwise.
        attempts: Maximum number of answers; after the last one the next state is ``on_pass``.
        threshold: The lowest score that passes.
        prompt: The system prompt.
        request: The last message; ``{answer}`` is replaced by the answer.
        feedback: The user message that is recorded about an answer that is not good enough, for the
            next attempt; ``{feedback}`` is replaced by what is wrong. None records none.

    Raises:
        StateDefinitionError: ``attempts`` below 1, or a function that takes other arguments.
    """

    def __init__(
        self,
        evaluate: LLM | Evaluate | str,
        *,
        on_pass: Enum | None = None,
        on_fail: Enum,
        choose: Choose | None = None,
        attempts: int | None = None,
        threshold: float = 1.0,
        prompt: prompts.Prompt = EVALUATION,
        request: str = REQUEST,
        feedback: str | None = FEEDBACK,
    ) -> None:
        super().__init__(on_pass, choose)
        check_count(StateDefinitionError, "attempts", attempts, optional=True)
        if not (feedback is None or isinstance(feedback, str)):
            raise StateDefinitionError(f"feedback={feedback!r:.100}: a text, or None for none")
        self.evaluate: LLM | Evaluate = llm_or(evaluate)
        if not isinstance(self.evaluate, LLM):
            check_function(StateDefinitionError, "evaluate", evaluate, "memory", "answer")
        self.on_fail = on_fail
        self.attempts = attempts
        self.threshold = threshold
        self.prompt = prompts.checked(prompt)
        self.request = request
        self.feedback = feedback

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        """Judge the answer and stream the verdict as a thought."""
        answer = await last_answer(memory)
        if isinstance(self.evaluate, LLM):
            request = self.request.replace("{answer}", answer)
            messages = await build_messages(self.evaluate, memory, self.prompt, request)
            question = StructuredRequest(self.evaluate, messages, Evaluation)
            yield question
            evaluation = question.output
        else:
            evaluation = self._read(await maybe_await(self.evaluate(memory, answer)))
        verdict = "Good enough" if evaluation.passed else "Not good enough"
        yield Thought(f"{verdict}. {evaluation.feedback}".strip() + "\n")
        notes = Trials.load(memory)
        notes.trials.append(Trial(answer=answer, evaluation=evaluation))
        notes.ended = evaluation.passed or len(notes.trials) == self.attempts
        notes.write(memory)
        if self.feedback is not None and not notes.ended:
            text = self.feedback.replace("{feedback}", evaluation.feedback)
            await memory.update([Message.user(text, cause_by=EvaluationState.__name__)])

    def _read(self, judged: Judged) -> Evaluation:
        if isinstance(judged, Evaluation):
            return judged
        given: object = judged
        if not isinstance(given, str | bool | int | float):
            what = "a bool, a score, what is wrong (text, empty if nothing is), or an Evaluation"
            raise StateDefinitionError(
                f"EvaluationState: evaluate returned {given!r:.100}; it returns {what}"
            )
        if isinstance(judged, str):
            judged = judged.strip()
            return Evaluation(passed=not judged, score=0.0 if judged else 1.0, feedback=judged)
        return Evaluation(
            passed=judged if isinstance(judged, bool) else judged >= self.threshold,
            score=float(judged),
        )

    @property
    def on_pass(self) -> Enum | None:
        """The next state if the answer is good enough."""
        return self.on_done

    async def next_state(self, memory: Memory) -> Enum | None:
        """Return ``on_pass`` or ``on_fail``."""
        return await super().next_state(memory) if Trials.read(memory).ended else self.on_fail

    def targets(self) -> tuple[Target, ...]:
        """Return both."""
        return (*super().targets(), self.on_fail)


REFLECTION = (
    "You watch an assistant at work on the user's goal. Judge its last step: did the tools return "
    "what was needed, does it bring the goal nearer, is anything misread, repeated or forgotten? "
    "If it was good, say so and no more. If not, say in a sentence or two what to do differently."
)
STEP_REQUEST = "Judge the last step."

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


class _ReflectingState(RoutedState):
    default: ClassVar[str]

    def __init__(
        self,
        llm: LLM | str,
        *,
        on_done: Enum | None = None,
        choose: Choose | None = None,
        prompt: prompts.Prompt | None = None,
    ) -> None:
        super().__init__(on_done, choose)
        self.llm = as_llm(llm)
        self.prompt = prompts.checked(self.default if prompt is None else prompt)


class ReflectionState(_ReflectingState):
    """Judge the last step and give feedback.

    A remark is recorded as a user message, the last one that the next model call sees, and streams
    as a thought. A good step records nothing.

    Args:
        llm: The model that judges.
        on_done: The next state; None ends the run.
        choose: Returns the next state (:class:`RoutedState`).
        prompt: The system prompt.
    """

    default = REFLECTION

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        """Judge the step, and record the remark if there is one."""
        messages = await build_messages(self.llm, memory, self.prompt, STEP_REQUEST)
        question = StructuredRequest(self.llm, messages, Reflection)
        yield question
        remark = question.output.remark.strip()
        if remark:
            yield Thought(remark + "\n")
        if remark and not question.output.on_track:
            await memory.update([Message.user(remark, cause_by=type(self).__name__)])


class SelfReflectionState(_ReflectingState):
    """Turn a failed attempt into a lesson for the next (Shinn et al. 2023, "verbal reinforcement").

    The lesson is recorded as a user's message that ends by asking for another attempt, so every
    later attempt has it in its context.

    Args:
        llm: The model that reflects on its failure.
        on_done: The next state, which makes the next attempt.
        choose: Returns the next state (:class:`RoutedState`).
        prompt: The system prompt.
    """

    default = SELF_REFLECTION

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
