"""What must not be in the repository, and what must."""

from __future__ import annotations

import re

import pytest

from tests.project.repository import ROOT, repository_files, text_of

# Written so that this file does not match itself.
FORBIDDEN = {
    "a path of one machine": r"(?<![\w.~*-])/(?:work|root|home/\w+|tmp/(?:venv|scaffold\S*))/",
    "a note to oneself": r"\b(?:TO" r"DO|FIX" r"ME|X" r"XX)\b",
    "a package registry or an index": (
        r"registry\.npm"
        r"js\.org|files\.python"
        r"hosted\.org|pypi\.org"
        r"/simple|index"
        r"-url|/opt"
        r"/pypi"
    ),
    "a merge conflict": r"^(?:<{7}|>{7}) ",
}
CODE_BLOCK = re.compile(r"^```(?:bash|console|sh|shell)\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_has(what: str) -> None:
    pattern = re.compile(FORBIDDEN[what], re.MULTILINE)
    found = [
        f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {match.group()!r}"
        for name in repository_files()
        if (text := text_of(name)) is not None
        for match in pattern.finditer(text)
    ]

    assert found == [], f"{what} in tracked files"


def test_commands_in_the_documentation_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    unknown = [
        f"{name}: make {target}"
        for name in repository_files()
        if name.endswith(".md")
        for block in CODE_BLOCK.findall(text_of(name) or "")
        for target in re.findall(r"^(?:\$ )?make ([a-z-]+)", block, re.MULTILINE)
        if target not in targets
    ]

    assert unknown == []


def test_the_readme_says_how_to_try_it_and_how_to_test_it() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")

    assert {"make demo", "make test"} <= set(re.findall(r"make [a-z]+", readme))


def test_the_changelog_has_room_for_the_next_change() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")

    assert re.search(r"^## \[?Unreleased\]?", changelog, re.MULTILINE)
