"""JSON values that cannot be changed: the arguments of a call stay what they were."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from pydantic import JsonValue


def _refuse(*args: object, **kwargs: object) -> NoReturn:
    raise TypeError(
        "The arguments of a call cannot be changed: make another call, with "
        "action.model_copy(update={'args': {**action.args, …}})"
    )


class FrozenDict(dict[str, JsonValue]):
    """A dict that cannot be changed; a copy of it can."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __copy__(self) -> dict[str, JsonValue]:
        return dict(self)

    def __deepcopy__(self, memo: object) -> dict[str, JsonValue]:
        return thawed(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (thawed(self),)


class FrozenList(list[JsonValue]):
    """A list that cannot be changed; a copy of it can."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __copy__(self) -> list[JsonValue]:
        return list(self)

    def __deepcopy__(self, memo: object) -> list[JsonValue]:
        return [_thaw(item) for item in self]

    def __reduce__(self) -> tuple[Any, ...]:
        return list, ([_thaw(item) for item in self],)


_KINDS = frozenset({FrozenDict, FrozenList})


def frozen(value: Mapping[str, JsonValue]) -> FrozenDict:
    """Return a copy of a JSON object that cannot be changed, nor can what is in it."""
    return FrozenDict((key, _freeze(item)) for key, item in value.items())


def thawed(value: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return a copy of a JSON object that may be changed, as may what is in it."""
    if _KINDS.isdisjoint(map(type, value.values())):
        return dict(value)
    return {key: _thaw(item) for key, item in value.items()}


def _freeze(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return frozen(value)
    return FrozenList(map(_freeze, value)) if isinstance(value, list) else value


def _thaw(value: JsonValue) -> JsonValue:
    if type(value) is FrozenDict:
        return thawed(value)
    return [_thaw(item) for item in value] if type(value) is FrozenList else value
