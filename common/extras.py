"""Packages that are installed with an extra of this one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


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
