"""Packages whose public names are imported at first use, and what needs an extra."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy_exports(
    package: dict[str, Any], within: Callable[[], AbstractContextManager[None]] = nullcontext
) -> bool:
    """Give a package ``__getattr__`` and ``__dir__`` for what a block of its source imports.

    Example::

        if TYPE_CHECKING or not lazy_exports(globals()):
            from agent_brain.brain import Brain as Brain

    Type checkers read the block as it is. At run time it is parsed when a name is first missing,
    also for ``__all__``. Without the source, as in a frozen executable, the block is executed.

    Args:
        package: The names of the package.
        within: Makes what names are imported in, such as :func:`extra`.
    """
    module = package["__name__"]
    try:  # get_data, as not every loader has get_source: pytest's own, for one, does not
        source = package["__loader__"].get_data(str(Path(package["__path__"][0], "__init__.py")))
    except OSError:
        return False

    @cache
    def homes() -> dict[str, tuple[str, str]]:
        blocks = (block.body for block in ast.parse(source).body if isinstance(block, ast.If))
        imports = (line for body in blocks for line in body if isinstance(line, ast.ImportFrom))
        found = {
            alias.asname or alias.name: (line.module or "", alias.name)
            for line in imports
            for alias in line.names
        }
        return dict(sorted(found.items(), key=lambda item: _ruff_order(item[0])))

    def __getattr__(name: str) -> object:  # noqa: N807 - it becomes a module's
        if name == "__all__":
            return list(homes())
        if name.startswith("__") or name not in homes():
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home, original = homes()[name]
        with within():
            value = package[name] = getattr(import_module(home), original)
        return value

    package["__getattr__"] = __getattr__
    package["__dir__"] = lambda: sorted({*package, *homes()})
    return True


def _ruff_order(name: str) -> tuple[int, str]:
    """Sort constants first, then classes, then the rest."""
    return 0 if name.isupper() else 1 if name[0].isupper() else 2, name


@contextmanager
def extra(name: str, error: type[Exception], *packages: str) -> Iterator[None]:
    """Import within it what needs an extra.

    Args:
        name: The extra.
        error: What is raised without it; it says what to install.
        packages: Those of the extra, if another one may be missing too.
    """
    try:
        yield
    except ModuleNotFoundError as missing:
        if packages and (missing.name or "").partition(".")[0] not in packages:
            raise
        raise error(
            f"The package {missing.name} is not installed: pip install 'agent-brain[{name}]'"
        ) from missing
