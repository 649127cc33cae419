"""The most that an experiment can cost. Private."""

from __future__ import annotations

from typing import Any

from agent_brain.experiments.rule_based.llm import RuleBasedLLM
from agent_brain.experiments.settings import Settings
from agent_brain.experiments.task import Task
from agent_brain.limits import Limits
from agent_brain.states.models.llm import LLM


def token_price(llm: LLM | None) -> float | None:
    """Return US dollars for the dearest token of a model; None if its price is unknown."""
    if isinstance(llm, RuleBasedLLM):
        return max(llm.price) / 1e6
    if llm is None or getattr(llm, "rule_based", False):
        return 0.0
    from agent_brain.states.models.litellm.adapter import LiteLLM

    if not isinstance(llm, LiteLLM):
        return None
    from agent_brain.tools.litellm.setup import model_entry

    names = "input_cost_per_token", "output_cost_per_token"
    entry: dict[str, Any] = llm.params
    if not all(name in entry for name in names):  # litellm takes seconds to import
        entry = {**(model_entry(entry.get("base_model") or llm.model) or {}), **entry}
    known = [float(entry[name]) for name in names if isinstance(entry.get(name), int | float)]
    return max(known) if len(known) == len(names) else None


def most_of_case(task: Task, settings: Settings, price: float | None) -> float | None:
    """Return the most that a case can cost in US dollars; None if nothing bounds it.

    A budget may be exceeded by the calls that are in progress when it is reached.

    Args:
        task: The task.
        settings: The settings of the experiment.
        price: Of the dearest token of its model.
    """
    if price is None:
        return None
    if price == 0:
        return 0.0
    budget = task.max_cost or settings.case_max_cost
    turn = _most_of_turn(task.limits or settings.limits, price)
    turns = None if turn is None else turn * len(task.all_turns)
    known = [bound for bound in (budget, turns) if bound is not None]
    return min(known) if known else None


def _most_of_turn(limits: Limits, price: float) -> float | None:
    known = [] if limits.max_cost is None else [limits.max_cost]
    if limits.max_tokens is not None:
        known.append(limits.max_tokens * price)
    return min(known) if known else None
