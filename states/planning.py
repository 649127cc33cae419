"""A state that makes and revises a plan."""

from __future__ import annotations

from collections.abc import AsyncIterator
from enum import Enum

from pydantic import BaseModel, Field

from agent_brain.common.values import check_count
from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message
from agent_brain.states import prompts
from agent_brain.states.base import Choose, RoutedState, Target
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.model_request import StructuredRequest, build_messages
from agent_brain.states.models.llm import LLM, Thought
from agent_brain.states.models.resolve import as_llm
from agent_brain.states.session_state import Notes
from agent_brain.states.work import StreamItem

PLANNING = (
    "You plan how to reach the user's goal with these tools, and do not carry it out: {tools}\n"
    "Write the fewest steps that get there. Each is a task for someone who sees the conversation "
    "so far, whose result is needed later or is the answer."
)
REQUEST = "Plan how to reach my goal: at most {most} steps."
AGAIN = (
    "That went otherwise than planned. {why}\nMake a new plan from here: what is still to be done, "
    "in at most {most} steps; none if the goal can be answered already, or cannot be reached."
)
STEP = "Now do step {number} of the plan, and only that: {task}\nEnd with its result."


class Plan(BaseModel, frozen=True):
    """The steps to take, in order."""

    steps: list[str] = Field(description="tasks, in the order in which they are to be done")


class Planned(Notes):
    """The plan in progress.

    Attributes:
        steps: The steps.
        at: Index of the current step.
        plans: Number of plans made so far.
        why: Why a new plan is needed; None if it is not.
    """

    steps: list[str] = Field(default_factory=list)
    at: int = 0
    plans: int = 0
    why: str | None = None

    def order(self) -> list[Message]:
        """Return the message that asks for the current step, if one is left."""
        if self.at >= len(self.steps):
            return []
        text = STEP.replace("{number}", str(self.at + 1)).replace("{task}", self.steps[self.at])
        return [Message.user(text, cause_by="PlanningState")]


class PlanningState(RoutedState):
    """Make a plan, or a new one if the old one has failed.

    The plan is recorded as the assistant's message, followed by a user's message that asks for its
    first step; ``Planned`` holds the progress.

    Args:
        llm: The model that plans.
        on_plan: The next state, which carries out the plan.
        on_nothing: The next state if nothing is left to do; None ends the run.
        choose: Returns the next state in place of ``on_nothing`` (:class:`RoutedState`).
        max_steps: Maximum number of steps in a plan.
        prompt: The system prompt; ``{tools}`` is replaced by the available tools.

    Raises:
        StateDefinitionError: ``max_steps`` below 1.
        MalformedOutputError: While running: no plan after a correction.
    """

    def __init__(
        self,
        llm: LLM | str,
        *,
        on_plan: Enum,
        on_nothing: Enum | None = None,
        choose: Choose | None = None,
        max_steps: int = 10,
        prompt: prompts.Prompt = PLANNING,
    ) -> None:
        super().__init__(on_nothing, choose)
        check_count(StateDefinitionError, "max_steps", max_steps)
        self.llm = as_llm(llm)
        self.on_plan = on_plan
        self.max_steps = max_steps
        self.prompt = prompts.checked(prompt)

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        """Request a plan, stream it as a thought, and record it."""
        notes = Planned.load(memory)
        request = REQUEST if notes.why is None else AGAIN.replace("{why}", notes.why)
        request = request.replace("{most}", str(self.max_steps))
        messages = await build_messages(self.llm, memory, self.prompt, request)
        question = StructuredRequest(self.llm, messages, Plan, check=self._too_long)
        yield question
        steps = question.output.steps
        numbered = "\n".join(f"{number}. {task}" for number, task in enumerate(steps, 1))
        text = f"Plan:\n{numbered}" if steps else "Nothing is left to do."
        yield Thought(text + "\n")
        planned = Planned(steps=steps, plans=notes.plans + 1, ended=not steps)
        plan = Message.assistant(text, cause_by=type(self).__name__, metadata={"thought": True})
        await memory.update([plan, *planned.order()])
        planned.write(memory)

    def _too_long(self, plan: Plan) -> str | None:
        if len(plan.steps) <= self.max_steps:
            return None
        return f"it has {len(plan.steps)} steps, and at most {self.max_steps} are allowed"

    async def next_state(self, memory: Memory) -> Enum | None:
        """Return ``on_plan``, or ``on_nothing`` if the plan is empty."""
        return self.on_plan if Planned.read(memory).steps else await super().next_state(memory)

    def targets(self) -> tuple[Target, ...]:
        """Return both."""
        return (self.on_plan, *super().targets())
