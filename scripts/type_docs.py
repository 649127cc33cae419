"""Check the types of every Python block in the documentation, with mypy and pyright.

The README's blocks are checked with the strict settings of both; functions in the blocks of other
pages may lack annotations. ``tests/project/typed_programs.py``, which asserts the types that
programs get and the errors that they must get, is checked with them.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "build" / "docs"
PROGRAMS = ROOT / "tests" / "project" / "typed_programs.py"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def main() -> int:
    """Write each block to a file and check all of them at once; return the exit code."""
    shutil.rmtree(TARGET, ignore_errors=True)
    for folder in ("pages", "strict"):
        (TARGET / folder).mkdir(parents=True)
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for name, code in (block for page in pages for block in blocks(page)):
        (TARGET / f"{name}.py").write_text(code, encoding="utf-8")
    shutil.copy(PROGRAMS, TARGET / "strict" / "programs.py")
    settings = {
        "include": ["."],
        "strict": ["strict"],
        "extraPaths": ["../typing"],
        "pythonVersion": "3.11",
        "typeCheckingMode": "standard",
        "enableTypeIgnoreComments": False,
        "reportUnnecessaryTypeIgnoreComment": "error",
    }
    (TARGET / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    python = [sys.executable, "-m"]
    checkers = (
        [*python, "mypy", "build/docs"],
        [*python, "pyright", "--pythonpath", sys.executable, "--project", "build/docs"],
    )
    return max(subprocess.run(checker, cwd=ROOT, check=False).returncode for checker in checkers)


def blocks(page: Path) -> Iterator[tuple[str, str]]:
    """Yield a file name and the code of each block, on the same lines as in the page."""
    text = page.read_text(encoding="utf-8")
    folder = "strict" if page.name == "README.md" and page.parent == ROOT else "pages"
    place = re.sub(r"\W", "_", str(page.relative_to(ROOT).with_suffix("")))
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield f"{folder}/{place}_{line + 1}", "\n" * line + match[1]


if __name__ == "__main__":
    sys.exit(main())
