"""Read, list and search files below a folder that cannot be left."""

from __future__ import annotations

import os
from collections.abc import Callable
from fnmatch import fnmatchcase
from unicodedata import normalize

from agent_brain.tools.builtin.confined_folder import Entry, Root
from agent_brain.tools.builtin.search_patterns import (
    Deadline,
    has_regex,
    regex_matcher,
    text_matcher,
)
from agent_brain.tools.errors import ToolError
from agent_brain.tools.function import tool
from agent_brain.tools.toolset import Toolset

MAX_ENTRIES = 500  # listed at a time
MAX_FOUND = 100  # matching lines told at a time
MAX_SEEN = 20_000  # files and folders looked at in one search
MAX_DEPTH = 20  # folders in folders
MORE = "… and perhaps more: look in a folder of it, or for something rarer"
SHOWN = 300  # characters of a matching line
SEARCH_SECONDS = 5.0


def file_tools(
    root: str | os.PathLike[str],
    *,
    max_bytes: int = 1_000_000,
    max_result_tokens: int | None = 4_000,
    search_seconds: float = SEARCH_SECONDS,
) -> Toolset:
    """``read_file``, ``list_files`` and ``search_files`` below ``root``, and nowhere else.

    Absolute paths, ``..`` and links are refused, and so is what is no plain file. Names that do not
    fit on a line are written as JSON strings, and read when they are written so. With the extra
    ``search`` there is also ``search_pattern``, for regular expressions.

    Args:
        root: The folder.
        max_bytes: Larger files are refused, and passed over by searches.
        max_result_tokens: Longer results are shortened; the agent may read the rest in parts.
        search_seconds: After so many seconds a search is stopped.

    Raises:
        ToolDefinitionError: ``root`` is no folder.
    """
    rooted = Root(root, max_bytes=max_bytes)

    @tool(idempotent=True, max_result_tokens=max_result_tokens)
    def read_file(path: str) -> str:
        """Read a text file.

        Args:
            path: Its path from the root folder, such as "notes/today.md".
        """
        return _text(path, rooted.read(path))

    @tool(idempotent=True, max_result_tokens=max_result_tokens)
    def list_files(path: str = ".", pattern: str = "*", *, recursive: bool = False) -> str:
        """List files, with their sizes in bytes, and folders, which end in "/".

        Args:
            path: A folder, from the root folder.
            pattern: Only names like this, such as "*.md".
            recursive: Also list what is in the folders inside.
        """
        lines: list[str] = []
        entries = rooted.walk(path, depth=MAX_DEPTH if recursive else 1)
        for seen, entry in enumerate(entries, start=1):
            if _fits(entry, pattern):
                lines.append(_listed(entry))
            if len(lines) == MAX_ENTRIES or seen == MAX_SEEN:
                lines.append(MORE)
                break
        return "\n".join(lines) or "There is nothing like that here."

    @tool(idempotent=True, max_result_tokens=max_result_tokens)
    def search_files(
        query: str, path: str = ".", pattern: str = "*", *, ignore_case: bool = True
    ) -> str:
        """Find the lines of text files that contain a text: "path:line number: line".

        Args:
            query: The text.
            path: A folder to search in, from the root folder, with the folders inside.
            pattern: Only files with names like this, such as "*.py".
            ignore_case: Capital and small letters are the same.
        """
        matches = text_matcher(query, ignore_case=ignore_case)
        return _search(rooted, path, pattern, matches, Deadline(search_seconds))

    @tool(idempotent=True, max_result_tokens=max_result_tokens)
    def search_pattern(
        regex: str, path: str = ".", pattern: str = "*", *, ignore_case: bool = True
    ) -> str:
        """Find the lines of text files that match a pattern: "path:line number: line".

        Args:
            regex: A regular expression as RE2 takes it: no look-around, no back references.
            path: A folder to search in, from the root folder, with the folders inside.
            pattern: Only files with names like this, such as "*.py".
            ignore_case: Capital and small letters are the same.
        """
        matches = regex_matcher(regex, ignore_case=ignore_case)
        return _search(rooted, path, pattern, matches, Deadline(search_seconds))

    tools = [read_file, list_files, search_files]
    return Toolset([*tools, search_pattern] if has_regex() else tools)


def _search(
    root: Root, path: str, pattern: str, matches: Callable[[str], bool], deadline: Deadline
) -> str:
    found: list[str] = []
    unread: list[str] = []
    for count, entry in enumerate(root.walk(path, depth=MAX_DEPTH)):
        if count == MAX_SEEN:
            return "\n".join([*found, MORE])
        deadline.check()
        if entry.problem:
            unread.append(f"Not searched: {entry.problem}")
        if entry.is_folder or entry.size > root.max_bytes or not _fits(entry, pattern):
            continue
        try:
            text = _text(entry.path, root.read(entry.path))
        except ToolError:  # no text, or gone meanwhile
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            deadline.check()
            if matches(line):
                found.append(f"{entry.path}:{number}: {line[:SHOWN]}")
                if len(found) == MAX_FOUND:
                    return "\n".join([*found, MORE])
    return "\n".join([*(found or ["Nothing found."]), *unread])


def _listed(entry: Entry) -> str:
    if not entry.is_folder:
        return f"{entry.path} ({entry.size})"
    return f"{entry.path}/ ({entry.problem})" if entry.problem else f"{entry.path}/"


def _fits(entry: Entry, pattern: str) -> bool:
    pattern = normalize("NFC", pattern)
    path = normalize("NFC", "/".join(entry.parts))
    return fnmatchcase(path.rsplit("/", 1)[-1], pattern) or fnmatchcase(path, pattern)


def _text(path: str, data: bytes) -> str:
    if b"\0" in data:
        raise ToolError(f"{path!r} is no text file")
    return data.decode("utf-8-sig", errors="replace")
