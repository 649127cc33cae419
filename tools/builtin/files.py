"""Tools that read, list and search files below a folder that cannot be left."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from fnmatch import fnmatchcase
from unicodedata import normalize

from agent_brain.common.patterns import LONGEST, compile_re2, has_re2
from agent_brain.tools.builtin.confined_folder import ConfinedFolder, FolderEntry
from agent_brain.tools.errors import ToolError
from agent_brain.tools.function import tool
from agent_brain.tools.toolset import Toolset

MAX_ENTRIES = 500  # in one listing
MAX_FOUND = 100  # matching lines in one result
MAX_SEEN = 20_000  # files and folders visited in one search
MAX_DEPTH = 20  # nested folders
MORE = "… and perhaps more: search a subfolder, or for something rarer"
SHOWN = 300  # characters of a matching line
SEARCH_SECONDS = 5.0

Matcher = Callable[[str], bool]


def file_tools(
    root: str | os.PathLike[str],
    *,
    max_bytes: int = 1_000_000,
    max_result_tokens: int | None = 4_000,
    search_seconds: float = SEARCH_SECONDS,
) -> Toolset:
    """Return ``read_file``, ``list_files`` and ``search_files``, confined to ``root``.

    Absolute paths, ``..``, links and special files are refused. Names with line breaks or other
    unprintable characters are written, and accepted, as JSON strings. With the extra ``search``
    there is also ``search_pattern``, for regular expressions.

    Args:
        root: The folder.
        max_bytes: Larger files are refused, and skipped by searches.
        max_result_tokens: Longer results are shortened; the agent may read the rest in parts.
        search_seconds: Time limit of a search.

    Raises:
        ToolDefinitionError: ``root`` is not a folder.
    """
    files = _Files(ConfinedFolder(root, max_bytes=max_bytes), search_seconds)
    make = tool(idempotent=True, max_result_tokens=max_result_tokens)
    tools = [make(files.read_file), make(files.list_files), make(files.search_files)]
    return Toolset([*tools, make(files.search_pattern)] if has_re2() else tools)


class _Files:
    """The functions of the tools: their docstrings are for models."""

    def __init__(self, root: ConfinedFolder, search_seconds: float) -> None:
        self._root = root
        self._seconds = search_seconds

    def read_file(self, path: str) -> str:
        """Read a text file.

        Args:
            path: Its path from the root folder, such as "notes/today.md".
        """
        return _text(path, self._root.read(path))

    def list_files(self, path: str = ".", pattern: str = "*", *, recursive: bool = False) -> str:
        """List files, with their sizes in bytes, and folders, which end in "/".

        Args:
            path: A folder, from the root folder.
            pattern: Only names like this, such as "*.md".
            recursive: Also list what is in the folders inside.
        """
        lines: list[str] = []
        entries = self._root.walk(path, depth=MAX_DEPTH if recursive else 1)
        for seen, entry in enumerate(entries, start=1):
            if _fits(entry, pattern):
                lines.append(_listed(entry))
            if len(lines) == MAX_ENTRIES or seen == MAX_SEEN:
                lines.append(MORE)
                break
        return "\n".join(lines) or "There is nothing like that here."

    def search_files(
        self, query: str, path: str = ".", pattern: str = "*", *, ignore_case: bool = True
    ) -> str:
        """Find the lines of text files that contain a text: "path:line number: line".

        Args:
            query: The text.
            path: A folder to search in, from the root folder, with the folders inside.
            pattern: Only files with names like this, such as "*.py".
            ignore_case: Capital and small letters are the same.
        """
        return self._search(path, pattern, _text_matcher(query, ignore_case=ignore_case))

    def search_pattern(
        self, regex: str, path: str = ".", pattern: str = "*", *, ignore_case: bool = True
    ) -> str:
        """Find the lines of text files that match a pattern: "path:line number: line".

        Args:
            regex: A regular expression in RE2 syntax: no look-around, no back references.
            path: A folder to search in, from the root folder, with the folders inside.
            pattern: Only files with names like this, such as "*.py".
            ignore_case: Capital and small letters are the same.
        """
        return self._search(path, pattern, _regex_matcher(regex, ignore_case=ignore_case))

    def _search(self, path: str, pattern: str, matches: Matcher) -> str:
        root, end = self._root, time.monotonic() + self._seconds

        def check_time() -> None:
            if time.monotonic() >= end:
                raise ToolError(
                    f"The search took longer than {self._seconds:g} s and was stopped: search in "
                    "fewer files"
                )

        found: list[str] = []
        unread: list[str] = []
        for count, entry in enumerate(root.walk(path, depth=MAX_DEPTH)):
            if count == MAX_SEEN:
                return "\n".join([*found, MORE])
            check_time()
            if entry.problem:
                unread.append(f"Not searched: {entry.problem}")
            if entry.is_folder or entry.size > root.max_bytes or not _fits(entry, pattern):
                continue
            try:
                text = _text(entry.path, root.read(entry.path))
            except ToolError:  # not text, or deleted meanwhile
                continue
            for number, line in enumerate(text.splitlines(), start=1):
                check_time()
                if matches(line):
                    found.append(f"{entry.path}:{number}: {line[:SHOWN]}")
                    if len(found) == MAX_FOUND:
                        return "\n".join([*found, MORE])
        return "\n".join([*(found or ["Nothing found."]), *unread])


def _listed(entry: FolderEntry) -> str:
    if not entry.is_folder:
        return f"{entry.path} ({entry.size})"
    return f"{entry.path}/ ({entry.problem})" if entry.problem else f"{entry.path}/"


def _fits(entry: FolderEntry, pattern: str) -> bool:
    pattern = normalize("NFC", pattern)
    path = normalize("NFC", "/".join(entry.parts))
    return fnmatchcase(path.rsplit("/", 1)[-1], pattern) or fnmatchcase(path, pattern)


def _text(path: str, data: bytes) -> str:
    if b"\0" in data:
        raise ToolError(f"{path!r} is not a text file")
    return data.decode("utf-8-sig", errors="replace")


def _text_matcher(query: str, *, ignore_case: bool) -> Matcher:
    """Return a function that says whether a line contains ``query``."""
    _check_length(query)

    def same(text: str) -> str:
        composed = normalize("NFC", text)
        return normalize("NFC", composed.casefold()) if ignore_case else composed

    wanted = same(query)
    return lambda line: wanted in same(line)


def _regex_matcher(query: str, *, ignore_case: bool) -> Matcher:
    """Match by RE2 alone: engines that backtrack are unsafe for patterns written by a model."""
    import re2

    _check_length(query, LONGEST)
    try:
        pattern = compile_re2(query, ignore_case=ignore_case)
    except re2.error as error:
        why = error.args[0] if error.args else error
        text = why.decode(errors="replace") if isinstance(why, bytes) else str(why)
        raise ToolError(f"{query!r} is not a regular expression for RE2: {text}") from None
    return lambda line: pattern.search(line) is not None


def _check_length(query: str, most: int | None = None) -> None:
    if not query:
        raise ToolError("The query is empty: say what to search for")
    if most is not None and len(query) > most:
        raise ToolError(f"The pattern has {len(query)} characters; {most} are allowed")
