"""Lay the package out under its import name in ``build/typing``, one link per file.

``pyproject.toml`` maps the folders of the repository to ``agent_brain``. Python follows an editable
install there; mypy, pyright and grimp look for files. The layout is replaced at each call, which
takes milliseconds, so it is never stale.
"""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def folders_of(root: Path) -> dict[str, str]:
    """Return the folders of a checkout by the packages that are in them."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    folders: dict[str, str] = settings["tool"]["setuptools"]["package-dir"]
    return folders


def link(root: Path, target: Path) -> None:
    """Replace ``target`` by links to the files of the package whose checkout is ``root``."""
    shutil.rmtree(target, ignore_errors=True)
    for package, folder in folders_of(root).items():
        source, place = root / folder, target.joinpath(*package.split("."))
        for file in source.rglob("*.py*"):
            if file.suffix in {".py", ".pyi"} or file.name == "py.typed":
                linked = place / file.relative_to(source)
                linked.parent.mkdir(parents=True, exist_ok=True)
                linked.symlink_to(file)


if __name__ == "__main__":
    link(ROOT, ROOT / "build" / "typing")
