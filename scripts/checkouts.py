"""Make a tree of this repository importable as ``agent_brain``: the working tree or a commit."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from scripts.link_package import ROOT, link


@contextmanager
def checkout(commit: str | None) -> Iterator[Path]:
    """Yield a folder with the files of ``commit``; the working tree for None.

    Raises:
        SystemExit: git does not know the commit.
    """
    if commit is None:
        yield ROOT
        return
    archive = subprocess.run(
        ["git", "-C", str(ROOT), "archive", "--format=tar", commit],
        capture_output=True,
        check=False,
    )
    if archive.returncode:
        raise SystemExit(f"git cannot read {commit!r}: {archive.stderr.decode().strip()}")
    with TemporaryDirectory() as folder:
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        yield Path(folder)


@contextmanager
def environment(tree: Path) -> Iterator[dict[str, str]]:
    """Yield the environment in which Python imports ``agent_brain`` from ``tree``."""
    with TemporaryDirectory() as folder:
        package = Path(folder) / "package"
        link(tree, package)
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        kept.pop("PYTHONDONTWRITEBYTECODE", None)  # compiling at each start is not what is measured
        paths = [str(package), str(ROOT), *(p for p in sys.path if p.endswith("site-packages"))]
        yield {**kept, "PYTHONPATH": os.pathsep.join(paths)}
