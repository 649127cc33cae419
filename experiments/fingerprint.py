"""What stands for the things that an experiment was given, the same in every program."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import BuiltinFunctionType, CodeType, FunctionType, MappingProxyType, ModuleType
from typing import Any, TypeAlias

from agent_brain.experiments.described import (
    annotations_of,
    cells_of,
    held_by,
    parts_of,
    parts_of_class,
    used_by,
)
from agent_brain.experiments.origins import library_of

_DEEPEST = 20  # containers in containers, before they are described on their own
_PLAIN = (str, int, float, bool, type(None), bytes, complex, type(...))
_CONTAINERS = (dict, MappingProxyType, list, tuple, set, frozenset, CodeType)
Path: TypeAlias = tuple[int, ...]  # the IDs of the containers around a value


@dataclass(frozen=True, slots=True)
class Key:
    """What stands for some values.

    Attributes:
        digits: 16 hexadecimal digits.
        unknown: What they depend on that cannot be known, in words.
    """

    digits: str
    unknown: tuple[str, ...] = ()


def fingerprint(*values: object) -> Key:
    """Return what stands for ``values``: it is another one if one of them changes.

    A function counts with its code, defaults and the values that it encloses, and with what it
    uses of the user's own modules: functions, classes and values, and what these use. An object
    counts with its class and with what it holds, secrets excepted. What is installed counts by its
    name and version, and its objects by the arguments that they keep under the names of their
    constructor's parameters. Comments and line breaks do not count; docstrings do, since models
    read those of tools and forms.
    """
    return _Walk(frozenset()).key(values)


class _Walk:
    """Describes values. An object is described once, under a number, and referred to by it.

    Args:
        around: The IDs of the sets and dicts whose order the texts of the values make.
    """

    def __init__(self, around: frozenset[int]) -> None:
        self._around = around
        self._numbers: dict[int, int] = {}
        self._parts: dict[tuple[int, frozenset[str] | None], _Part] = {}
        self._left: deque[Any] = deque()
        self._held: list[Any] = []  # so that no ID is used twice
        self._unknown: set[str] = set()

    def key(self, values: tuple[object, ...]) -> Key:
        digest = hashlib.sha256()
        texts = [self._value(value, ()) for value in values]
        while self._left:
            digest.update(f"{'; '.join(texts)}\n".encode("utf-8", "surrogatepass"))
            texts = [self._object(self._left.popleft())]
        digest.update("; ".join(texts).encode("utf-8", "surrogatepass"))
        return Key(digest.hexdigest()[:16], tuple(sorted(self._unknown)))

    def _value(self, value: Any, path: Path) -> str:
        """Return the text of a value, or the number of an object."""
        if isinstance(value, Enum):
            kind = "" if library_of(type(value)) else f" {self._number(type(value))}"
            return f"{_sign(value)}={self._value(value.value, path)}{kind}"
        if isinstance(value, _PLAIN):
            return f"{type(value).__name__}:{value!r}"
        if isinstance(value, Key):
            self._unknown.update(value.unknown)
            return value.digits
        if not isinstance(value, _CONTAINERS):
            return self._number(value)
        if id(value) in path:
            return "…"
        if len(path) >= _DEEPEST:
            return self._number(value)
        return self._container(value, (*path, id(value)))

    def _container(self, value: Any, path: Path) -> str:
        if isinstance(value, CodeType):
            arguments = value.co_argcount + value.co_kwonlyargcount
            counts = value.co_argcount, value.co_posonlyargcount, value.co_kwonlyargcount
            steps = value.co_flags, value.co_code.hex(), value.co_exceptiontable.hex()
            names = value.co_names, value.co_varnames[:arguments]
            return f"code{self._value((counts, steps, names, value.co_consts), path)}"
        if isinstance(value, dict | MappingProxyType):
            items = sorted(value.items(), key=lambda item: self._alone(item[0], value))
            parts = (f"{self._value(k, path)}: {self._value(v, path)}" for k, v in items)
            return f"{{{', '.join(parts)}}}"
        if isinstance(value, set | frozenset):
            things = sorted(value, key=lambda thing: self._alone(thing, value))
            return f"{{{', '.join(self._value(thing, path) for thing in things)}}}"
        return f"[{', '.join(self._value(item, path) for item in value)}]"

    def _number(self, value: Any) -> str:
        number = self._numbers.get(id(value))
        if number is None:
            number = self._numbers[id(value)] = len(self._numbers)
            self._held.append(value)
            self._left.append(value)
        return f"#{number}"

    def _alone(self, value: Any, container: Any) -> str:
        """Return a text to sort by: without numbers, which would follow the order of a set."""
        if isinstance(value, Enum):
            return _sign(value)
        if isinstance(value, _PLAIN):
            return f"{type(value).__name__}:{value!r}"
        if id(container) in self._around:
            return type(value).__qualname__
        key = _Walk(self._around | {id(container)}).key((value,))
        self._unknown.update(key.unknown)
        return key.digits

    def _object(self, value: Any) -> str:
        """Describe an object."""
        if isinstance(value, _CONTAINERS):  # a deep one
            return self._container(value, (id(value),))
        if isinstance(value, _Part):
            return self._module(value)
        if isinstance(value, ModuleType):
            return self._module(_Part(value, None))
        if isinstance(value, FunctionType):
            return self._function(value)
        if isinstance(value, type):
            return self._class(value)
        if (parts := parts_of(value)) is None:
            return f"object {self._value((type(value), held_by(value)), ())}"
        if isinstance(value, BuiltinFunctionType) and library_of(value) is None:
            self._unknown.add(f"{value.__qualname__} is not written in Python")
        return f"{type(value).__qualname__} {self._value(parts, ())}"

    def _module(self, part: _Part) -> str:
        if (library := library_of(part.module)) is not None:
            return f"module {library} {part.module.__name__}"
        held = vars(part.module)
        names = held.keys() if part.names is None else part.names & held.keys()
        found = {name: held[name] for name in names if not name.startswith("__")}
        return f"module {self._value(self._used(found, part.names), ())}"

    def _used(self, values: Mapping[str, Any], names: frozenset[str] | None) -> dict[str, Any]:
        """Have modules among the values count with these names alone."""
        return {
            name: self._parts.setdefault((id(value), names), _Part(value, names))
            if isinstance(value, ModuleType)
            else value
            for name, value in values.items()
        }

    def _function(self, function: FunctionType) -> str:
        name = function.__qualname__
        held = function.__defaults__, function.__kwdefaults__, cells_of(function), vars(function)
        if (library := library_of(function)) is not None:
            return f"function {library} {name} {self._value(held, ())}"
        used, names, unknown = used_by(function)
        self._unknown.update(f"{name} {what}" for what in unknown)
        values = self._used(used, names)
        annotations = annotations_of(function, function.__globals__)
        return f"function {name} {self._value((function.__code__, held, values, annotations), ())}"

    def _class(self, kind: type) -> str:
        if (library := library_of(kind)) is not None:
            return f"class {library} {kind.__module__} {kind.__qualname__}"
        return f"class {kind.__qualname__} {self._value(parts_of_class(kind), ())}"


@dataclass(frozen=True, slots=True)
class _Part:
    """A module, of which these names count; None for all."""

    module: ModuleType
    names: frozenset[str] | None


def _sign(member: Enum) -> str:
    return f"{type(member).__qualname__}.{member.name}"
