"""What the runs of a case have used. Private."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from agent_brain.memories.base import Memory


@dataclass(slots=True)
class Tally:
    """What the runs of a case have used, also those that raised or were cut off."""

    turns: int = 0
    steps: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0
    judge_cost: float = 0.0
    counted: set[str] = field(default_factory=set)  # the IDs of runs

    def count(self, memory: Memory) -> None:
        """Count the last run of a memory, once."""
        control = memory.control
        if not control.run_id or control.run_id in self.counted:
            return
        self.counted.add(control.run_id)
        spent = control.spent
        self.steps += control.step
        self.model_calls += spent.requests
        self.tool_calls += spent.tool_calls
        self.input_tokens += spent.input_tokens
        self.output_tokens += spent.output_tokens
        self.cost += spent.cost
        self.unpriced += spent.unpriced

    def to_fields(self) -> dict[str, Any]:
        """Return the fields of a :class:`CaseResult`."""
        names = "turns steps model_calls tool_calls input_tokens output_tokens judge_cost".split()
        found: dict[str, Any] = {name: getattr(self, name) for name in names}
        return {**found, "cost": None if self.unpriced else self.cost}
