"""A Brain as an agent of Inspect."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import Any, TypeAlias

from inspect_ai.agent import Agent, AgentState, agent
from inspect_ai.event import ToolEvent
from inspect_ai.log import transcript
from inspect_ai.model import ChatCompletionChoice, ChatMessageAssistant, ModelOutput
from inspect_ai.model import StopReason as InspectReason
from inspect_ai.tool import ToolCallError
from inspect_ai.util import span

from agent_brain.brain import Brain
from agent_brain.common.text import to_json_data
from agent_brain.errors import ExperimentError
from agent_brain.experiments.inspect.messages import from_inspect, to_inspect
from agent_brain.limits import WAITING, StopReason
from agent_brain.memories.message import Message, Role
from agent_brain.result import Result
from agent_brain.states.events import (
    ActionFinished,
    ActionStarted,
    AgentEvent,
    StateEntered,
    StateExited,
)

MakeBrain: TypeAlias = Callable[[], Brain[Any]]
_REASONS: Mapping[str, InspectReason] = {
    StopReason.DONE: "stop",
    StopReason.MAX_TOKENS: "max_tokens",
}


@agent
def brain_agent(make_brain: MakeBrain) -> Agent:
    """Return an agent of Inspect that runs a Brain: a solver of its tasks.

    The last message of the user is the goal of the run; those before it are put into the memory.
    Inspect's transcript has a span for each state and an event for each tool call, and, with
    :class:`InspectLLM`, the model calls. Why the run ended, its steps and its usage are in the
    metadata of the output. An error of the run is the error of the sample.

    Args:
        make_brain: Makes the Brain of a sample: each call a new one, with an empty memory.

    Raises:
        ExperimentError: While running: there is no message of a user, or the run waits for a
            person.
    """

    async def run(state: AgentState) -> AgentState:
        """Run the Brain on the conversation."""
        before, goal = _split([from_inspect(message) for message in state.messages])
        async with make_brain() as brain:
            if before:
                await brain.memory.update(before)
            known = {goal.id, *(message.id for message in before)}
            try:
                result = await _run(brain, goal)
            finally:
                if brain.memory.control.run_id is not None:
                    turn = await brain.memory.turn()
                    state.messages.extend(to_inspect(m) for m in turn if m.id not in known)
        state.output = _output(result, state.output.model)
        if not state.messages or state.messages[-1].text != result.answer:
            state.messages.append(state.output.message)
        return state

    return run


def _split(messages: Sequence[Message]) -> tuple[list[Message], Message]:
    """Return what is before the last message of the user, and that message."""
    users = [at for at, message in enumerate(messages) if message.role is Role.USER]
    if not users:
        raise ExperimentError("The sample has no message of a user, so the Brain has no goal")
    return [*messages[: users[-1]], *messages[users[-1] + 1 :]], messages[users[-1]]


async def _run(brain: Brain[Any], goal: Message) -> Result[Any]:
    """Run the Brain; write what happens into Inspect's transcript."""
    async with AsyncExitStack() as states, brain.stream(goal) as run:
        calls: dict[str, ToolEvent] = {}
        async for event in run:
            if isinstance(event, StateEntered) and not event.at.path:
                await states.enter_async_context(span(event.at.state or "", type="state"))
            elif isinstance(event, StateExited) and not event.at.path:
                await states.aclose()
            else:
                _note_call(event, calls)
        result = run.result
    if result.stop_reason in WAITING:
        raise ExperimentError(
            f"The run waits for {result.stop_reason.value}, and nobody is there to decide: give "
            "the Brain tools that need no approval, and a net that asks nothing"
        )
    return result


def _note_call(event: AgentEvent, calls: dict[str, ToolEvent]) -> None:
    if isinstance(event, ActionStarted):
        action = event.action
        call = ToolEvent(id=action.id, function=action.name, arguments=dict(action.args))
        call.pending = True
        calls[action.id] = call
        transcript()._event(call)
    elif isinstance(event, ActionFinished) and (known := calls.pop(event.action.id, None)):
        result = event.result
        known.result = result.content
        known.error = ToolCallError("unknown", result.content) if result.is_error else None
        known.completed, known.pending = datetime.now(UTC), None
        transcript()._event_updated(known)


def _output(result: Result[Any], model: str) -> ModelOutput:
    """Return the result as the output of an agent."""
    return ModelOutput(
        model=model,
        choices=[
            ChatCompletionChoice(
                message=ChatMessageAssistant(content=result.answer, source="generate"),
                stop_reason=_REASONS.get(result.stop_reason, "unknown"),
            )
        ],
        metadata={
            "stop_reason": result.stop_reason.value,
            "steps": result.steps,
            "usage": to_json_data(result.usage),
            "output": to_json_data(result.output),
            "run_id": result.run_id,
        },
    )
