"""Functions that make what an experiment compares, and whether they can be called. Private."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from agent_brain.errors import ExperimentError


def parameters_of(where: str, function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters of a function by name.

    Raises:
        ExperimentError: It does not tell them, as some that are built into Python.
    """
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError) as error:
        raise ExperimentError(f"{where}={function!r}: give a function of your own") from error


def check_call(where: str, function: Callable[..., Any], *args: object, **options: object) -> None:
    """Check that a function takes these arguments.

    Raises:
        ExperimentError: It does not.
    """
    try:
        inspect.signature(function).bind(*args, **options)
    except TypeError as error:
        name = getattr(function, "__qualname__", repr(function)).rpartition(".")[2]
        raise ExperimentError(f"{where}: {name}() cannot be called: {error}") from error
