"""What a run has used: steps, tokens, cost, calls and time."""

from __future__ import annotations

from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, Self

from agent_brain.memories.runs.work import EMBEDDING


@dataclass(slots=True)
class Spent:
    """What a run has used so far. A resumed run continues to count from it.

    Attributes:
        input_tokens: Tokens read by models.
        output_tokens: Tokens written by models.
        cost: US dollars, for the calls whose price is known.
        unpriced: Model calls whose price is unknown.
        estimated: Model calls whose tokens are an estimate.
        cached_tokens: Those of the input tokens that were read from a provider's cache.
        reasoning_tokens: Those of the output tokens that were spent on reasoning.
        requests: Model calls.
        embeddings: Those of the model calls that embedded texts.
        tool_calls: Tool calls that were answered, also with an error.
        seconds: Wall clock, without the time between a stop and a resume.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0
    estimated: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    requests: int = 0
    tool_calls: int = 0
    seconds: float = 0.0
    embeddings: int = 0

    def add(self, usage: Any, purpose: str | None = None) -> None:
        """Add what a model call used: an :class:`agent_brain.states.Usage`.

        Args:
            usage: What it used.
            purpose: What the memory made it for; None for a call of a state.
        """
        self.requests += usage.requests
        if purpose == EMBEDDING:
            self.embeddings += usage.requests
        self.input_tokens += usage.input_tokens
        self.output_tokens += usage.output_tokens
        if usage.cost is None:
            self.unpriced += usage.requests
        else:
            self.cost += usage.cost
        if usage.estimated:
            self.estimated += usage.requests
        self.cached_tokens += usage.cached_tokens
        self.reasoning_tokens += usage.reasoning_tokens

    def as_data(self) -> dict[str, Any]:
        """Return the values by name, without those that a subclass adds."""
        return dict(zip(SPENT, values_of(self), strict=True))

    def plus(self, other: Self) -> Self:
        """Return the sum of both."""
        names = [each.name for each in fields(self)]
        return type(self)(*(getattr(self, name) + getattr(other, name) for name in names))


SPENT = tuple(field.name for field in fields(Spent))
values_of = attrgetter(*SPENT)


@dataclass(slots=True)
class Counts(Spent):
    """What a branch has used so far, with its own branches.

    Attributes:
        step: The steps that it has completed.
    """

    step: int = 0

    def beyond(self, other: Counts) -> Counts:
        """Return what this has more than ``other``."""
        more = ((getattr(self, f.name), getattr(other, f.name)) for f in fields(Counts))
        return Counts(*(max(own - known, 0) for own, known in more))
