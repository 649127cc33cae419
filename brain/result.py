"""The result of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic

from typing_extensions import TypeVar

from agent_brain.limits import StopReason
from agent_brain.memories.message import Attachment, Message
from agent_brain.memories.runs.turns import StoredResult, is_answer
from agent_brain.states.usage import Usage
from agent_brain.tools.action import Action

if TYPE_CHECKING:
    from agent_brain.nets.net import Net

OutputT_co = TypeVar("OutputT_co", covariant=True, default=Any)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(Generic[OutputT_co]):
    """The result of a run.

    Attributes:
        answer: The text of the last state that said anything, without thoughts. It may be
            incomplete unless ``stop_reason`` is ``"done"``.
        output: The validated object, if the net makes one (``output_type=``); None if the run ended
            before it.
        stop_reason: Why the run ended.
        steps: Number of steps.
        usage: Tokens and cost of all its model calls.
        messages: This turn's goal and what was recorded since, in order.
        run_id: The ID of the run.
        finish_reason: Why the model response that gave the answer ended: ``"length"`` and
            ``"content_filter"`` mark an answer that is not complete; None if the provider did not
            say, or no model gave it.
        wake_at: When a run that sleeps has to be resumed (aware, UTC).
        approvals: The calls that wait for a person's decision.
        questions: The questions that wait for a person's answer, by their IDs.
    """

    answer: str
    output: OutputT_co
    stop_reason: StopReason
    steps: int
    usage: Usage
    messages: list[Message]
    run_id: str
    finish_reason: str | None = None
    wake_at: datetime | None = None
    approvals: Sequence[Action] = ()
    questions: Mapping[str, str] = field(default_factory=dict)

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """The pictures that a model has made for the answer."""
        made = (message.attachments for message in self.messages[-1:] if is_answer(message))
        return next(made, ())


def empty_result(run_id: str, reason: StopReason, usage: Usage, answer: str = "") -> Result[Any]:
    """Return a result without anything from a memory."""
    return Result(
        answer=answer,
        output=None,
        stop_reason=reason,
        steps=0,
        usage=usage,
        messages=[],
        run_id=run_id,
    )


def as_result(stored: StoredResult, net: Net) -> Result[Any]:
    """Return the result of a run of ``net`` that a memory has stored."""
    same = {field.name: getattr(stored, field.name) for field in fields(Result)}
    changed = {
        "output": net.restore_output(stored.output, stored.output_class),
        "stop_reason": StopReason(stored.stop_reason),
        "usage": Usage.of(stored.usage),
    }
    return Result(**(same | changed))
