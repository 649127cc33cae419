"""Plan and execute: make a plan, execute its steps, and replan if a step fails."""

from __future__ import annotations

from collections.abc import AsyncIterator
from enum import Enum

from agent_brain.common.values import check_count
from agent_brain.memories.base import Memory
from agent_brain.memories.message import Role
from agent_brain.nets.composition import NetLike, SubnetState
from agent_brain.nets.library.react import react
from agent_brain.nets.net import Net
from agent_brain.states.answering import AnswerState
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.evaluation import Evaluate, EvaluationState, Trials
from agent_brain.states.models.llm import LLM
from agent_brain.states.models.resolve import as_llm
from agent_brain.states.output_types import OutputType
from agent_brain.states.planning import PLANNING, Planned, PlanningState
from agent_brain.states.prompts import ANSWER, Prompt
from agent_brain.states.work import StreamItem, closing

EVALUATION = (
    "You evaluate the execution of a plan. Judge only the last step: it passes if it was done and "
    "its result leaves the rest of the plan valid. If it failed, or its result makes the plan "
    "obsolete, say how the plan should change."
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
    """Plan, execute the plan step by step, and replan if necessary.

    Plan-and-Solve (Wang et al. 2023, https://arxiv.org/abs/2305.04091) with tools, and a new plan
    when a step fails or makes the plan obsolete. Each step is a ReAct loop over the same memory, so
    it sees the results of earlier steps. Steps stream as thoughts, the answer as text.

    Model calls for n steps of c calls each, r of which are replanned: 1 + r plans + n·c + n
    evaluations + 1 answer; a function such as :func:`tools_succeeded` evaluates without a call.

    Args:
        llm: The model that does everything else.
        plan_llm: Another model for planning.
        step: A net for the steps. Default: :func:`react`.
        evaluate: Another model that evaluates each step; or a function of the memory and the step's
            result, sync or async, that returns whether it passes, or what is wrong.
        max_steps: The maximum number of steps in a plan.
        max_plans: The maximum number of plans; after the last, the answer uses what is known.
        output_type: The type of the answer, as in :func:`react`.
        plan_prompt: System prompt of the planning.
        step_prompt: System prompt of the steps.
        evaluate_prompt: System prompt of the evaluation.
        answer_prompt: System prompt of the answer.
        fallback: Whether to ask for the best possible answer when a limit stops the run.

    Raises:
        StateDefinitionError: ``max_steps`` or ``max_plans`` is less than 1.
    """
    llm = as_llm(llm)
    check_count(StateDefinitionError, "max_plans", max_plans)
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
                as_thoughts=True,
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
    """Evaluate a step, then continue with the next one, a new plan, or the answer."""

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
            feedback=None,  # the next plan is told why
        )
        self.on_step = on_step

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        """Evaluate, update the progress of the plan, and request the next step."""
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
        """Return the state for the next step, a new plan, or the answer."""
        planned = Planned.read(memory)
        if planned.ended:
            return self.on_pass
        return self.on_step if planned.why is None else self.on_fail

    def targets(self) -> tuple[Enum | None, ...]:
        """Return all three targets."""
        return (self.on_step, self.on_fail, self.on_pass)


async def tools_succeeded(memory: Memory, answer: str) -> str:
    """Evaluate a step without a model: it fails if its last tool call failed.

    Returns:
        The error of the tool; empty text if there is none.
    """
    turn = await memory.turn()
    start = max((i for i, m in enumerate(turn) if m.cause_by == PlanningState.__name__), default=0)
    results = [message for message in turn[start:] if message.role is Role.TOOL]
    failed = bool(results) and results[-1].is_error
    return f"{results[-1].name} failed: {results[-1].content}" if failed else ""
