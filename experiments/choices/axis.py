"""What an experiment compares: how what was given for an axis is read."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from typing import Any, Self, TypeVar

from agent_brain.errors import AgentBrainError, ExperimentError
from agent_brain.experiments.task import is_name

T = TypeVar("T")


class Faults:
    """Collects what is wrong: a context manager around each check, then :meth:`refuse`."""

    def __init__(self) -> None:
        self._found: list[ExperimentError] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if not isinstance(error, ExperimentError):
            return False
        self._found.append(error)
        return True

    def refuse(self) -> None:
        """Raise what was found.

        Raises:
            ExperimentError: Something was.
        """
        if self._found:
            raise ExperimentError("\n".join(map(str, self._found))) from self._found[0]


@contextmanager
def _at(where: str) -> Iterator[None]:
    """Have errors say where they are, also those of options of a wrong kind."""
    try:
        yield
    except ExperimentError:
        raise
    except AgentBrainError as error:
        raise ExperimentError(f"{where}: {error}") from error
    except (TypeError, ValueError) as error:
        raise ExperimentError(f"{where}: {type(error).__name__}: {error}") from error


def read_axis(axis: str, given: object, read: Callable[[str, Any], T]) -> dict[str, T]:
    """Return what was given for an axis by name: one thing, a list, or a dict by names.

    Args:
        axis: The name of the argument, for errors.
        given: What was given.
        read: Reads one thing; called with where it is and with the thing. What it returns is a
            dataclass, whose ``name`` becomes that in the experiment.

    Raises:
        ExperimentError: There is nothing, a name cannot be used, or two things have one name.
    """
    found: dict[str, T] = {}
    faults = Faults()
    for name, thing in _named(given):
        where = axis if name is None else f"{axis}[{name!r}]"
        with faults, _at(where):
            choice = read(where, thing)
            key: str = choice.name if name is None else name  # type: ignore[attr-defined]
            slash = "/" in key and axis != "models"
            if not (is_name(key) and key.isprintable()) or "*" in key or slash:
                raise ExperimentError(
                    f"{axis}= has the name {key!r}: a name is not empty and has no '/', '*', line "
                    "break or control character"
                )
            if key in found:
                raise ExperimentError(
                    f"{axis}= has two of the name {key!r}: give a dict from a name to each"
                )
            found[key] = replace(choice, name=key)  # type: ignore[type-var]
    faults.refuse()
    if not found:
        raise ExperimentError(f"{axis}= is empty: give at least one")
    return found


def _named(given: object) -> Iterator[tuple[str | None, Any]]:
    if isinstance(given, Mapping) and all(type(key) is str for key in given):  # no states
        yield from given.items()
    elif isinstance(given, list | set | frozenset) or (
        isinstance(given, tuple) and not is_with_options(given)
    ):
        yield from ((None, thing) for thing in given)
    else:
        yield None, given


def is_with_options(given: object) -> bool:
    """Return whether ``given`` is a thing with its options, as a tuple."""
    return isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], Mapping)


def split_options(where: str, given: Any) -> tuple[Any, dict[str, Any]]:
    """Return a thing and its options."""
    if not is_with_options(given):
        return given, {}
    thing, options = given
    if not isinstance(thing, str | PathLike):
        raise ExperimentError(f"{where}: options go with a name, not with {thing!r}")
    return thing, dict(options)


def in_words(name: str, options: Mapping[str, Any]) -> str:
    """Return a name with its options, such as ``"windowed(max_messages=10)"``."""
    text = ", ".join(f"{key}={_short(value)}" for key, value in options.items())
    return f"{name}({text})" if text else name


def _short(value: object) -> str:
    if isinstance(value, str | int | float | bool | None):
        return repr(value)
    return str(getattr(value, "__qualname__", type(value).__qualname__))


def name_of(function: object) -> str:
    """Return the name of a function, without those that enclose it."""
    name = str(getattr(function, "__name__", type(function).__name__))
    return "function" if name == "<lambda>" else name


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
