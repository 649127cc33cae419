"""What an experiment would do, and the most that it can cost, before it does it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agent_brain.common.text import count_of
from agent_brain.experiments.case_plan import Case
from agent_brain.experiments.cells import Cell
from agent_brain.experiments.rule_based.llm import RuleBasedLLM
from agent_brain.experiments.settings import Settings
from agent_brain.experiments.task import Task
from agent_brain.limits import Limits
from agent_brain.states.models.llm import LLM


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What an experiment would do.

    ::

        print(experiment.plan("results"))

    Attributes:
        cells: The chosen cells.
        cases: All cases of these, in the order in which they are run.
        done: How many of them have a result in the folder.
        max_cost: The most that the cases without a result can cost in US dollars, without judges;
            None if nothing bounds it, or a price is unknown. A budget may be exceeded by the calls
            that are in progress when it is reached.
        unpriced: The models whose prices are unknown.
    """

    cells: list[Cell]
    cases: list[Case]
    done: int
    max_cost: float | None
    unpriced: list[str]

    def __str__(self) -> str:
        per_cell = len(self.cases) // max(len(self.cells), 1)
        width = max((len(str(cell)) for cell in self.cells), default=0)
        lines = [f"{cell!s:<{width}}  {count_of(per_cell, 'case')}" for cell in self.cells]
        left = len(self.cases) - self.done
        lines.append(f"{count_of(len(self.cases), 'case')}: {self.done} done, {left} to run")
        lines.append(self._cost())
        return "\n".join(lines)

    def _cost(self) -> str:
        if self.max_cost is not None:
            return f"At most ${self.max_cost:.2f}"
        if self.unpriced:
            return f"The cost is unknown: no price of {', '.join(self.unpriced)}"
        return "Nothing bounds the cost of a case: give case_max_cost= or Limits(max_tokens=…)"


def token_price(llm: LLM | None) -> float | None:
    """Return US dollars for the dearest token of a model; None if its price is unknown."""
    if isinstance(llm, RuleBasedLLM):
        return max(llm.price) / 1e6
    if llm is None or getattr(llm, "rule_based", False):
        return 0.0
    from agent_brain.states.models.litellm.adapter import LiteLLM

    if not isinstance(llm, LiteLLM):
        return None
    from agent_brain.common.litellm import model_entry

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
