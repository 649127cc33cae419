"""What a call of litellm used: as the provider reports it, or estimated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_brain.memories.message import Message
from agent_brain.memories.views.tokens import message_tokens
from agent_brain.states.usage import Usage
from agent_brain.tools.base import BaseTool
from agent_brain.tools.litellm.setup import load_litellm, model_entry
from agent_brain.tools.text import count_tokens, to_compact_json

PRICES = _IN, _OUT = "input_cost_per_token", "output_cost_per_token"
"""Prices of the caller's own. litellm would apply them to all calls of the model in the process."""


@dataclass(frozen=True, slots=True)
class Meter:
    """Measures the calls of one model.

    Attributes:
        model: Its name.
        params: Parameters of its calls; ``base_model`` and prices among them count.
    """

    model: str
    params: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def is_plausible(usage: Any) -> bool:
        """Whether what the provider reported can be counted: something, and nothing below zero."""
        counts = (usage.prompt_tokens or 0, usage.completion_tokens or 0)
        return any(counts) and min(counts) >= 0

    def reported(self, usage: Any) -> Usage:
        """What the provider reported, as litellm gives it."""
        return Usage(
            input_tokens=usage.prompt_tokens or 0,
            output_tokens=usage.completion_tokens or 0,
            cost=self._cost(usage),
            model=self.model,
            cached_tokens=_detail(usage, "prompt_tokens_details", "cached_tokens"),
            reasoning_tokens=_detail(usage, "completion_tokens_details", "reasoning_tokens"),
        )

    def estimated(
        self, messages: Sequence[Message], tools: Sequence[BaseTool], written: Sequence[str]
    ) -> Usage:
        """What a call may have used whose provider does not say.

        Args:
            messages: What it was sent.
            tools: What it was offered.
            written: What it answered.
        """
        read = sum(message_tokens(message, count_tokens) for message in messages)
        read += sum(count_tokens(to_compact_json(tool.to_dict())) for tool in tools)
        wrote = sum(map(count_tokens, written))
        usage = load_litellm().Usage(
            prompt_tokens=read, completion_tokens=wrote, total_tokens=read + wrote
        )
        return Usage(read, wrote, self._cost(usage), model=self.model, estimated=True)

    def failed(self) -> Usage:
        """What a call used that failed before it gave anything out: providers charge nothing."""
        return Usage(cost=0.0, model=self.model)

    def _cost(self, usage: Any) -> float | None:
        """US dollars: by the prices given, as the provider says, or by litellm's table."""
        model = self.params.get("base_model") or self.model
        entry = model_entry(model)
        if _IN in self.params or _OUT in self.params:
            return _priced(usage, {**(entry or {}), **self.params})
        stated = getattr(usage, "cost", None)  # litellm states one of its own, by its table
        if isinstance(stated, int | float):
            return float(stated)
        if entry is None:
            return None
        try:
            cost = float(sum(load_litellm().cost_per_token(model=model, usage_object=usage)))
        except Exception:  # a model without prices: litellm raises what it likes
            return None
        return cost if cost or _IN in entry else None  # 0 for lack of a price is no price


def _priced(usage: Any, prices: Mapping[str, Any]) -> float | None:
    read, wrote = prices.get(_IN), prices.get(_OUT)
    if read is None or wrote is None:
        return None  # half a price is no price
    return float((usage.prompt_tokens or 0) * read + (usage.completion_tokens or 0) * wrote)


def _detail(usage: Any, group: str, name: str) -> int:
    return getattr(getattr(usage, group, None), name, None) or 0
