"""Where code comes from: of the user or of a library, which versions, and which commit."""

from __future__ import annotations

import importlib.util
import platform
import subprocess
import sys
import sysconfig
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from types import CodeType, ModuleType
from typing import Any

_STANDARD = tuple({sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")})


def library_of(value: Any) -> str | None:
    """Return the library that a function, class or module is of, with its version.

    None for code of the user's own: all that is not installed, also if it is imported from a
    folder such as that of a project installed with ``pip install -e``.
    """
    if isinstance(value, ModuleType):
        return _library(value.__name__, getattr(value, "__file__", None))
    name = str(getattr(value, "__module__", None) or "builtins")
    code = getattr(value, "__code__", None)
    file: str | None = code.co_filename if isinstance(code, CodeType) else None
    if file is None or file.startswith("<"):  # a class, or code that a library made of a text
        file = getattr(sys.modules.get(name), "__file__", None)
    return _library(name, file)


def library_by_name(top: str) -> str | None:
    """Return the same for a module at the top, which is not imported for this."""
    module = sys.modules.get(top)
    if module is not None:
        return library_of(module)
    spec = importlib.util.find_spec(top)
    if spec is None:
        return f"{top} is not installed"
    return _library(top, next(iter(spec.submodule_search_locations or ()), spec.origin))


@cache
def _library(name: str, file: str | None) -> str | None:
    top = name.partition(".")[0]
    installed = file is not None and ("site-packages" in file or "dist-packages" in file)
    if top == "agent_brain" or installed:
        return f"{top} {_version(top)}"
    if file is None:
        return top if top in sys.stdlib_module_names else None
    return top if file.startswith((*_STANDARD, "<frozen")) else None


@cache
def _version(top: str) -> str:
    try:
        return version(top.replace("_", "-"))
    except PackageNotFoundError:  # the package has another name than its module
        return " ".join(version(name) for name in sorted({*_distributions().get(top, ())}))


_distributions = cache(packages_distributions)  # it reads the files of all packages


PACKAGES = ("agent-brain", "anyio", "chromadb", "litellm", "pydantic")


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def commit() -> str | None:
    """Return the commit of the current folder, with ``"+"`` if files were changed."""
    head = _git("rev-parse", "--short=12", "HEAD")
    if not head:
        return None
    return head + ("+" if _git("status", "--porcelain", "--untracked-files=no") else "")


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *arguments], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.SubprocessError, UnicodeError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
