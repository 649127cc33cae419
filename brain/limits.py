"""How far a run may go."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum

from agent_brain.errors import BrainDefinitionError
from agent_brain.memories.control import Control


class StopReason(StrEnum):
    """Why a run ended."""

    DONE = "done"
    MAX_STEPS = "max_steps"
    MAX_TOKENS = "max_tokens"
    MAX_COST = "max_cost"
    TIMEOUT = "timeout"
    STUCK = "stuck"
    CANCELLED = "cancelled"
    FAILED = "failed"
    APPROVAL = "approval"
    INPUT = "input"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Ends a run that goes on for too long; what was done so far is kept.

    Steps, tokens and cost are checked between steps, the time at any moment. A resumed run goes on
    counting where it stood.

    Attributes:
        max_steps: States entered, run and left. A ReAct round of thinking and acting is two.
        max_tokens: Tokens read and written by models.
        max_cost: US dollars, as far as the models' prices are known.
        timeout: Seconds of wall clock; running model calls and tools are cancelled when it is over.

    Raises:
        BrainDefinitionError: A limit that is not above zero.
    """

    max_steps: int | None = 100
    max_tokens: int | None = None
    max_cost: float | None = None
    timeout: float | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and not value > 0:
                raise BrainDefinitionError(
                    f"Limits({field.name}={value!r}): a limit is above 0, or None for no limit"
                )

    def reached(self, control: Control) -> StopReason | None:
        """The limit that ``control`` has reached, if any, time aside."""
        spent = control.spent
        if self.max_steps is not None and control.step >= self.max_steps:
            return StopReason.MAX_STEPS
        if self.max_tokens is not None:
            if spent.input_tokens + spent.output_tokens >= self.max_tokens:
                return StopReason.MAX_TOKENS
        if self.max_cost is not None and spent.cost >= self.max_cost:
            return StopReason.MAX_COST
        return None
