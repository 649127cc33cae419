"""Objects by reference: ``module:name`` or ``path/to/file.py:name``."""

from __future__ import annotations

import contextlib
import difflib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from types import ModuleType

from agent_brain.cli.exits import UserError
from agent_brain.tools import BaseTool, ToolDefinitionError
from agent_brain.tools.function import as_tool

HOW = "write module:function, such as my_tools:search, or path/to/file.py:function"


def load_tools(references: Sequence[str]) -> list[BaseTool]:
    """The tools that the references name; modules are searched here and among what is installed.

    What a module prints while it is imported goes to stderr.

    Raises:
        UserError: A reference names nothing, or nothing that can be a tool.
    """
    return [_as_tool(load_object(f"--tool {r!r}", r), r) for r in dict.fromkeys(references)]


def load_object(what: str, reference: str) -> object:
    """The object that ``reference`` names.

    Args:
        what: How errors begin, such as ``"--tool 'x:y'"``.
        reference: ``module:name`` or ``path/to/file.py:name``.

    Raises:
        UserError: It names nothing.
    """
    module_name, _, attribute = reference.rpartition(":")
    if not module_name or not attribute:
        raise UserError(f"{what} is no reference: {HOW}")
    with contextlib.redirect_stdout(sys.stderr):
        module = _load_module(module_name, what)
    try:
        return reduce(getattr, attribute.split("."), module)
    except AttributeError:
        raise UserError(f"{what}: {_nothing_there(module, attribute)}") from None


def _load_module(name: str, what: str) -> ModuleType:
    is_path = name.endswith(".py") or "/" in name or "\\" in name
    path = Path(name).resolve()
    if is_path and not path.is_file():
        raise UserError(f"{what}: there is no file {name!r}")
    try:
        return _run_file(path) if is_path else _import(name)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and _is_missing(name, error):
            raise UserError(
                f"{what}: there is no module {error.name!r}, neither in this folder "
                "nor installed. Or name a file: path/to/file.py:function"
            ) from error
        raise UserError(
            f"{what}: {name!r} cannot be imported: {type(error).__name__}: {error}\n"
            "  With --debug you see the traceback"
        ) from error


def _is_missing(name: str, error: ModuleNotFoundError) -> bool:
    """Whether the module itself is not there, rather than something that it imports."""
    return error.name is not None and f"{name}.".startswith(f"{error.name}.")


def _import(name: str) -> ModuleType:
    _search_in(Path.cwd())
    return importlib.import_module(name)


def _run_file(path: Path) -> ModuleType:
    """Run a file as a module, once, with its neighbours importable."""
    name = f"agent_brain_file_{path.stem}_{abs(hash(str(path)))}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path.name} is not a Python file")
    _search_in(path.parent)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _search_in(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _as_tool(value: object, reference: str) -> BaseTool:
    try:
        return as_tool(value)  # type: ignore[arg-type]
    except ToolDefinitionError as error:
        raise UserError(f"--tool {reference!r}: {error}") from error


def _nothing_there(module: ModuleType, attribute: str) -> str:
    there = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (isinstance(value, BaseTool) or inspect.isfunction(value))
        and value.__module__ == module.__name__
    ]
    near = difflib.get_close_matches(attribute, there, n=3)
    if near:
        return f"there is no {attribute!r} in it. Did you mean {' or '.join(map(repr, near))}?"
    listed = ", ".join(sorted(there)) or "none"
    return f"there is no {attribute!r} in it. Functions and tools that it has: {listed}"
