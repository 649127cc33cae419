"""Plan and execute: make a plan, do it step by step, and plan anew when a step goes otherwise."""

from __future__ import annotations

from collections.abc import AsyncIterator
from enum import Enum

from agent_brain.memories.base import Memory
from agent_brain.memories.message import Role
from agent_brain.nets.composition import NetLike, SubnetState
from agent_brain.nets.library.react import react
from agent_brain.nets.net import Net
from agent_brain.states.aclosing import closing
from agent_brain.states.answering import AnswerState
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.evaluation import Evaluate, EvaluationState, Trials
from agent_brain.states.models.llm import LLM
from agent_brain.states.models.resolve import as_llm
from agent_brain.states.output_types import OutputType
from agent_brain.states.planning import PLANNING, Planned, PlanningState
from agent_brain.states.prompts import ANSWER, Prompt
from agent_brain.states.work import StreamItem
from agent_brain.tools.values import is_count

EVALUATION = (
    "You watch over the carrying out of a plan. Judge the last step only: it passes if it was done "
    "and what it found leaves the rest of the plan right. If it failed, or what it found changes "
    "the picture, say what that means for the plan."
)
REQUEST = "Judge the last step of the plan. Its result was:\n\n{answer}"


class PlanExecute(Enum):
    """The states of :func:`plan_execute`."""

    PLANNING = "planning"
    EXECUTION = "execution"
    EVALUATION = "evaluation"
    ANSWER = "answer"


def plan_execute(
    llm: LLM | str,
    *,
    plan_llm: LLM | str | None = None,
    step: NetLike | None = None,
    evaluate: LLM | Evaluate | str | None = None,
    max_steps: int = 10,
    max_plans: int = 3,
    output_type: OutputType | None = None,
    plan_prompt: Prompt = PLANNING,
    step_prompt: Prompt | None = None,
    evaluate_prompt: Prompt = EVALUATION,
    answer_prompt: Prompt = ANSWER,
    fallback: bool = False,
) -> Net:
    """Plan, then execute step by step, and replan where need be.

    Plan-and-Solve (Wang et al. 2023, https://arxiv.org/abs/2305.04091) with tools, and a new plan
    when a step fails or changes the picture. Every step is a ReAct loop over the same memory, so
    it sees what earlier steps found; what it says streams as thoughts, the answer as text.

    Model calls, with n steps of c calls each, r of them replanned: 1 + r plans + n·c + n
    evaluations + 1 answer; a function such as :func:`tools_succeeded` evaluates for nothing.

    Args:
        llm: The model that does whatever is not given to another.
        plan_llm: Another model that plans.
        step: Another net for a step than :func:`react`.
        evaluate: Another model that judges each step; or a function of the memory and the step's
            result, sync or async, that returns whether it passes, or what is wrong with it.
        max_steps: At most so many steps in one plan.
        max_plans: At most so many plans; then the answer is given from what is known.
        output_type: What the answer must fit: a pydantic model, or any other type that pydantic
            validates; ``Result.output`` is the object.
        plan_prompt: What the planning model is told first.
        step_prompt: What the reasoning state of a step tells the model first.
        evaluate_prompt: What an evaluating model is told first.
        answer_prompt: What the answering model is told first.
        fallback: When a limit stops the run, ask for the best answer that can be given.

    Raises:
        StateDefinitionError: ``max_steps`` or ``max_plans`` below 1.
    """
    llm = as_llm(llm)
    if not is_count(max_plans):
        raise StateDefinitionError(f"max_plans must be at least 1, not {max_plans!r}")
    return Net(
        {
            PlanExecute.PLANNING: PlanningState(
                plan_llm or llm,
                on_plan=PlanExecute.EXECUTION,
                on_nothing=PlanExecute.ANSWER,
                max_steps=max_steps,
                prompt=plan_prompt,
            ),
            PlanExecute.EXECUTION: SubnetState(
                react(llm, prompt=step_prompt) if step is None else step,
                on_done=PlanExecute.EVALUATION,
                aside=True,
            ),
            PlanExecute.EVALUATION: StepEvaluationState(
                evaluate or llm,
                on_step=PlanExecute.EXECUTION,
                on_fail=PlanExecute.PLANNING,
                on_pass=PlanExecute.ANSWER,
                attempts=max_plans,
                prompt=evaluate_prompt,
                request=REQUEST,
            ),
            PlanExecute.ANSWER: AnswerState(
                llm, ask=True, output_type=output_type, prompt=answer_prompt
            ),
        },
        fallback=PlanExecute.ANSWER if fallback else None,
        name="plan_execute",
    )


class StepEvaluationState(EvaluationState):
    """Judge the step just done, and go on to the next one, to a new plan, or to the answer.

    Args:
        evaluate: As for :class:`EvaluationState`, like the other options.
        on_step: Where to go to do the next step of the plan.
        on_pass: Where to go when the plan is done.
        on_fail: Where to go for a new plan.
        attempts: After so many plans go to ``on_pass`` even if the last has failed.
    """

    def __init__(
        self,
        evaluate: LLM | Evaluate | str,
        *,
        on_step: Enum,
        on_pass: Enum,
        on_fail: Enum,
        attempts: int,
        prompt: Prompt = EVALUATION,
        request: str = REQUEST,
    ) -> None:
        super().__init__(
            evaluate,
            on_pass=on_pass,
            on_fail=on_fail,
            attempts=attempts,
            prompt=prompt,
            request=request,
        )
        self.on_step = on_step

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        """Judge; then note where the plan stands, and order what is to be done next."""
        async with closing(super().run(memory)) as items:
            async for item in items:
                yield item
        evaluation = Trials.read(memory).trials[-1].evaluation
        planned = Planned.read(memory)
        if evaluation.passed:
            planned.at += 1
            planned.ended = planned.at == len(planned.steps)
            await memory.update(planned.order())
        else:
            planned.why = f"Step {planned.at + 1} did not pass. {evaluation.feedback}".strip()
            planned.ended = planned.plans == self.attempts
        planned.write(memory)

    async def next_state(self, memory: Memory) -> Enum | None:
        """The next step, a new plan, or the answer."""
        planned = Planned.read(memory)
        if planned.ended:
            return self.on_pass
        return self.on_step if planned.why is None else self.on_fail

    def targets(self) -> tuple[Enum | None, ...]:
        """All three."""
        return (self.on_step, self.on_fail, self.on_pass)


async def tools_succeeded(memory: Memory, answer: str) -> str:
    """An evaluation without a model: a step fails if the last tool it called did.

    Returns:
        What the tool said; empty text if all is well.
    """
    turn = await memory.turn()
    start = max((i for i, m in enumerate(turn) if m.cause_by == PlanningState.__name__), default=0)
    results = [message for message in turn[start:] if message.role is Role.TOOL]
    failed = bool(results) and results[-1].is_error
    return f"{results[-1].name} failed: {results[-1].content}" if failed else ""
