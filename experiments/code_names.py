"""Which names a function uses, read from its code."""

from __future__ import annotations

import builtins
import dis
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from agent_brain.experiments.origins import library_by_name

_LOADS = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}
_UNKNOWN = {
    "open": "reads files",
    "read_text": "reads files",
    "read_bytes": "reads files",
    "environ": "reads the environment",
    "getenv": "reads the environment",
    "import_module": "imports by name",
    "__import__": "imports by name",
    "globals": "finds code by name",
    "eval": "runs a text",
    "exec": "runs a text",
}
_USUAL = (os.environ, os.getenv, importlib.import_module)
_WHOLE = {"getattr", "vars"}  # of a module: any name in it


@dataclass(frozen=True, slots=True)
class Used:
    """What a function uses beside its arguments.

    Attributes:
        values: The values of its module, and the modules it imports, by name.
        attributes: The names that it may look up in modules; None for all.
        unknown: What it does that makes the rest unknown, in words.
    """

    values: Mapping[str, Any]
    attributes: frozenset[str] | None
    unknown: tuple[str, ...]


@dataclass(slots=True)
class _Names:
    globals: set[str] = field(default_factory=set)
    all: set[str] = field(default_factory=set)
    imports: list[_Import] = field(default_factory=list)


class _Import(NamedTuple):
    level: int  # dots before the name
    name: str
    members: tuple[str, ...]  # after "from … import"


def used_by(function: FunctionType) -> Used:
    """Return what a function uses. Modules of the user that it will import are imported now."""
    names = _Names()
    for code in _codes(function.__code__):
        _read(code, names)
    known = function.__globals__
    values = {n: known[n] for n in names.globals if n in known and not n.startswith("__")}
    free = {n for n in names.all if n not in values}
    unknown = {why for n, why in _UNKNOWN.items() if n in names.all and _is_meant(n, names, values)}
    for one in names.imports:
        what = "." * one.level + one.name
        try:
            values[f"import {what} {one.members}"] = _imported(one, known)
        except (Exception, SystemExit):
            unknown.add(f"imports {what!r}, which cannot be imported now")
    whole = bool(_WHOLE & free & names.globals)
    return Used(values, None if whole else frozenset(names.all), tuple(sorted(unknown)))


def _is_meant(name: str, names: _Names, values: Mapping[str, Any]) -> bool:
    """Return whether it is what the name usually means, and not a function of the user's."""
    if name in values:
        return any(values[name] is usual for usual in _USUAL)
    return name in names.globals or not hasattr(builtins, name)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _read(code: CodeType, names: _Names) -> None:
    names.all.update(code.co_names)
    level: Any = 0
    members: Any = None
    for one in dis.get_instructions(code):
        if one.opname in _LOADS:
            names.globals.add(one.argval)
        elif one.opname == "IMPORT_NAME":  # after its dots and its names
            names.imports.append(_Import(level or 0, one.argval, members or ()))
        level, members = members, one.argval


def _imported(one: _Import, known: Mapping[str, Any]) -> ModuleType | str:
    """Return the module, or the name of a library, which is not imported for this."""
    name = one.name
    if one.level:
        name = importlib.util.resolve_name("." * one.level + name, known.get("__package__") or "")
    top = name.partition(".")[0]
    library = library_by_name(top)
    if library is not None:
        return library
    module = importlib.import_module(name)
    for member in one.members:
        if not hasattr(module, member) and member != "*":
            importlib.import_module(f"{name}.{member}")
    return module if one.members else sys.modules[top]
