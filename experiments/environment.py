"""Where an experiment is run: versions and the commit."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version

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
            ["git", *arguments],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.SubprocessError, UnicodeError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
