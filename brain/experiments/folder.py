"""Folders as they are given. Private."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path
from typing import Any

from agent_brain.errors import ExperimentError


def as_folder(given: Any) -> Path:
    """Return the path of a folder.

    Raises:
        ExperimentError: It is no path.
    """
    path = fspath(given) if isinstance(given, str | PathLike) else ""
    if not isinstance(path, str) or not path or "\0" in path:
        raise ExperimentError(f"folder={given!r}: give the path of a folder, such as 'results'")
    return Path(path)
