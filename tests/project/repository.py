"""The repository as the tests of this folder see it."""

from __future__ import annotations

import subprocess
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


@cache
def settings() -> dict[str, Any]:
    """What pyproject.toml says."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def package_folders() -> dict[str, str]:
    """Each package folder and the import name that it is mapped to."""
    mapping: dict[str, str] = settings()["tool"]["setuptools"]["package-dir"]
    return {folder: package for package, folder in mapping.items()}


PACKAGE_FOLDERS = package_folders()
PACKAGES: list[str] = settings()["tool"]["setuptools"]["packages"]


@cache
def repository_files() -> tuple[str, ...]:
    """Every file that git tracks or would track, relative to the root."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others"]
    listed = subprocess.run(
        [*command, "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return tuple(sorted(name for name in listed.split("\0") if name and (ROOT / name).is_file()))


def text_of(name: str) -> str | None:
    """The text of a file, or None if it is binary."""
    try:
        return (ROOT / name).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None
