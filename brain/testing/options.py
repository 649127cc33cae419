"""The limits of a run as keyword options, with their types."""

from __future__ import annotations

from typing import TypedDict


class LimitOptions(TypedDict, total=False):
    """The fields of :class:`~agent_brain.Limits`."""

    max_steps: int | None
    max_tokens: int | None
    max_cost: float | None
    max_tool_calls: int | None
    timeout: float | None
    strict: bool
