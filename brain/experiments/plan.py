"""What an experiment would do, before it does it."""

from __future__ import annotations

from dataclasses import dataclass

from agent_brain.experiments.case import Cell
from agent_brain.experiments.case_plan import Case
from agent_brain.experiments.report.words import many


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
        lines = [f"{cell!s:<{width}}  {many(per_cell, 'case')}" for cell in self.cells]
        left = len(self.cases) - self.done
        lines.append(f"{many(len(self.cases), 'case')}: {self.done} done, {left} to run")
        lines.append(self._cost())
        return "\n".join(lines)

    def _cost(self) -> str:
        if self.max_cost is not None:
            return f"At most ${self.max_cost:.2f}"
        if self.unpriced:
            return f"The cost is unknown: no price of {', '.join(self.unpriced)}"
        return "Nothing bounds the cost of a case: give case_max_cost= or Limits(max_tokens=…)"
