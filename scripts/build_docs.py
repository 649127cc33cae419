"""Build the documentation into ``build/site`` and check it, without the network.

Warnings of the build are errors: a link or a reference that leads nowhere, a page that is not in
the navigation. Besides, a page must load nothing from another host, and every public name must have
an entry in the API reference.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from scripts import public_names  # noqa: E402

SOURCE = ROOT / "docs"
TARGET = ROOT / "build" / "site"

_LOADED = re.compile(
    r"""<(?!a\b)\w+\b[^>]*?\s(?:src|href|srcset|data|action|poster)=["']?\s*((?:https?:)?//[^"'\s>]+)"""
    r"""|(?:url\(\s*|@import\s+)["']?((?:https?:)?//[^"')\s]+)"""
    r"""|\b(?:fetch|importScripts|import)\(\s*["'`]((?:https?:)?//[^"'`]+)""",
    re.IGNORECASE,
)


def main() -> int:
    """Build and check; return the exit code."""
    shutil.rmtree(TARGET, ignore_errors=True)
    sphinx = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--quiet", "--fresh-env"]
    folders = [
        "--conf-dir",
        str(SOURCE / "site"),
        "--doctree-dir",
        str(ROOT / "build" / "doctrees"),
    ]
    done = subprocess.run([*sphinx, *folders, str(SOURCE), str(TARGET)], cwd=ROOT, check=False)
    if done.returncode:
        return done.returncode
    problems = [*foreign_resources(TARGET), *missing_entries(TARGET)]
    for problem in problems:
        print(problem, file=sys.stderr)
    if not problems:
        print(f"Built {TARGET.relative_to(ROOT)}/index.html")
    return int(bool(problems))


def foreign_resources(site: Path) -> Iterator[str]:
    """Yield what the pages of a site load from other hosts; links to them are fine."""
    for file in sorted(site.rglob("*")):
        if file.suffix in {".html", ".css", ".js", ".svg"}:
            for match in _LOADED.finditer(file.read_text(encoding="utf-8")):
                yield f"{file.relative_to(site)} loads {match[1] or match[2] or match[3]}"


def missing_entries(site: Path) -> Iterator[str]:
    """Yield the public names that the API reference of a site does not have."""
    entries = documented_names(site / "objects.inv")
    for name in sorted(public_names.documented() - entries):
        yield f"{name} is public and has no entry in the API reference (scripts/public_names.py)"


def documented_names(inventory: Path) -> set[str]:
    """Return the Python names in an inventory that Sphinx has written."""
    header, _, packed = inventory.read_bytes().partition(b"using zlib.\n")
    assert header.startswith(b"# Sphinx inventory version 2"), inventory
    lines = zlib.decompress(packed).decode().splitlines()
    return {line.split(" ", 1)[0] for line in lines if " py:" in line}


if __name__ == "__main__":
    sys.exit(main())
