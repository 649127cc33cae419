"""Packages whose public names are imported at first use. Private."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module


def lazy_exports(package: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a package, by its own ``if TYPE_CHECKING:``.

    Every name that is imported there is exported: type checkers read the block as it is, and at
    run time it is parsed when a name is first missing, also for ``__all__``.
    """

    @cache
    def homes() -> dict[str, str]:
        spec = sys.modules[package].__spec__
        source = spec.loader.get_source(package)  # type: ignore[union-attr]  # of a loaded module
        return dict(sorted(_type_checking_imports(source), key=_ruff_order))

    def __getattr__(name: str) -> object:  # noqa: N807 - it becomes a module's
        if name.startswith("__"):
            if name == "__all__":
                return list(homes())
        elif name in homes():
            value = getattr(import_module(homes()[name]), name)
            setattr(sys.modules[package], name, value)
            return value
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def __dir__() -> list[str]:  # noqa: N807
        return sorted({*vars(sys.modules[package]), *homes()})

    return __getattr__, __dir__


def _type_checking_imports(source: str) -> Iterator[tuple[str, str]]:
    for block in ast.parse(source).body:
        if isinstance(block, ast.If):
            for line in block.body:
                if isinstance(line, ast.ImportFrom) and line.module is not None:
                    yield from ((alias.name, line.module) for alias in line.names)


def _ruff_order(item: tuple[str, str]) -> tuple[int, str]:
    """Sort constants first, then classes, then the rest."""
    name = item[0]
    return 0 if name.isupper() else 1 if name[0].isupper() else 2, name
