"""Files below a root that cannot be left."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

import pytest

from agent_brain.tools import ToolDefinitionError, ToolError, Toolset
from agent_brain.tools.builtin import file_tools, files
from agent_brain.tools.builtin.confined_folder import ConfinedFolder

pytestmark = pytest.mark.anyio


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "notes" / "old").mkdir(parents=True)
    (root / "notes" / "today.md").write_text("buy milk\nBuy bread\n")
    (root / "notes" / "old" / "first.md").write_text("hello\n")
    (root / "data.bin").write_bytes(b"a\0b")
    (tmp_path / "secret").write_text("secret")
    return root


@pytest.fixture
def tools(root: Path) -> Toolset:
    return file_tools(root, max_bytes=1000)


async def call(tools: Toolset, name: str, *args: object, **kwargs: object) -> str:
    names = list(tools[name].input_schema["properties"])
    text = await tools[name].invoke({**dict(zip(names, args, strict=False)), **kwargs})
    assert isinstance(text, str)
    return text


async def test_reading_listing_and_searching(tools: Toolset):
    assert await call(tools, "read_file", "./notes//today.md") == "buy milk\nBuy bread\n"
    assert await call(tools, "list_files") == "data.bin (3)\nnotes/"
    assert (await call(tools, "list_files", "notes", recursive=True)).splitlines() == [
        "notes/old/",
        "notes/old/first.md (6)",
        "notes/today.md (19)",
    ]
    assert await call(tools, "list_files", pattern="*.md") == "There is nothing like that here."
    assert await call(tools, "search_files", "BUY") == (
        "notes/today.md:1: buy milk\nnotes/today.md:2: Buy bread"
    )
    assert (
        await call(tools, "search_files", "Buy", ignore_case=False) == "notes/today.md:2: Buy bread"
    )
    assert await call(tools, "search_pattern", r"^b.y\s+m") == "notes/today.md:1: buy milk"
    assert await call(tools, "search_pattern", r"milk", pattern="first*") == "Nothing found."


ESCAPES = [
    "../secret",
    "notes/../../secret",
    "/etc/passwd",
    "//etc/passwd",
    "C:/windows",
    "..\\secret",
    "notes\\..\\..\\secret",
    "notes/\0../../secret",
    "link",
    "folder_link/secret",
    "notes/loop/loop",
    "pipe",
    "socket",
    "notes",
    "missing",
    "a/" * 3000,
    "x" * 300,
    "data.bin",
    "huge",
    "growing",
]


@pytest.mark.parametrize("path", ESCAPES, ids=[repr(path)[:20] for path in ESCAPES])
async def test_what_is_not_a_plain_text_file_below_the_root_is_refused(root, path, tools):
    (root / "link").symlink_to(root.parent / "secret")
    (root / "folder_link").symlink_to(root.parent)
    (root / "notes" / "loop").symlink_to(root / "notes")
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        here = Path.cwd()
        os.chdir(root)
        listening.bind("socket")
        os.chdir(here)
    with (root / "huge").open("wb") as file:
        file.truncate(1 << 40)
    (root / "growing").write_text("x" * 1001)
    with pytest.raises(ToolError) as caught:
        await call(tools, "read_file", path)
    assert "secret" not in str(caught.value).replace(path.replace("\\", "/"), "").replace(
        repr(path), ""
    )


async def test_the_reason_names_what_is_wrong(root, tools):
    (root / "link").symlink_to(root.parent / "secret")
    with (root / "huge").open("wb") as file:
        file.truncate(1 << 40)
    for path, why in [
        ("huge", "has 1,099,511,627,776 bytes; at most 1,000 are read"),
        ("../secret", "'..'"),
        ("/etc/passwd", "absolute"),
        ("link", "'link' is a link"),
        ("a\0b", "NUL"),
        ("notes", "is a folder"),
        ("data.bin", "not a text file"),
        ("missing", "No such file"),
    ]:
        with pytest.raises(ToolError, match=why):
            await call(tools, "read_file", path)


async def test_devices_are_not_read(tmp_path):
    root = ConfinedFolder("/dev", max_bytes=10)
    with pytest.raises(ToolError, match="not a plain file"):
        root.read("zero")


async def test_links_are_neither_listed_nor_searched(root, tools):
    (root / "secret_link").symlink_to(root.parent / "secret")
    (root / "folder_link").symlink_to(root.parent)
    assert "link" not in await call(tools, "list_files", recursive=True)
    assert await call(tools, "search_files", "secret") == "Nothing found."
    with pytest.raises(ToolError, match="is a link"):
        await call(tools, "list_files", "folder_link")
    with pytest.raises(ToolError, match="is a file"):
        await call(tools, "list_files", "data.bin")


async def test_a_folder_exchanged_for_a_link_while_it_is_opened_leads_nowhere(root, monkeypatch):
    (root.parent / "today.md").write_text("secret")
    rooted, really = ConfinedFolder(root, max_bytes=100), os.open

    def exchange(path, flags, *args, **kwargs):
        if path == "notes" and not (root / "notes").is_symlink():
            (root / "notes").rename(root / "gone")
            (root / "notes").symlink_to(root.parent)
        return really(path, flags, *args, **kwargs)

    monkeypatch.setattr(os, "open", exchange)
    with pytest.raises(ToolError, match="is a link"):
        rooted.read("notes/today.md")


async def test_without_stepwise_opening_links_are_refused_too(root, monkeypatch):
    monkeypatch.setattr("agent_brain.tools.builtin.confined_folder._STEPWISE", False)
    (root / "link").symlink_to(root / "notes" / "today.md")
    (root / "folder_link").symlink_to(root.parent)
    rooted = ConfinedFolder(root, max_bytes=100)
    assert rooted.read("notes/today.md").startswith(b"buy")
    assert [entry.path for entry in rooted.walk(".", depth=1)] == ["data.bin", "notes"]
    for path in ("link", "folder_link/secret"):
        with pytest.raises(ToolError, match="links are not followed"):
            rooted.read(path)


ODD = [
    "C:",
    "w\\..\\q",
    "two\nlines",
    "bad\udcff",
    "-rf",
    '"quoted"',
    "tab\tand\u2028more",
    "right\u202eleft",
    " spaces ",
    "a: b",
    "Zoë",  # composed
    "Zoe\u0308\u0301",  # not composed
    "*",
    "~",
    "%41",
]


@pytest.mark.parametrize("name", ODD, ids=ascii)
@pytest.mark.parametrize("form", ["file", "folder"])
async def test_odd_names_are_listed_read_and_searched(root, tools, name, form):
    path = root / name if form == "file" else root / name / "inner.txt"
    path.parent.mkdir(exist_ok=True)
    path.write_text("needle")
    listed = await call(tools, "list_files", recursive=True)
    found = await call(tools, "search_files", "needle")
    assert len(listed.splitlines()) == (6 if form == "file" else 7)
    assert found.endswith(":1: needle")
    shown = found.removesuffix(":1: needle")
    assert f"{shown} (6)" in listed.splitlines()
    assert await call(tools, "read_file", shown) == "needle"
    if form == "folder":
        folder = next(
            line for line in listed.splitlines() if line.endswith("/") and "notes" not in line
        )
        assert await call(tools, "list_files", folder.removesuffix("/")) == f"{shown} (6)"


async def test_a_name_is_found_in_each_form_of_unicode(root, tools):
    (root / "Zoe\u0308.txt").write_text("Cafe\u0301")
    assert await call(tools, "read_file", "Zo\u00eb.txt") == "Cafe\u0301"
    assert (await call(tools, "search_files", "CAF\u00c9")).endswith(":1: Cafe\u0301")
    assert "Zo" in await call(tools, "list_files", pattern="Zo\u00eb*")
    (root / "Zo\u00eb.txt").write_text("composed")
    assert await call(tools, "read_file", "Zo\u00eb.txt") == "composed"
    assert await call(tools, "read_file", "Zoe\u0308.txt") == "Cafe\u0301"


async def test_a_quoted_path_leads_nowhere_else(root, tools):
    for path in ('"../secret"', '"/etc/passwd"', '"a\\u0000b"', '"\\ud800"', '"', '"x'):
        with pytest.raises(ToolError) as caught:
            await call(tools, "read_file", path)
        assert type(caught.value) is ToolError
    assert await call(tools, "read_file", '"notes/today.md"') == "buy milk\nBuy bread\n"


@pytest.mark.parametrize("trouble", ["locked", "gone"])
async def test_a_folder_that_cannot_be_read_spoils_nothing_else(root, tools, monkeypatch, trouble):
    (root / "bad" / "inner").mkdir(parents=True)
    really = os.open

    def refuse(path, flags, *args, **kwargs):
        if path == "bad" and trouble == "locked":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        if path == "bad" and (root / "bad").exists():
            (root / "bad" / "inner").rmdir()
            (root / "bad").rmdir()
        return really(path, flags, *args, **kwargs)

    monkeypatch.setattr(os, "open", refuse)
    listed = (await call(tools, "list_files", recursive=True)).splitlines()
    why = os.strerror(errno.EACCES if trouble == "locked" else errno.ENOENT)
    assert listed[0] == f"bad/ ('bad' cannot be opened: {why})"
    assert "notes/today.md (19)" in listed
    (root / "bad").mkdir(exist_ok=True)
    assert (await call(tools, "search_files", "milk")).splitlines() == [
        "notes/today.md:1: buy milk",
        f"Not searched: 'bad' cannot be opened: {why}",
    ] or trouble == "gone"


async def test_what_is_listed_deep_inside_can_be_read(root, tools):
    deep = root.joinpath(*["d" * 230] * 18)
    here = os.open(root, os.O_RDONLY)
    for part in deep.relative_to(root).parts:
        os.mkdir(part, dir_fd=here)
        inner = os.open(part, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    file = os.open("end.txt", os.O_CREAT | os.O_WRONLY, dir_fd=here)
    os.write(file, b"the end")
    os.close(file)
    os.close(here)
    found = await call(tools, "search_files", "the end")
    assert await call(tools, "read_file", found.partition(":")[0]) == "the end"


PATTERNS = [
    "(a+)+$",
    "(a|aa)+$",
    "(x+x+)+y",
    "(a{1000}){1000}",
    "(((a{500}){500}){500}){500}",
    "[a-z]*" * 80 + "1",
    "(" * 250 + "a" + ")" * 250,
    "(" * 40_000,
    r"(a)\1",
    "(?=a)",
    "[",
    "",
]


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: repr(pattern)[:20])
async def test_patterns_that_explode_end_at_once(tmp_path, pattern):
    (tmp_path / "a.txt").write_text("a" * 9_000 + "!\n" + "x" * 9_000)
    tools = file_tools(tmp_path, search_seconds=1)
    try:
        text = await call(tools, "search_pattern", pattern)
    except ToolError as error:
        text = str(error)
    assert "took longer" not in text
    assert (
        text == "Nothing found."
        or "RE2" in text
        or "allowed" in text
        or "empty" in text
        or (text.startswith("a.txt:"))
    )


async def test_a_pattern_may_be_so_long(tools):
    with pytest.raises(ToolError, match="has 501 characters; 500 are allowed"):
        await call(tools, "search_pattern", "a" * 501)


async def test_a_search_that_takes_too_long_is_stopped(root, tools):
    slow = file_tools(root, search_seconds=1e-9)
    with pytest.raises(ToolError, match="took longer than 1e-09 s"):
        await call(slow, "search_files", "milk")
    with pytest.raises(ToolError, match="query is empty"):
        await call(tools, "search_files", "")


async def test_long_lists_are_cut(root, tools, monkeypatch):
    monkeypatch.setattr(files, "MAX_ENTRIES", 2)
    monkeypatch.setattr(files, "MAX_FOUND", 1)
    assert "perhaps more" in await call(tools, "list_files", recursive=True)
    assert (await call(tools, "search_files", "b")).endswith("for something rarer")


async def test_without_re2_there_are_no_patterns(root, monkeypatch):
    monkeypatch.setattr(files, "has_re2", lambda: False)
    assert "search_pattern" not in file_tools(root)


async def test_a_root_must_be_a_folder(root):
    with pytest.raises(ToolDefinitionError, match="is not a folder"):
        file_tools(root / "data.bin")
