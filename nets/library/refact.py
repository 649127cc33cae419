"""ReAct with a reflection after each round of tool calls."""

from __future__ import annotations

from enum import Enum

from agent_brain.nets.net import Net
from agent_brain.states.answering import AnswerState
from agent_brain.states.evaluation import REFLECTION, ReflectionState
from agent_brain.states.models.llm import LLM
from agent_brain.states.models.resolve import as_llm
from agent_brain.states.output_types import OutputType
from agent_brain.states.prompts import ANSWER, Prompt, joined
from agent_brain.states.reasoning import Mode, ReasoningState
from agent_brain.states.tool_round import ActionState


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
    """ReAct with a reflection after each round of tool calls.

    The loop of ReAct (Yao et al. 2022, https://arxiv.org/abs/2210.03629) with a state that compares
    each step with the goal, as in ReflAct (Kim et al. 2025, https://arxiv.org/abs/2505.15182). Each
    round takes two model calls: reasoning and reflection. Only remarks on problems are recorded, so
    steps that went well take no context.

    Args:
        llm: The model that reasons.
        reflect_llm: Another model for the reflection.
        answer_llm: Another model for the answer.
        output_type: The type of the answer, as in :func:`react`.
        prompt: System prompt of the agent, for each of its model calls.
        reflect_prompt: System prompt of the reflection state.
        mode: How the model calls tools: ``"native"``, ``"text"``, or ``"auto"``.
        max_concurrency: The maximum number of concurrent tool calls. Default: all of a round.
        fallback: Whether to ask for the best possible answer when a limit stops the run (one more
            model call).
    """
    separate = answer_llm is not None
    llm = as_llm(llm)
    return Net(
        {
            RefAct.REASONING: ReasoningState(
                llm,
                on_action=RefAct.ACTION,
                on_answer=RefAct.ANSWER,
                prompt=prompt,
                mode=mode,
                as_thoughts=separate or output_type is not None,
                output_type=None if separate else output_type,
            ),
            RefAct.ACTION: ActionState(RefAct.REFLECTION, max_concurrency=max_concurrency),
            RefAct.REFLECTION: ReflectionState(
                reflect_llm or llm, on_done=RefAct.REASONING, prompt=reflect_prompt
            ),
            RefAct.ANSWER: AnswerState(
                answer_llm or llm,
                output_type=output_type,
                ask=separate,
                prompt=joined(prompt, ANSWER),
            ),
        },
        fallback=RefAct.ANSWER if fallback else None,
        name="refact",
    )
