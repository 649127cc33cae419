"""What objects, classes and functions hold and use, without what changes by itself."""

from __future__ import annotations

import builtins
import dis
import functools
import importlib
import importlib.util
import inspect
import logging
import os
import re
import sys
import types
import typing
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import PurePath
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, cast

from pydantic import BaseModel
from pydantic.errors import PydanticUserError

from agent_brain.experiments.origins import library_by_name, library_of
from agent_brain.memories.message import Message
from agent_brain.nets.net import Net
from agent_brain.states.base import State
from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool

SECRET = re.compile(r"key|secret|token$|password|credential|header", re.IGNORECASE)
_METHODS = (FunctionType, classmethod, staticmethod, property)
_BUILT_IN = (
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
)
_PARTS: tuple[tuple[Any, Callable[[Any], tuple[Any, ...]]], ...] = (
    (functools.partial, lambda v: (v.func, v.args, v.keywords)),
    (MethodType | staticmethod | classmethod, lambda v: (v.__func__, getattr(v, "__self__", None))),
    (property, lambda v: (v.fget, v.fset, v.fdel)),
    (re.Pattern, lambda v: (v.pattern, v.flags)),
    (PurePath, lambda v: (v.as_posix(),)),
    (logging.Logger, lambda v: (v.name,)),
    (typing.ForwardRef, lambda v: (v.__forward_arg__,)),
    # hooks that a net calls itself are kept apart
    (Net, lambda v: (v.states, v.to_mermaid(), v.hooks, vars(v).get("_hooks"))),
)
_OPEN = (BaseModel, State, types.SimpleNamespace)
_WORD = re.compile(r"[^\W\d]\w*")


def parts_of(value: Any) -> tuple[Any, ...] | None:
    """Return what an object of some kinds consists of; None for others."""
    if value is os.environ:
        return ()
    for kinds, parts in _PARTS:
        if isinstance(value, kinds):
            return parts(value)
    if isinstance(value, _BUILT_IN):
        owner = getattr(value, "__self__", None)
        return value.__qualname__, None if isinstance(owner, ModuleType) else owner
    origin = typing.get_origin(value)
    return None if origin is None else (origin, typing.get_args(value))


def held_by(value: Any) -> dict[str, Any]:
    """Return what an object holds that was given to it, by name; secrets excepted.

    States, tools and forms hold nothing else. Of other objects these are the arguments of the
    constructor that are kept under their names, and what hides an attribute of the class, as the
    rest may be what the object works with. Where an argument is not found, an object of the user's
    counts with all that it holds.
    """
    kind = type(value)
    attributes = {
        name: _without_secrets(held)
        for name, held in _attributes(value)
        if not SECRET.search(name) and not _appears_later(value, name)
    }
    found = attributes if isinstance(value, _OPEN) else _kept(kind, attributes)
    if isinstance(value, BaseTool):
        return {**found, "to_dict()": value.to_dict()}
    if not attributes and (data := _pickled(value)) is not None:
        return {"data": data}
    return found


def _kept(kind: type, attributes: dict[str, Any]) -> dict[str, Any]:
    names = _parameters(cast("Hashable", kind))
    kept = {name: n for name in names for n in (name, f"_{name}") if n in attributes}
    is_own = library_of(kind) is None
    if is_own and (
        issubclass(kind, BaseTool)
        or any(name not in kept and not SECRET.search(name) for name in names)
    ):
        return attributes
    shown = {n for n in attributes if is_own and hasattr(kind, n)}
    shown |= {*kept.values(), "name", "model", "__wrapped__"} & attributes.keys()
    return {name: held for name in shown if (held := attributes[name]) is not None}


def _attributes(value: Any) -> Iterable[tuple[str, Any]]:
    yield from getattr(value, "__dict__", {}).items()
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in [slots] if isinstance(slots, str) else slots:
            if not name.startswith("__") and hasattr(value, name):
                yield name, getattr(value, name)
    if isinstance(value, BaseModel):
        yield from (value.model_extra or {}).items()


def _appears_later(value: Any, name: str) -> bool:
    """Return whether an attribute is not from the constructor, or another one each time."""
    if isinstance(value, Message | Action):
        return name in {"id", "created_at"}
    static = inspect.getattr_static(type(value), name, None)
    return name == "_sealed" or isinstance(static, functools.cached_property)


def _pickled(value: Any) -> Any:
    """Return the data of an object that is not written in Python, such as a date."""
    if hasattr(value, "__next__"):
        return None
    try:
        data = value.__reduce_ex__(4)
    except Exception:  # a lock, a connection, …
        return None
    if isinstance(data, str):
        return data
    return [[*part] if hasattr(part, "__next__") else part for part in data[1:]]


def _without_secrets(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: v for k, v in value.items() if not (isinstance(k, str) and SECRET.search(k))}
    return value


@functools.cache
def _parameters(kind: Hashable) -> tuple[str, ...]:
    try:
        found = inspect.signature(cast("Any", kind).__init__).parameters
    except (TypeError, ValueError):
        return ()
    return tuple(name for name in found if name != "self")


def parts_of_class(kind: type) -> tuple[Any, ...]:
    """Return what a class of the user's consists of."""
    members = {n: v for n, v in vars(kind).items() if _is_member(n, v)}
    known = vars(sys.modules.get(kind.__module__, builtins))
    parts = kind.__bases__, members, annotations_of(kind, known)
    if issubclass(kind, BaseModel):
        defaults = {n: (f.default, f.default_factory) for n, f in kind.model_fields.items()}
        try:
            return *parts, kind.model_json_schema(), defaults
        except PydanticUserError:  # a type that JSON has not
            return *parts, None, defaults
    if issubclass(kind, Enum):
        return *parts, kind.__members__
    return parts


def _is_member(name: str, value: Any) -> bool:
    if name.startswith("_") and name.endswith("_"):
        is_method = isinstance(value, _METHODS) and name != "__annotate_func__"
        return is_method or name == "__doc__"
    return not name.startswith("_abc_")


def annotations_of(value: Any, known: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the annotations, and what those that are texts name."""
    try:
        found = vars(value).get("__annotations__") if isinstance(value, type) else None
        found = value.__annotations__ if found is None else found
    except (AttributeError, NameError):  # a name for type checkers alone
        return ()
    words = {w for text in found.values() if isinstance(text, str) for w in _WORD.findall(text)}
    return found, {word: known[word] for word in words if word in known}


def cells_of(function: FunctionType) -> list[Any]:
    """Return the values that a function encloses."""
    found = []
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # it is not filled yet
            found.append(None)
    return found


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


@dataclass(slots=True)
class _Names:
    globals: set[str] = field(default_factory=set)
    all: set[str] = field(default_factory=set)
    imports: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)  # and from them

    def read(self, code: CodeType) -> None:
        """Read code, and that of the functions and classes in it."""
        self.all.update(code.co_names)
        level: Any = 0
        members: Any = None
        for one in dis.get_instructions(code):
            if one.opname in _LOADS:
                self.globals.add(one.argval)
            elif one.opname == "IMPORT_NAME":  # after its dots and its names
                self.imports.append(("." * (level or 0) + one.argval, members or ()))
            level, members = members, one.argval
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self.read(constant)


def used_by(function: FunctionType) -> tuple[dict[str, Any], frozenset[str] | None, set[str]]:
    """Return what a function uses. Modules of the user that it will import are imported now.

    Returns:
        The values of its module, and the modules it imports, by name; the names that it may look up
        in modules, or None for all; what it does that makes the rest unknown, in words.
    """
    names = _Names()
    names.read(function.__code__)
    known = function.__globals__
    values = {n: known[n] for n in names.globals if n in known and not n.startswith("__")}
    free = {n for n in names.all if n not in values}
    unknown = {why for n, why in _UNKNOWN.items() if n in names.all and _is_meant(n, names, values)}
    for what, members in names.imports:
        try:
            values[f"import {what} {members}"] = _imported(what, members, known)
        except (Exception, SystemExit):
            unknown.add(f"imports {what!r}, which cannot be imported now")
    whole = bool(_WHOLE & free & names.globals)
    return values, None if whole else frozenset(names.all), unknown


def _is_meant(name: str, names: _Names, values: Mapping[str, Any]) -> bool:
    """Return whether it is what the name usually means, and not a function of the user's."""
    if name in values:
        return any(values[name] is usual for usual in _USUAL)
    return name in names.globals or not hasattr(builtins, name)


def _imported(what: str, members: Iterable[str], known: Mapping[str, Any]) -> ModuleType | str:
    """Return the module, or the name of a library, which is not imported for this."""
    name = importlib.util.resolve_name(what, known.get("__package__") or "")
    top = name.partition(".")[0]
    library = library_by_name(top)
    if library is not None:
        return library
    module = importlib.import_module(name)
    for member in members:
        if not hasattr(module, member) and member != "*":
            importlib.import_module(f"{name}.{member}")
    return module if members else sys.modules[top]
