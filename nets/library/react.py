"""ReAct: reason, act, look at what came of it, and so on until there is an answer."""

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


class ReAct(Enum):
    """The states of :func:`react`."""

    REASONING = "reasoning"
    ACTION = "action"
    ANSWER = "answer"


def react(
    llm: LLM | str,
    *,
    answer_llm: LLM | str | None = None,
    output_type: OutputType | None = None,
    prompt: Prompt | None = None,
    mode: Mode = "auto",
    max_concurrency: int | None = None,
    fallback: bool = False,
) -> Net:
    """Reason, call tools, look at the results, and so on until there is an answer.

    ReAct (Yao et al. 2022, https://arxiv.org/abs/2210.03629).

    One model call a round of tool calls. With a model that calls tools natively its closing text is
    the answer and costs no further call; a separate answering call is made in the text mode, and
    where ``answer_llm`` or ``output_type`` asks for one.

    Args:
        llm: The model that reasons.
        answer_llm: Another model for the answer.
        output_type: What the answer must fit: a pydantic model, or any other type that pydantic
            validates; ``Result.output`` is the object.
        prompt: What the reasoning state tells the model first.
        mode: How tools are called: ``"native"``, ``"text"``, or ``"auto"`` for what the model can.
        max_concurrency: How many tool calls may run at once; None for all of a round.
        fallback: When a limit stops the run, ask for the best answer that can be given (one more
            model call).
    """
    separate = answer_llm is not None or output_type is not None
    llm = as_llm(llm)
    return Net(
        {
            ReAct.REASONING: ReasoningState(
                llm,
                on_action=ReAct.ACTION,
                on_answer=ReAct.ANSWER,
                prompt=prompt,
                mode=mode,
                aside=separate,
            ),
            ReAct.ACTION: ActionState(ReAct.REASONING, max_concurrency=max_concurrency),
            ReAct.ANSWER: AnswerState(
                answer_llm or llm, output_type=output_type, ask=answer_llm is not None
            ),
        },
        fallback=ReAct.ANSWER if fallback else None,
        name="react",
    )
