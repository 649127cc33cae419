"""What came of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic

from typing_extensions import TypeVar

from agent_brain.limits import StopReason
from agent_brain.memories.message import Message
from agent_brain.states.usage import Usage

OutputT_co = TypeVar("OutputT_co", covariant=True, default=Any)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(Generic[OutputT_co]):
    """How a run ended, and with what.

    Attributes:
        answer: What the last state that said anything said, without its thoughts. Complete when
            ``stop_reason`` is ``"done"``, as far as it came otherwise.
        output: The validated object, if the net makes one (``output_type=``); None if the run ended
            before it.
        stop_reason: Why the run ended.
        steps: States entered, run and left.
        usage: Tokens and cost of all its model calls.
        messages: This turn's goal and what was recorded since, in order.
        run_id: Which run.
        finish_reason: Why the model response that gave the answer ended: ``"length"`` and
            ``"content_filter"`` mark an answer that is not complete; None if the provider did not
            say, or no model gave it.
    """

    answer: str
    output: OutputT_co
    stop_reason: StopReason
    steps: int
    usage: Usage
    messages: list[Message]
    run_id: str
    finish_reason: str | None = None
