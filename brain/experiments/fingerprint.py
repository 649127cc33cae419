"""A text that stands for what an experiment was given, the same in every program. Private."""

from __future__ import annotations

import functools
import hashlib
import inspect
import re
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import PurePath
from types import CodeType, FunctionType, MethodType
from typing import Any, TypeAlias, cast

from pydantic import BaseModel

from agent_brain.nets.net import Net
from agent_brain.states.base import State
from agent_brain.tools.base import BaseTool

DEEPEST = 12
SECRET = re.compile(r"key|secret|token$|password|credential|header", re.IGNORECASE)
Path: TypeAlias = tuple[int, ...]  # the IDs of the objects around a value
_PLAIN = (str, int, float, bool, type(None), bytes, complex)


def fingerprint(*values: object) -> str:
    """Return 16 hexadecimal digits that stand for ``values``.

    Functions count with their code, defaults and the values that they enclose; objects with the
    arguments that they keep under the names of their constructor's parameters, secrets excepted.
    """
    text = "\n".join(_describe(value, ()) for value in values)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _describe(value: Any, path: Path) -> str:
    if isinstance(value, Enum):
        return f"{type(value).__qualname__}.{value.name}"
    if isinstance(value, _PLAIN):
        return f"{type(value).__name__}:{value!r}"
    if len(path) >= DEEPEST or id(value) in path:
        return type(value).__qualname__
    path = (*path, id(value))
    if isinstance(value, Mapping):
        items = sorted(f"{_describe(k, path)}={_describe(v, path)}" for k, v in value.items())
        return f"{{{', '.join(items)}}}"
    if isinstance(value, list | tuple):
        return f"[{_join(value, path)}]"
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(_describe(item, path) for item in value))}}}"
    if isinstance(value, re.Pattern):
        return f"re:{value.pattern!r}:{value.flags}"
    if isinstance(value, PurePath):
        return f"path:{value.as_posix()!r}"
    return _of_object(value, path)


def _join(values: Iterable[Any], path: Path) -> str:
    return ", ".join(_describe(value, path) for value in values)


def _of_object(value: Any, path: Path) -> str:
    if isinstance(value, functools.partial):
        return f"partial({_join((value.func, value.args, value.keywords), path)})"
    if isinstance(value, MethodType):
        return f"method({_join((value.__func__, value.__self__), path)})"
    if isinstance(value, FunctionType):
        return _of_function(value, path)
    if isinstance(value, CodeType):
        return _of_code(value, path)
    if isinstance(value, type):
        shape = value.model_json_schema() if issubclass(value, BaseModel) else None
        return f"class {value.__qualname__} {_describe(shape, path)}"
    if isinstance(value, BaseModel):
        return f"{type(value).__qualname__} {value.model_dump_json(exclude=_UNSTABLE)}"
    if isinstance(value, BaseTool):
        return f"tool {_describe(value.to_dict(), path)} {_made_of(value, path)}"
    if isinstance(value, Net):
        states = {str(key): _of_state(state, path) for key, state in value.states.items()}
        return f"net {_describe(states, path)} {value.to_mermaid()}"
    if is_dataclass(value):
        names = [f.name for f in fields(value) if not f.name.startswith("_")]
        parts = {name: getattr(value, name) for name in names}
        return f"{type(value).__qualname__} {_describe(parts, path)}"
    return _made_of(value, path)


_UNSTABLE = {"id", "created_at"}  # of messages


def _of_state(state: State, path: Path) -> str:
    return _made_of(getattr(state, "wrapped", state), path)


def _of_function(function: FunctionType, path: Path) -> str:
    enclosed: list[Any] = []
    for cell in function.__closure__ or ():
        try:
            enclosed.append(cell.cell_contents)
        except ValueError:  # it is not filled yet
            enclosed.append(None)
    parts = function.__code__, function.__defaults__, function.__kwdefaults__, enclosed
    return f"function {function.__qualname__}({_join(parts, path)})"


def _of_code(code: CodeType, path: Path) -> str:
    return (
        f"code({code.co_code.hex()}, {_join(code.co_consts, path)}, {_join(code.co_names, path)})"
    )


def _made_of(value: Any, path: Path) -> str:
    """Describe an object by its class, and what it keeps of its constructor's arguments."""
    kind = type(value)
    kept: dict[str, Any] = {}
    for name in _parameters(cast("Hashable", kind)):
        if SECRET.search(name):
            continue
        for attribute in (name, f"_{name}"):
            held = getattr(value, "__dict__", {}).get(attribute)
            if isinstance(inspect.getattr_static(kind, attribute, None), functools.cached_property):
                continue  # it is there once it was used
            if held is not None:
                kept[name] = _without_secrets(held)
                break
    for name in ("name", "model"):
        if isinstance(held := getattr(value, name, None), str):
            kept[name] = held
    return f"{kind.__qualname__} {_describe(kept, path)}"


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
