"""What a model call used."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and money; ``+`` adds two of them up.

    Attributes:
        input_tokens: Tokens that the model read.
        output_tokens: Tokens that it wrote.
        cost: US dollars, as far as the prices are known.
        requests: Calls of a model.
        model: Which model, if one.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    requests: int = 1
    model: str | None = None

    @property
    def total_tokens(self) -> int:
        """Tokens read and written."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cost + other.cost,
            self.requests + other.requests,
            self.model if self.model == other.model else None,
        )
