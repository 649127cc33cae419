"""Cells, and how they are named and found: by parts, by patterns, and as short as they can be."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from agent_brain.errors import ExperimentError


class Cell(NamedTuple):
    """A net, a memory and a model, by their names in the experiment."""

    net: str
    memory: str
    model: str

    def __str__(self) -> str:
        return "/".join(self)

    def fits(self, pattern: str | Cell) -> bool:
        """Return whether a pattern of the first parts fits, such as ``"*/vector"``."""
        parts = pattern if isinstance(pattern, Cell) else pattern.split("/", 2)
        pairs = zip(self, parts, strict=False)
        return all(name == part or fnmatchcase(name, part) for name, part in pairs)


def short_names(cells: Sequence[Cell]) -> dict[Cell, str]:
    """Return each cell's name without the parts that are the same in all cells."""
    varies = [index for index in range(3) if len({cell[index] for cell in cells}) > 1]
    return {cell: "/".join(cell[index] for index in varies or [0]) for cell in cells}


def find_cell(
    cells: Sequence[Cell], net: str | Cell, memory: str | None = None, model: str | None = None
) -> Cell:
    """Return the only cell with these parts.

    Args:
        cells: The cells to choose from.
        net: The name of the net; or a cell; or a text of several parts, such as
            ``"react/messages"`` or the name of the cell in the report.
        memory: The name of the memory; None if it need not be said.
        model: The name of the model; None if it need not be said.

    Raises:
        ExperimentError: No cell is meant, or several are.
    """
    names = short_names(cells)
    if isinstance(net, Cell):
        text, ways = str(net), [[cell for cell in cells if cell == net]]
    elif wrong := [part for part in (net, memory or "", model or "") if not isinstance(part, str)]:
        raise ExperimentError(f"{wrong[0]!r} is not a cell: give a text such as 'react/messages'")
    else:
        text = "/".join(part for part in (net, memory, model) if part)
        parts = (net, memory, model)
        ways = [
            [cell for cell in cells if str(cell) == text],
            [cell for cell in cells if _has(cell, parts)],
            [cell for cell in cells if names[cell] == text or f"{cell}/".startswith(f"{text}/")],
        ]
    for found in ways:
        if len(found) == 1:
            return found[0]
    problem = "several cells are" if any(ways) else "no cell is"
    raise ExperimentError(f"{problem} {text!r}; the cells are {', '.join(map(str, cells))}")


def _has(cell: Cell, parts: Sequence[str | None]) -> bool:
    return all(part is None or part == own for part, own in zip(parts, cell, strict=True))
