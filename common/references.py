"""Objects that a text names, as ``module:name`` or ``path/to/file.py:name``."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import sys
from functools import reduce
from pathlib import Path
from types import ModuleType

from agent_brain.common.suggest import did_you_mean

USAGE = "write module:function or path/to/file.py:function"


def is_reference(text: str) -> bool:
    """Return whether ``text`` is ``module:object`` or ``path/to/file.py:object``.

    Names of models may have a colon too, as in ``ollama/llama3.2:3b``.
    """
    module, _, attribute = text.rpartition(":")
    if not all(part.isidentifier() for part in attribute.split(".")):
        return False
    return module.endswith(".py") or all(part.isidentifier() for part in module.split("."))


def load_object(what: str, reference: str, error: type[Exception]) -> object:
    """Return what ``reference`` names; modules are searched in the current folder too.

    What the module prints goes to stderr.

    Args:
        what: What error messages begin with.
        reference: The module or the file, and the name in it.
        error: What is raised if it cannot be imported, or has no such name.
    """
    module_name, _, attribute = reference.rpartition(":")
    if not module_name or not attribute:
        raise error(f"{what} is not a reference: {USAGE}")
    with contextlib.redirect_stdout(sys.stderr):
        module = _load_module(module_name, what, error)
    try:
        return reduce(getattr, attribute.split("."), module)
    except AttributeError:
        found = [
            name
            for name, value in vars(module).items()
            if (inspect.isfunction(value) or hasattr(value, "execute"))
            and getattr(value, "__module__", "") == module.__name__
        ]
        known = f" Its functions and tools: {', '.join(sorted(found)) or 'none'}"
        hint = did_you_mean(attribute, found) or known
        raise error(f"{what}: there is no {attribute!r} in it.{hint}") from None


def _load_module(name: str, what: str, error: type[Exception]) -> ModuleType:
    is_path = name.endswith(".py") or "/" in name or "\\" in name
    path = Path(name).resolve()
    if is_path and not path.is_file():
        raise error(f"{what}: there is no file {name!r}")
    folder = str(path.parent if is_path else Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return _run_file(path) if is_path else importlib.import_module(name)
    except (Exception, SystemExit) as cause:
        raise error(
            f"{what}: {name!r} cannot be imported: {type(cause).__name__}: {cause}\n"
            f"  Modules are installed, or in this folder; for others {USAGE}. "
            "Use --debug to see the traceback"
        ) from cause


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
