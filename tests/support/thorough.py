"""What everybody runs, and what CI runs besides."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest

THOROUGH = bool(os.environ.get("CI"))
"""Whether everything is run: each test on both event loops, and tests marked ``thorough``."""


def thorough(values: Iterable[Any]) -> list[Any]:
    """Return parameters of a test that only CI tries.

    Args:
        values: What :func:`pytest.mark.parametrize` takes for each; a tuple is for several names.
    """
    return [
        pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.thorough)
        for value in values
    ]


def first_of(values: Iterable[Any], *names: Any) -> list[Any]:
    """Return all values, of which others than ``names`` are tried by CI only."""
    values = list(values)
    assert set(names) <= set(values)
    return [*names, *thorough(value for value in values if value not in names)]


def examples(count: int) -> int:
    """Return how many examples of Hypothesis are tried: ``count`` by CI, and otherwise a quarter."""
    return count if THOROUGH else max(count // 4, 8)
