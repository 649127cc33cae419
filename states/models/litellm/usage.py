"""The usage of a call through litellm: reported by the provider, or estimated."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from agent_brain.common.litellm.setup import load_litellm, model_entry
from agent_brain.common.text import count_tokens
from agent_brain.memories.message import Message
from agent_brain.memories.views.tokens import request_tokens
from agent_brain.states.usage import Usage
from agent_brain.tools.base import BaseTool

PRICES = _IN, _OUT = "input_cost_per_token", "output_cost_per_token"
"""Prices given by the user. litellm would apply them to all calls of the model in the process."""


def is_plausible(usage: Any) -> bool:
    """Return whether a reported usage can be counted: not empty, and nothing negative."""
    counts = (usage.prompt_tokens or 0, usage.completion_tokens or 0)
    return any(counts) and min(counts) >= 0


def reported_usage(model: str, params: Mapping[str, Any], usage: Any) -> Usage:
    """Return the usage that the provider reported, in litellm's form.

    Args:
        model: Name of the model.
        params: Parameters of the call, which may contain ``base_model`` and prices.
        usage: The usage.
    """
    return Usage(
        input_tokens=usage.prompt_tokens or 0,
        output_tokens=usage.completion_tokens or 0,
        cost=_cost(model, params, usage),
        model=model,
        cached_tokens=_detail(usage, "prompt_tokens_details", "cached_tokens"),
        reasoning_tokens=_detail(usage, "completion_tokens_details", "reasoning_tokens"),
    )


def estimated_usage(
    model: str,
    params: Mapping[str, Any],
    messages: Sequence[Message],
    tools: Sequence[BaseTool],
    written: Sequence[str],
) -> Usage:
    """Estimate the usage of a call with ``messages`` and ``tools`` whose response is ``written``.

    The other parameters are those of :func:`reported_usage`.
    """
    read = request_tokens(messages, tools)
    wrote = sum(map(count_tokens, written))
    usage = load_litellm().Usage(
        prompt_tokens=read, completion_tokens=wrote, total_tokens=read + wrote
    )
    return Usage(read, wrote, _cost(model, params, usage), model=model, estimated=True)


def _cost(model: str, params: Mapping[str, Any], usage: Any) -> float | None:
    """Return US dollars: by the given prices, as reported, or by litellm's table."""
    model = params.get("base_model") or model
    entry = model_entry(model)
    if _IN in params or _OUT in params:
        prices = {**(entry or {}), **params}
        if prices.get(_IN) is None or prices.get(_OUT) is None:
            return None  # one price is not enough
        read, wrote = usage.prompt_tokens or 0, usage.completion_tokens or 0
        return float(read * prices[_IN] + wrote * prices[_OUT])
    stated = getattr(usage, "cost", None)
    if isinstance(stated, int | float) and 0 <= stated < math.inf:
        return float(stated)
    if entry is None:
        return None
    try:
        cost = float(sum(load_litellm().cost_per_token(model=model, usage_object=usage)))
    except Exception:  # a model without prices: litellm raises anything
        return None
    return cost if cost or _IN in entry else None  # 0 for lack of a price is not a price


def _detail(usage: Any, group: str, name: str) -> int:
    return max(0, getattr(getattr(usage, group, None), name, None) or 0)
