"""Lay the package out under its import name in ``build/typing``, one link per file.

The folders of the repository are mapped to ``agent_brain`` by ``pyproject.toml``. Python follows an
editable install there; mypy, pyright and grimp look for files, so they are given some. Made anew at
each call, which takes milliseconds: it cannot be stale.
"""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "build" / "typing"


def main() -> None:
    """Replace ``build/typing`` by links to the files that are there now."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    folders: dict[str, str] = settings["tool"]["setuptools"]["package-dir"]
    shutil.rmtree(TARGET, ignore_errors=True)
    for package, folder in folders.items():
        source, target = ROOT / folder, TARGET.joinpath(*package.split("."))
        for file in source.rglob("*.py*"):
            if file.suffix in {".py", ".pyi"} or file.name == "py.typed":
                link = target / file.relative_to(source)
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(file)


if __name__ == "__main__":
    main()
