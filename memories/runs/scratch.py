"""A dict of JSON values, in which states keep data between steps."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import AfterValidator

from agent_brain.memories.errors import ScratchError

_PLAIN = (str, int, bool, type(None))


class Scratch(dict[str, Any]):
    """A dict of JSON values: text, finite numbers, booleans, None, and lists and dicts of these.

    Other values are refused on assignment. Lists and dicts may be changed in place; :meth:`check`,
    which runs after each step, validates them again.

    Attributes:
        nested: The keys whose values are lists or dicts; None if there are none.

    Raises:
        ScratchError: A value is not a JSON value.
    """

    __slots__ = ("nested",)

    def __init__(self, values: Any = (), /, **named: Any) -> None:
        super().__init__()
        self.nested: set[str] | None = None
        if values or named:
            self.update(values, **named)

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise ScratchError(repr(key), "is not stored: keys in JSON are strings")
        if type(value) not in _PLAIN:
            _refuse_others(key, value)
            if isinstance(value, list | dict):
                self.nested = (self.nested or set()) | {key}
        super().__setitem__(key, value)

    def setdefault(self, key: str, default: Any = None, /) -> Any:
        """Insert ``default`` if ``key`` is missing; return the value of ``key``."""
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, values: Any = (), /, **named: Any) -> None:
        """Update like a dict; if one value is refused, nothing is changed."""
        given = dict(values, **named)
        for key, value in given.items():
            _refuse_others(key, value)
        for key, value in given.items():
            self[key] = value

    def __ior__(self, values: Any) -> Scratch:  # type: ignore[override,misc]  # a dict's takes less
        self.update(values)
        return self

    def check(self) -> None:
        """Validate the lists and dicts again, as they may have been changed in place.

        Raises:
            ScratchError: One of them is not a JSON value any more; it is removed.
        """
        for key in (self.nested or set()) & self.keys():
            try:
                _refuse_others(key, self[key])
            except ScratchError:
                del self[key]
                raise

    def copy(self) -> Scratch:
        """Return a shallow copy."""
        return Scratch(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return Scratch, (dict(self),)


JsonDict = Annotated[dict[str, Any], AfterValidator(Scratch)]


def _refuse_others(key: str, value: Any) -> None:
    try:
        problem = _problem(value)
    except RecursionError:
        problem = "", "contains itself, or is nested too deeply"
    if problem is not None:
        where, what = problem
        raise ScratchError(key, f"at {where} {what}" if where else what)


def _problem(value: Any) -> tuple[str, str] | None:
    """Return where and what in ``value`` is not JSON; None if all of it is."""
    if type(value) in _PLAIN:
        return None
    if isinstance(value, float):
        return None if math.isfinite(value) else ("", f"holds {value}, which is not a JSON number")
    if isinstance(value, dict):
        keys = [key for key in value if not isinstance(key, str)]
        if keys:
            return "", f"holds the key {keys[0]!r}, and keys in JSON are strings"
        return _problem_within(value.items())
    if isinstance(value, list):
        return _problem_within(enumerate(value))
    if isinstance(value, str | int):
        return None
    return "", f"holds a {type(value).__name__}, which is not a JSON value: {_instead(value)}"


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
    return "store the data from which it can be created"
