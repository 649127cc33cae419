"""Room for states to keep what they must know later: a dict of JSON values that refuses others."""

from __future__ import annotations

import math
from collections.abc import Iterable
from copy import deepcopy
from typing import Annotated, Any

from pydantic import AfterValidator

from agent_brain.memories.errors import ScratchError

_PLAIN = (str, int, bool, type(None))


class Scratch(dict[str, Any]):
    """A dict of JSON values: text, numbers, booleans, None, and lists and dicts of these.

    Anything else is refused when it is assigned. Lists and dicts in it may be changed in place;
    :meth:`check` looks at those, and is called after each step.

    Attributes:
        nested: The keys of lists and dicts, or None while there are none.

    Raises:
        ScratchError: A value that JSON does not hold.
    """

    __slots__ = ("nested",)

    def __init__(self, values: Any = (), /, **named: Any) -> None:
        super().__init__()
        self.nested: set[str] | None = None
        if values or named:
            self.update(values, **named)

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise ScratchError(repr(key), "is not kept: JSON has only texts for keys")
        if type(value) not in _PLAIN:
            _refuse_others(key, value)
            if isinstance(value, list | dict):
                self.nested = (self.nested or set()) | {key}
        super().__setitem__(key, value)

    def setdefault(self, key: str, default: Any = None, /) -> Any:
        """As of a dict."""
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, values: Any = (), /, **named: Any) -> None:
        """As of a dict; where one value is refused, nothing is changed."""
        given = dict(values, **named)
        for key, value in given.items():
            _refuse_others(key, value)
        for key, value in given.items():
            self[key] = value

    def __ior__(self, values: Any) -> Scratch:  # type: ignore[override,misc]  # a dict's takes less
        self.update(values)
        return self

    def check(self) -> None:
        """Look at the lists and dicts, which may have been changed; take out what is refused.

        Raises:
            ScratchError: One of them holds what JSON does not hold.
        """
        for key in (self.nested or set()) & self.keys():
            try:
                _refuse_others(key, self[key])
            except ScratchError:
                del self[key]
                raise

    def __deepcopy__(self, memo: dict[int, Any]) -> Scratch:
        return Scratch({key: deepcopy(value, memo) for key, value in self.items()})

    def copy(self) -> Scratch:
        """A shallow copy."""
        return Scratch(self)

    __copy__ = copy

    def __reduce__(self) -> tuple[Any, ...]:
        return Scratch, (dict(self),)


JsonDict = Annotated[dict[str, Any], AfterValidator(Scratch)]


def _refuse_others(key: str, value: Any) -> None:
    try:
        problem = _problem(value)
    except RecursionError:
        problem = "", "contains itself, or is nested too deep"
    if problem is not None:
        where, what = problem
        raise ScratchError(key, f"at {where} {what}" if where else what)


def _problem(value: Any) -> tuple[str, str] | None:
    """What JSON cannot hold in ``value``: where and what; None if it holds all of it."""
    if type(value) in _PLAIN:
        return None
    if isinstance(value, float):
        return None if math.isfinite(value) else ("", f"holds {value}, and JSON has no such number")
    if isinstance(value, dict):
        keys = [key for key in value if not isinstance(key, str)]
        if keys:
            return "", f"holds the key {keys[0]!r}, and JSON has only texts for keys"
        return _problem_within(value.items())
    if isinstance(value, list):
        return _problem_within(enumerate(value))
    if isinstance(value, str | int):
        return None
    return "", f"holds a {type(value).__name__}, which JSON cannot hold: {_instead(value)}"


def _problem_within(items: Iterable[tuple[Any, Any]]) -> tuple[str, str] | None:
    for name, item in items:
        problem = _problem(item)
        if problem is not None:
            return f"[{name!r}]{problem[0]}", problem[1]
    return None


def _instead(value: Any) -> str:
    if isinstance(value, tuple):
        return "use a list"
    if isinstance(value, set | frozenset):
        return "use a sorted list"
    if hasattr(value, "model_dump"):
        return "use value.model_dump(mode='json'), or Notes"
    return "keep the data that it can be made from"
