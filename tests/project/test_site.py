"""The documentation site has every page and every public name, and needs no other host."""

from __future__ import annotations

import importlib
import re
import tomllib
import zlib
from pathlib import Path

import pytest

from scripts import public_names
from scripts.build_docs import documented_names, foreign_resources, missing_entries
from tests.project.pages import DOCS
from tests.project.repository import PACKAGES, ROOT

LINK = re.compile(r"\]\(([\w./-]+\.md)\)")


def linked_from(page: Path) -> set[Path]:
    return {(page.parent / link).resolve() for link in LINK.findall(page.read_text("utf-8"))}


def test_every_page_is_in_the_navigation() -> None:
    index = DOCS / "index.md"
    reached = linked_from(index)
    reached |= {
        target for page in reached if page.name == "README.md" for target in linked_from(page)
    }
    assert set(DOCS.rglob("*.md")) - {index} - reached == set()


def test_the_first_page_says_how_to_install_which_version() -> None:
    text = (DOCS / "index.md").read_text("utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert f"version {project['version']}." in text
    assert "pip install" in text
    assert f"Python {project['requires-python'].removeprefix('>=')} or newer" in text


def test_what_a_package_exports_is_in_the_reference() -> None:
    homes = {(name, home) for (_, name), home in public_names.homes().items()}
    documented = {(name, id(getattr(importlib.import_module(home), name))) for name, home in homes}
    modules = map(importlib.import_module, sorted({*PACKAGES} - public_names.PRIVATE))
    exported = {
        (name, id(getattr(module, name))): module.__name__
        for module in modules
        for name in getattr(module, "__all__", ())
    }
    assert {f"{exported[name]}.{name[0]}" for name in exported.keys() - documented} == set()


def test_a_reference_page_has_the_package() -> None:
    for package, page in public_names.PAGES.items():
        text = (DOCS / "reference" / f"{page}.md").read_text("utf-8")
        assert package in public_names.COMMENT.findall(text), page


def test_every_exported_name_has_an_entry_or_a_link_to_it() -> None:
    pages = {package: public_names.entries(package) for package in public_names.PAGES}
    assert [
        f"{package}.{name}"
        for package, text in pages.items()
        for name in importlib.import_module(package).__all__
        if not re.search(rf"[.`]{name}\b", text)
    ] == []


@pytest.mark.parametrize("page", ["docs/examples.md", "examples/README.md"])
def test_every_example_is_listed(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    programs = [path.name for path in (ROOT / "examples").glob("*.py")]
    assert len(programs) >= 5
    assert [name for name in programs if f"{name}`" not in text] == []


def write_inventory(folder: Path, *names: str) -> None:
    lines = "".join(f"{name} py:class 1 page.html#$ -\n" for name in names)
    header = b"# Sphinx inventory version 2\n# Project: x\n# Version: \n# using zlib.\n"
    (folder / "objects.inv").write_bytes(header + zlib.compress(lines.encode()))


def test_a_public_name_without_an_entry_is_found(tmp_path: Path) -> None:
    names = public_names.documented()
    write_inventory(tmp_path, *sorted(names - {"agent_brain.Brain"}))
    assert len(documented_names(tmp_path / "objects.inv")) == len(names) - 1
    assert [problem.split()[0] for problem in missing_entries(tmp_path)] == ["agent_brain.Brain"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", '<script defer src="https://cdn.example/x.js"></script>'),
        ("a.html", "<link rel=stylesheet href=//cdn.example/x.css>"),
        ("a.html", '<img alt="" src="http://cdn.example/x.png">'),
        ("a.css", "@import 'https://cdn.example/x.css';"),
        ("a.css", "src: url(https://cdn.example/x.woff2)"),
        ("a.js", 'fetch("https://cdn.example/index.json")'),
    ],
)
def test_what_comes_from_another_host_is_found(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert [problem.split("/")[2] for problem in foreign_resources(tmp_path)] == ["cdn.example"]


def test_links_and_namespaces_are_not_resources(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<a class="x" href="https://example.org">x</a>'
        '<svg xmlns="http://www.w3.org/2000/svg"></svg><img src="_static/x.png">'
    )
    assert list(foreign_resources(tmp_path)) == []
