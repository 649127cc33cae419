"""Checks of options of memories."""

from __future__ import annotations

import math

from agent_brain.common.values import is_count
from agent_brain.memories.errors import MemoryDefinitionError


def whole_number(name: str, value: int | None, *, least: int = 1, optional: bool = False) -> None:
    """Check that an option is a whole number.

    Args:
        name: The name of the option.
        value: Its value.
        least: The smallest number that is allowed.
        optional: Whether it may be None.

    Raises:
        MemoryDefinitionError: ``value`` is something else.
    """
    if value is None and optional:
        return
    if not is_count(value, least=least):
        none = ", or None" if optional else ""
        raise MemoryDefinitionError(
            f"{name}= must be a whole number, at least {least}{none}: not {value!r}"
        )


def share(name: str, value: float) -> None:
    """Check that an option is greater than 0 and at most 1.

    Raises:
        MemoryDefinitionError: ``value`` is something else.
    """
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or math.isnan(value) or not 0 < value <= 1:
        raise MemoryDefinitionError(
            f"{name}= must be a share, more than 0 and at most 1: not {value!r}"
        )
