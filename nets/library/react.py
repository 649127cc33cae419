"""ReAct: reason and act in turns."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from agent_brain.nets.net import Net
from agent_brain.states.answering import AnswerState
from agent_brain.states.models.llm import LLM
from agent_brain.states.models.resolve import as_llm
from agent_brain.states.output_types import Check, OutputType
from agent_brain.states.prompts import ANSWER, Prompt, joined
from agent_brain.states.reasoning import Mode, ReasoningState
from agent_brain.states.tool_round import ActionState
from agent_brain.tools.toolset import ToolLike


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
    tools: Iterable[ToolLike] = (),
    check: Check | None = None,
    corrections: int = 1,
    mode: Mode = "auto",
    max_concurrency: int | None = None,
    fallback: bool = False,
) -> Net:
    """Reason and call tools until there is an answer.

    ReAct (Yao et al. 2022, https://arxiv.org/abs/2210.03629).

    Each round of tool calls takes one model call. If the model calls tools natively, its closing
    text is the answer, or with ``output_type`` its call of the tool ``final_result``. A separate
    call answers in the text mode, with ``answer_llm``, and after text in place of data.

    Args:
        llm: The model that reasons.
        answer_llm: Another model for the answer.
        output_type: The type of the answer and of ``Result.output``: a pydantic model, or any
            other type that pydantic validates.
        prompt: System prompt of the agent, for each of its model calls.
        tools: Tools that only this net may call, besides those of the memory.
        check: A function of the output, or of the memory and the output, sync or async, that
            returns what is wrong with it, or None. The model that reasons is told, and may call
            tools again before it answers.
        corrections: How often an answer that is not valid goes back to the model.
        mode: How the model calls tools: ``"native"``, ``"text"``, or ``"auto"``.
        max_concurrency: The maximum number of concurrent tool calls. Default: all of a round.
        fallback: Whether to ask for the best possible answer when a limit stops the run (one more
            model call).
    """
    separate = answer_llm is not None
    llm = as_llm(llm)
    return Net(
        {
            ReAct.REASONING: ReasoningState(
                llm,
                on_action=ReAct.ACTION,
                on_answer=ReAct.ANSWER,
                prompt=prompt,
                mode=mode,
                as_thoughts=separate or output_type is not None,
                output_type=None if separate else output_type,
                check=None if separate else check,
                corrections=corrections,
            ),
            ReAct.ACTION: ActionState(ReAct.REASONING, max_concurrency=max_concurrency),
            ReAct.ANSWER: AnswerState(
                answer_llm or llm,
                output_type=output_type,
                ask=separate,
                prompt=joined(prompt, ANSWER),
                check=check,
                corrections=corrections,
            ),
        },
        tools=tools,
        fallback=ReAct.ANSWER if fallback else None,
        name="react",
    )
