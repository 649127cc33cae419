"""ReAct with reflection: after every round of tool calls, look back at it before thinking on."""

from __future__ import annotations

from enum import Enum

from agent_brain.nets.net import Net
from agent_brain.states.acting import ActionState
from agent_brain.states.answering import AnswerState
from agent_brain.states.models.llm import LLM
from agent_brain.states.models.resolve import as_llm
from agent_brain.states.output_types import OutputType
from agent_brain.states.prompts import Prompt
from agent_brain.states.reasoning import Mode, ReasoningState
from agent_brain.states.reflection import REFLECTION, ReflectionState


class RefAct(Enum):
    """The states of :func:`refact`."""

    REASONING = "reasoning"
    ACTION = "action"
    REFLECTION = "reflection"
    ANSWER = "answer"


def refact(
    llm: LLM | str,
    *,
    reflect_llm: LLM | str | None = None,
    answer_llm: LLM | str | None = None,
    output_type: OutputType | None = None,
    prompt: Prompt | None = None,
    reflect_prompt: Prompt = REFLECTION,
    mode: Mode = "auto",
    max_concurrency: int | None = None,
    fallback: bool = False,
) -> Net:
    """ReAct whose steps are judged as they are made.

    The loop of ReAct (Yao et al. 2022, https://arxiv.org/abs/2210.03629) with a state that holds
    each step against the goal, as in ReflAct (Kim et al. 2025, https://arxiv.org/abs/2505.15182).
    Two model calls a round of tool calls: one that reasons, one that reflects. Only remarks that
    there is something to heed about are recorded, so steps that went well cost no context.

    Args:
        llm: The model that reasons.
        reflect_llm: Another model for the reflection.
        answer_llm: Another model for the answer.
        output_type: What the answer must fit: a pydantic model, or any other type that pydantic
            validates; ``Result.output`` is the object.
        prompt: What the reasoning state tells the model first.
        reflect_prompt: What the reflection state tells its model first.
        mode: How tools are called: ``"native"``, ``"text"``, or ``"auto"`` for what the model can.
        max_concurrency: How many tool calls may run at once; None for all of a round.
        fallback: When a limit stops the run, ask for the best answer that can be given (one more
            model call).
    """
    separate = answer_llm is not None or output_type is not None
    llm = as_llm(llm)
    return Net(
        {
            RefAct.REASONING: ReasoningState(
                llm,
                on_action=RefAct.ACTION,
                on_answer=RefAct.ANSWER,
                prompt=prompt,
                mode=mode,
                aside=separate,
            ),
            RefAct.ACTION: ActionState(RefAct.REFLECTION, max_concurrency=max_concurrency),
            RefAct.REFLECTION: ReflectionState(
                reflect_llm or llm, on_done=RefAct.REASONING, prompt=reflect_prompt
            ),
            RefAct.ANSWER: AnswerState(
                answer_llm or llm, output_type=output_type, ask=answer_llm is not None
            ),
        },
        fallback=RefAct.ANSWER if fallback else None,
        name="refact",
    )
