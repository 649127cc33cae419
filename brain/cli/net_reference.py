"""Find the nets and tools that a user names. Private."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from types import ModuleType
from typing import Any

from agent_brain.brainfile import net_from_file
from agent_brain.cli.exit_codes import UserError
from agent_brain.nets import Net, as_net, create_net
from agent_brain.states import LLM
from agent_brain.tools import BaseTool, ToolDefinitionError
from agent_brain.tools.function import as_tool
from agent_brain.tools.suggest import did_you_mean

USAGE = "write module:function or path/to/file.py:function"
SUFFIXES = (".toml", ".yaml", ".yml")


def is_file(name: str) -> bool:
    """Return whether ``name`` is the path of a net file."""
    return Path(name).suffix.lower() in SUFFIXES


def load_net(name: str, llm: LLM) -> Net:
    """Return a registered net, that of a file, or ``module:name``: a net, states or a function."""
    if is_file(name):
        return net_from_file(name, llm)
    if ":" not in name:
        return create_net(name, llm)
    value: Any = load_object(f"--net {name!r}", name)
    if callable(value) and not isinstance(value, Net):
        value = value(llm)
    if not isinstance(value, Net | Mapping):
        raise UserError(f"--net {name!r} is {value!r}: name a net, a dict of states, or a function")
    return as_net(value)


def load_tools(references: Sequence[str]) -> list[BaseTool]:
    """Return the tools that the references name; modules are searched in the current folder too."""
    tools = []
    for reference in dict.fromkeys(references):
        what = f"--tool {reference!r}"
        try:
            tools.append(as_tool(load_object(what, reference)))  # type: ignore[arg-type]
        except ToolDefinitionError as error:
            raise UserError(f"{what}: {error}") from error
    return tools


def load_object(what: str, reference: str) -> object:
    """Return what ``reference`` names; error messages begin with ``what``."""
    module_name, _, attribute = reference.rpartition(":")
    if not module_name or not attribute:
        raise UserError(f"{what} is not a reference: {USAGE}")
    with contextlib.redirect_stdout(sys.stderr):
        module = _load_module(module_name, what)
    try:
        return reduce(getattr, attribute.split("."), module)
    except AttributeError:
        found = [
            name
            for name, value in vars(module).items()
            if (isinstance(value, BaseTool) or inspect.isfunction(value))
            and value.__module__ == module.__name__
        ]
        known = f" Its functions and tools: {', '.join(sorted(found)) or 'none'}"
        hint = did_you_mean(attribute, found) or known
        raise UserError(f"{what}: there is no {attribute!r} in it.{hint}") from None


def _load_module(name: str, what: str) -> ModuleType:
    is_path = name.endswith(".py") or "/" in name or "\\" in name
    path = Path(name).resolve()
    if is_path and not path.is_file():
        raise UserError(f"{what}: there is no file {name!r}")
    folder = str(path.parent if is_path else Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return _run_file(path) if is_path else importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise UserError(
            f"{what}: {name!r} cannot be imported: {type(error).__name__}: {error}\n"
            f"  Modules are installed, or in this folder; for others {USAGE}. "
            "Use --debug to see the traceback"
        ) from error


def _run_file(path: Path) -> ModuleType:
    """Import a file once, under a name of its own."""
    name = f"agent_brain_file_{path.stem}_{abs(hash(str(path)))}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path.name} is not a Python file")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
