"""Reflexion: attempt, evaluate, reflect on failures, and try again."""

from __future__ import annotations

from enum import Enum

from agent_brain.nets.composition import NetLike, SubnetState
from agent_brain.nets.library.react import react
from agent_brain.nets.net import Net
from agent_brain.states.answering import TellState
from agent_brain.states.evaluation import (
    EVALUATION,
    SELF_REFLECTION,
    Evaluate,
    EvaluationState,
    SelfReflectionState,
    best_answer,
)
from agent_brain.states.models.llm import LLM
from agent_brain.states.models.resolve import as_llm
from agent_brain.states.output_types import OutputType
from agent_brain.states.prompts import Prompt


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

    An actor attempts the goal and an evaluator judges its answer. If it fails, a reflection is
    added to the memory, where the next attempt sees it together with the last attempt. The answer
    is the first one that passes, or else the best one. Attempts stream as thoughts.

    Model calls for n attempts of c calls each: n·c + n evaluations + n-1 reflections; a function as
    evaluator takes none.

    Args:
        llm: The model that attempts, and does everything else.
        evaluate: Another model as evaluator; or a function of the memory and the answer, sync or
            async, that returns whether it passes, a score, a text that says what is wrong, or an
            :class:`agent_brain.states.Evaluation`.
        attempts: The maximum number of attempts.
        attempt: A net for the attempts. Default: :func:`react`.
        reflect_llm: Another model for the reflection.
        threshold: The minimum score that passes.
        output_type: The type of the answer, as in :func:`react`.
            A net passed as ``attempt`` must answer in this type itself.
        prompt: System prompt of the attempts.
        evaluate_prompt: System prompt of the evaluation.
        reflect_prompt: System prompt of the reflection.
        fallback: Whether to answer with the best attempt so far when a limit stops the run.

    Raises:
        StateDefinitionError: ``attempts`` below 1.
    """
    llm = as_llm(llm)
    actor = react(llm, output_type=output_type, prompt=prompt) if attempt is None else attempt
    return Net(
        {
            Reflexion.ATTEMPT: SubnetState(actor, on_done=Reflexion.EVALUATION, as_thoughts=True),
            Reflexion.EVALUATION: EvaluationState(
                evaluate or llm,
                on_pass=Reflexion.ANSWER,
                on_fail=Reflexion.REFLECTION,
                attempts=attempts,
                threshold=threshold,
                prompt=evaluate_prompt,
                feedback=None,  # the reflection has it
            ),
            Reflexion.REFLECTION: SelfReflectionState(
                reflect_llm or llm, on_done=Reflexion.ATTEMPT, prompt=reflect_prompt
            ),
            Reflexion.ANSWER: TellState(best_answer, output_type=output_type),
        },
        fallback=Reflexion.ANSWER if fallback else None,
        name="reflexion",
    )
