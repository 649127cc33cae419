"""What a model call used."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and money; ``+`` adds two of them up.

    Attributes:
        input_tokens: Tokens that the model read.
        output_tokens: Tokens that it wrote.
        cost: US dollars; None if the price of a call is unknown.
        requests: Calls of a model.
        model: Which model, if one.
        cached_tokens: Those of ``input_tokens`` that were read from the provider's cache.
        reasoning_tokens: Those of ``output_tokens`` that were spent on reasoning.
        estimated: The tokens are an estimate, as the provider did not report them.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    requests: int = 1
    model: str | None = None
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    estimated: bool = False

    @property
    def total_tokens(self) -> int:
        """Tokens read and written."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            None if self.cost is None or other.cost is None else self.cost + other.cost,
            self.requests + other.requests,
            self.model if self.model == other.model else None,
            self.cached_tokens + other.cached_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.estimated or other.estimated,
        )
