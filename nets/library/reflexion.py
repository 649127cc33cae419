"""Reflexion: attempt, evaluate, reflect on the failure in words, and attempt again."""

from __future__ import annotations

from enum import Enum

from agent_brain.memories.base import Memory
from agent_brain.nets.composition import NetLike, SubnetState
from agent_brain.nets.library.react import react
from agent_brain.nets.net import Net
from agent_brain.states.evaluation import EVALUATION, Evaluate, EvaluationState, Trials
from agent_brain.states.models.llm import LLM
from agent_brain.states.models.resolve import as_llm
from agent_brain.states.output_types import OutputType
from agent_brain.states.prompts import Prompt
from agent_brain.states.reflection import SELF_REFLECTION, SelfReflectionState
from agent_brain.states.stored_answer import TellState


class Reflexion(Enum):
    """The states of :func:`reflexion`: the paper's actor, evaluator and self-reflection."""

    ATTEMPT = "attempt"
    EVALUATION = "evaluation"
    REFLECTION = "reflection"
    ANSWER = "answer"


def reflexion(
    llm: LLM | str,
    *,
    evaluate: LLM | Evaluate | str | None = None,
    attempts: int = 3,
    attempt: NetLike | None = None,
    reflect_llm: LLM | str | None = None,
    threshold: float = 1.0,
    output_type: OutputType | None = None,
    prompt: Prompt | None = None,
    evaluate_prompt: Prompt = EVALUATION,
    reflect_prompt: Prompt = SELF_REFLECTION,
    fallback: bool = False,
) -> Net:
    """Reflexion (Shinn et al. 2023, https://arxiv.org/abs/2303.11366).

    The actor attempts the goal; the evaluator judges its answer; what failed is reflected on in
    words that stay in the memory, where the next attempt sees them together with the last one (the
    paper's "last attempt and reflexion"). The first answer that passes is the run's answer, or else
    the best one. Attempts are not for the reader: they stream as thoughts.

    Model calls, with n attempts made of c calls each: n·c + n evaluations + n-1 reflections;
    a function as evaluator costs none.

    Args:
        llm: The model that attempts, and does whatever is not given to another.
        evaluate: Another model that judges; or a function of the memory and the answer, sync or
            async, that returns whether it passes, a score, what is wrong with it, or an
            :class:`agent_brain.states.Evaluation`.
        attempts: At most so many.
        attempt: Another net for an attempt than :func:`react`.
        reflect_llm: Another model for the reflection.
        threshold: The least score that passes.
        output_type: What the answer must fit: a pydantic model, or any other type that pydantic
            validates; ``Result.output`` is the object.
            With a net of your own for an attempt, have that net answer in this shape.
        prompt: What the reasoning state of an attempt tells the model first.
        evaluate_prompt: What an evaluating model is told first.
        reflect_prompt: What the reflecting model is told first.
        fallback: When a limit stops the run, answer with the best attempt so far.

    Raises:
        StateDefinitionError: ``attempts`` below 1.
    """
    llm = as_llm(llm)
    actor = react(llm, output_type=output_type, prompt=prompt) if attempt is None else attempt
    return Net(
        {
            Reflexion.ATTEMPT: SubnetState(actor, on_done=Reflexion.EVALUATION, aside=True),
            Reflexion.EVALUATION: EvaluationState(
                evaluate or llm,
                on_pass=Reflexion.ANSWER,
                on_fail=Reflexion.REFLECTION,
                attempts=attempts,
                threshold=threshold,
                prompt=evaluate_prompt,
            ),
            Reflexion.REFLECTION: SelfReflectionState(
                reflect_llm or llm, on_done=Reflexion.ATTEMPT, prompt=reflect_prompt
            ),
            Reflexion.ANSWER: TellState(best_attempt, output_type=output_type),
        },
        fallback=Reflexion.ANSWER if fallback else None,
        name="reflexion",
    )


def best_attempt(memory: Memory) -> str:
    """The answer that was judged best; of equals the last."""
    return Trials.read(memory).best()
