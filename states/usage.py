"""The usage of model calls."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_brain.memories.runs.counts import Spent

_AS_COST = -1  # not given: what ``cost`` says


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and cost of one or more model calls.

    Example::

        total = Usage(1200, 80, cost=0.004) + Usage(1300, 60, cost=0.005)
        assert (total.requests, total.total_tokens) == (2, 2640)

    Attributes:
        input_tokens: Tokens read by the model.
        output_tokens: Tokens written by the model.
        cost: US dollars; None if a price is unknown.
        requests: Number of model calls.
        model: Name of the model; of one call the model that answered, also if it is a fallback;
            None if there were several calls of several models.
        cached_tokens: Input tokens that were read from the provider's cache.
        reasoning_tokens: Output tokens that were spent on reasoning.
        estimated: Whether the tokens are an estimate, as the provider did not report them.
        known_cost: US dollars, for the calls whose price is known; by default ``cost``, or 0.
        unpriced_requests: Model calls whose price is unknown; by default all or none, as ``cost``
            says.

    Raises:
        ValueError: A count is not a whole number of at least 0, or the cost is not a number of at
            least 0.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    requests: int = 1
    model: str | None = None
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    estimated: bool = False
    known_cost: float = field(default=_AS_COST, kw_only=True)
    unpriced_requests: int = field(default=_AS_COST, kw_only=True)

    def __post_init__(self) -> None:
        for name in _COUNTS:
            value = getattr(self, name)
            if not isinstance(value, int) or value < 0:
                raise ValueError(
                    f"Usage({name}={value!r}): give a whole number of at least 0, 0 if it is "
                    "unknown"
                )
        cost = self.cost
        if cost is not None and not (isinstance(cost, int | float) and cost >= 0):
            raise ValueError(
                f"Usage(cost={cost!r}): give US dollars, at least 0, or None if unknown"
            )
        if self.known_cost == _AS_COST:
            object.__setattr__(self, "known_cost", cost if cost and cost < inf else 0.0)
        if self.unpriced_requests == _AS_COST:
            object.__setattr__(self, "unpriced_requests", self.requests if cost is None else 0)

    @classmethod
    def of(cls, spent: Spent) -> Usage:
        """Return what a run has spent as the usage of all its model calls."""
        return cls(
            spent.input_tokens,
            spent.output_tokens,
            None if spent.unpriced else spent.cost,
            spent.requests,
            cached_tokens=spent.cached_tokens,
            reasoning_tokens=spent.reasoning_tokens,
            estimated=spent.estimated > 0,
            known_cost=spent.cost,
            unpriced_requests=spent.unpriced,
        )

    @property
    def total_tokens(self) -> int:
        """The sum of input and output tokens."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        known_cost = self.known_cost + other.known_cost
        unpriced = self.unpriced_requests + other.unpriced_requests
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            None if unpriced else known_cost,
            self.requests + other.requests,
            self.model if self.model == other.model else None,
            self.cached_tokens + other.cached_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.estimated or other.estimated,
            known_cost=known_cost,
            unpriced_requests=unpriced,
        )

    def followed_by(self, later: Usage) -> Usage:
        """Return the sum for one model call, whose answer is of the model of ``later``."""
        total = self + later
        return total if total.model else replace(total, model=later.model or self.model)


_COUNTS = ("input_tokens", "output_tokens", "requests", "cached_tokens", "reasoning_tokens")

NOTHING = Usage(cost=0.0, requests=0)
"""What is used where no model is called."""
